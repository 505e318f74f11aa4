"""The program that stands in for Python: its run is made by a fork of the warm one (tests/warm_python.py).

`warm_client.py SOCKET -I -m MODULE …`. It starts in the time that Python itself takes, so it imports next to nothing.
"""

from __future__ import annotations

import marshal
import os
import struct
import sys
from _socket import (
    AF_UNIX,
    SCM_RIGHTS,
    SOCK_STREAM,
    SOL_SOCKET,
    socket as Socket,  # noqa: N812 (socket.socket takes 20 ms to import)
)


def main() -> int:
    """Pass the command line, the directory, the variables and the three streams on; return the exit code."""
    connection = Socket(AF_UNIX, SOCK_STREAM)
    connection.connect(sys.argv[1])
    request = marshal.dumps((sys.argv[2:], os.getcwd(), dict(os.environ)))  # noqa: PTH109 (pathlib takes 20 ms, too)
    streams = (SOL_SOCKET, SCM_RIGHTS, struct.pack("3i", 0, 1, 2))
    connection.sendmsg([struct.pack("Q", len(request))], [streams])
    sent = 0
    while sent < len(request):
        sent += connection.send(request[sent:])
    answer = connection.recv(1)
    return answer[0] if answer else 70  # what it died of is on our stderr


if __name__ == "__main__":
    sys.exit(main())
