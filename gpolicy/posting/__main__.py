"""`python -m gpolicy.posting`, the name that `gpolicy post` had."""

import sys

from gpolicy.__main__ import main

if __name__ == "__main__":
    sys.argv[1:1] = ["post"]
    sys.exit(main())
