"""Reading programs, from files with an error for each failure."""

from __future__ import annotations

import errno
from collections.abc import Mapping
from pathlib import Path
from typing import IO

from texpr.frontend import read
from texpr.frontend.tree import ConstParam, Fn, Tree
from texpr.ir.program import Program
from texpr.support.diagnostic import TexprError, error
from texpr.support.span import Source, Span

LARGEST_SOURCE = 16 * 1024 * 1024
"""In bytes. A program written by hand has thousands; a larger file is a mistake."""


def program_of(source: Source, sizes: Mapping[str, int]) -> tuple[Program, dict[str, int]]:
    """The program of a text, its consts fixed by `sizes`, and the remaining sizes. Raises TexprError."""

    def consts(tree: Tree) -> dict[str, int]:
        names = const_names(tree)
        return {name: value for name, value in sizes.items() if name in names}

    tree, program = read(source.text, source.name, consts)
    return program, {name: value for name, value in sizes.items() if name not in consts(tree)}


def const_names(tree: Tree) -> frozenset[str]:
    """The consts of every function of a file."""
    functions = (item for item in tree.items if isinstance(item, Fn))
    return frozenset(param.name.name for fn in functions for param in fn.params if isinstance(param, ConstParam))


def open_error(path: Path, fault: OSError) -> TexprError:
    """The error for a `path` that cannot be opened or read."""
    match fault:
        case FileNotFoundError():
            return error("E0850", None, f"there is no file `{path}`")
        case IsADirectoryError():
            return error("E0851", None, f"`{path}` is a folder, not a file")
        case _:
            return error("E0852", None, f"`{path}` cannot be read: {fault.strerror or fault}")


def read_source(path: Path) -> Source:
    """The text of a `.te` file. Raises TexprError (E0850–E0854)."""
    return decoded(str(path), read_bytes(path))


def read_bytes(path: Path) -> bytes:
    """The content of a `.te` file. Raises TexprError (E0850–E0852, E0854)."""
    try:
        with path.open("rb") as file:
            return limited(str(path), file)
    except (OSError, ValueError) as fault:
        raise open_error(path, fault if isinstance(fault, OSError) else OSError(errno.EINVAL, str(fault))) from None


def limited(name: str, file: IO[bytes]) -> bytes:
    """What is left in `file`. Raises TexprError E0854 where that is too much for a program."""
    data = file.read(LARGEST_SOURCE + 1)
    if len(data) > LARGEST_SOURCE:
        size = f"{LARGEST_SOURCE // (1024 * 1024)} MiB"
        raise error("E0854", None, f"`{name}` is larger than {size}", help="is this a program? It is read as one `.te` text")
    return data


def decoded(name: str, data: bytes) -> Source:
    """A text from its bytes, without a byte order mark. Raises TexprError E0853."""
    try:
        return Source(name, data.decode("utf-8-sig"))
    except UnicodeDecodeError as fault:
        raise _not_utf8(name, data, fault) from None


def _not_utf8(name: str, data: bytes, fault: UnicodeDecodeError) -> TexprError:
    """The error at the first byte that is not UTF-8, in the text as far as it can be shown."""
    shown = Source(name, data.decode("utf-8", errors="replace"))
    at = len(data[: fault.start].decode("utf-8", errors="replace"))
    message = f"byte {fault.start} (0x{data[fault.start]:02x}) is not UTF-8"
    return error("E0853", Span(shown, at, at + 1), message, help="save the file as UTF-8")
