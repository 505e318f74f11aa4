"""Reading and writing text files of any encoding, with htools' error messages."""

from __future__ import annotations

from gpolicy.errors import InputError

_STANDARD_INPUT = 0


def read_file(path: str) -> str:
    """Return a file's text. Raises InputError with htools' message."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:  # noqa: PTH123 - pathlib is slow to import
            return file.read()
    except FileNotFoundError:
        reason = "does not exist (No such file or directory)"
    except IsADirectoryError:
        reason = "inappropriate type (is a directory)"
    except PermissionError:
        reason = "permission denied (Permission denied)"
    except (OSError, ValueError) as error:
        reason = str(error)
    raise InputError(f"{path}: openFile: {reason}")


def read_input(name: str) -> str:
    """Return the text of the file `name`, or of standard input for `-`. Raises InputError."""
    if name != "-":
        return read_file(name)
    try:
        with open(_STANDARD_INPUT, encoding="utf-8", errors="surrogateescape", closefd=False) as file:
            return file.read()
    except OSError as error:
        raise InputError(f"standard input: {error.strerror}") from None


def write_file(path: str, text: str) -> None:
    """Write `text` to a file. Raises InputError."""
    try:
        with open(path, "w", encoding="utf-8", errors="surrogateescape") as file:  # noqa: PTH123
            file.write(text)
    except OSError as error:
        raise InputError(f"{path}: cannot write: {error.strerror}") from None
    except ValueError as error:  # text that cannot be encoded, or a name with a null byte
        raise InputError(f"{path}: cannot write: {error}") from None
