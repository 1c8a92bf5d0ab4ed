"""Reading input files and writing results, with an error for each failure."""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import IO

from texpr.support.diagnostic import TexprError, error


def output_folder(path: Path) -> Path:
    """`path` as a folder that exists. Raises TexprError (E0855)."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as fault:
        raise write_error(path, fault) from None
    return path


def write_error(path: Path, fault: OSError) -> TexprError:
    """The error for a failure to write at `path`."""
    full = "; nothing is left half written" if fault.errno in (errno.ENOSPC, errno.EDQUOT) else ""
    return error("E0855", None, f"`{path}` cannot be written: {fault.strerror or fault}{full}")


def rewrite(path: Path, data: bytes) -> None:
    """Gives a file that exists a new content atomically; permissions and links stay. Raises TexprError (E0855)."""
    try:
        path = path.resolve(strict=True)
        mode = stat.S_IMODE(path.stat().st_mode)
    except (OSError, RuntimeError) as fault:
        raise write_error(path, fault if isinstance(fault, OSError) else OSError(errno.ELOOP, str(fault))) from None
    write_whole(path, lambda file: file.write(data), mode)


def write_whole(path: Path, write: Callable[[IO[bytes]], object], mode: int | None = None) -> None:
    """Writes the file `path` atomically by `write(file)`; `mode`: its permissions. Raises TexprError (E0855)."""
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as fault:
        raise write_error(path, fault) from None
    try:
        with os.fdopen(handle, "wb") as file:
            write(file)
        if mode is None:
            umask = os.umask(0)
            os.umask(umask)
            mode = 0o666 & ~umask
        os.chmod(name, mode)
        os.replace(name, path)
    except BaseException as fault:
        Path(name).unlink(missing_ok=True)
        if isinstance(fault, OSError):
            raise write_error(path, fault) from None
        raise
