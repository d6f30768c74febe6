"""Files of unknown origin: opened only where they are files, and read only as far as a limit.

A named pipe, a terminal or `/dev/zero` in the place of a file would be read for ever. Whatever a user names is opened
here, and what is in a folder that a user names.
"""

import errno
import os
import stat
from typing import BinaryIO

LARGEST_TEXT = 1 << 26  # bytes of a document, a table or a program
_KINDS = {
    stat.S_IFIFO: "a named pipe",
    stat.S_IFCHR: "a character device",
    stat.S_IFBLK: "a block device",
    stat.S_IFSOCK: "a socket",
}
# A pipe without a writer is opened at once and no terminal becomes this process's. Windows has fewer of these flags.
_FLAGS = os.O_RDONLY
for _name in ("O_NONBLOCK", "O_NOCTTY", "O_BINARY"):
    _FLAGS |= getattr(os, _name, 0)


def open_file(path: str | os.PathLike[str]) -> BinaryIO:
    """A regular file, open for reading bytes. Raises: OSError, for anything else that may have a name, too."""
    try:
        opened = os.open(path, _FLAGS)
    except ValueError:  # of a name that no file can have
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), os.fspath(path)) from None
    try:
        mode = os.fstat(opened).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
        if not stat.S_ISREG(mode):
            kind = _KINDS.get(stat.S_IFMT(mode), "something else")
            raise OSError(errno.EINVAL, f"it is {kind}, not a file", os.fspath(path))
        return os.fdopen(opened, "rb")
    except BaseException:
        os.close(opened)
        raise


def read_bytes(path: str | os.PathLike[str], most: int = LARGEST_TEXT) -> bytes:
    """A file's bytes. Raises: OSError for what is no regular file, cannot be read, or has more than `most` bytes."""
    with open_file(path) as file:
        size = os.fstat(file.fileno()).st_size
        data = b"" if size > most else file.read(size + 1) or b""
        if size < len(data) <= most:  # files of /proc declare no size, and others may grow
            data += file.read(most - size) or b""
    if max(size, len(data)) > most:
        found = f"{size:,} bytes" if size > most else "more"
        raise OSError(errno.EFBIG, f"it has {found}, and at most {most:,} are read", os.fspath(path))
    return data


def read_text(path: str | os.PathLike[str], most: int = LARGEST_TEXT) -> str:
    """A file's text, in UTF-8. Raises: OSError as `read_bytes` does; UnicodeDecodeError, a ValueError."""
    return read_bytes(path, most).decode("utf-8")
