"""Lines of `.te` in machine code, for profilers and debuggers, while the `.cu` that is shipped stays as it reads.

A `.cu` says `TX_SOURCE("f.te")` once, and `TX_AT(12)` ahead of what comes from line 12. What nvcc is given says so of each
line, by `#line`, and it is asked for tables of lines (`-lineinfo`), which change no instruction. Names of files are as they are
written: folders in which a build takes place, and times, are taken out of the PTX: a build gives the same bytes anywhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_SOURCE = re.compile(r'^TX_SOURCE\(("(?:[^"\\]|\\.)*")\)', re.MULTILINE)
_AT = re.compile(r"^\s*TX_AT\((\d+)\)")
_KERNEL = re.compile(r'^extern "C"')
_FILE = re.compile(r'^(\s*\.file\s+\d+\s+)"([^"]*)"[^\n]*$', re.MULTILINE)

_NEXT = r"(?:,|\s+\.b8\s+)"
_BYTE = re.compile(r"(?<![b\d])\d+")
_MODULE = re.compile("(" + "".join(f"{byte}{_NEXT}" for byte in b"_INTERNAL_") + rf")((?:\d+{_NEXT}){{8}})(?=95\b)")
"""`_INTERNAL_` of functions that nvcc keeps to a module, and 8 digits that it makes of the folder, as bytes in `.debug_str`."""


def with_lines(text: str) -> str:
    """`text` as nvcc is given it: ahead of each line of a kernel, which line of the program it comes from."""
    source = _SOURCE.search(text)
    return text if source is None else "".join(_numbered(text, source[1]))


def _numbered(text: str, source: str) -> Iterator[str]:
    """Ahead of the first `TX_AT` of a kernel, lines stay those of the `.cu`."""
    at: str | None = None
    for number, line in enumerate(text.splitlines(keepends=True), 1):
        if _KERNEL.match(line) and at is not None:
            at = None
            yield f'#line {number} "kernel.cu"\n'
        if found := _AT.match(line):
            at = found[1]
        if at is not None:
            yield f"#line {at} {source}\n"
        yield line


def without_folders(ptx: str) -> str:
    """PTX whose files have names alone, and modules no number of the folder."""
    named = _FILE.sub(lambda found: f'{found[1]}"{found[2].rpartition("/")[2]}"', ptx)
    return _MODULE.sub(lambda found: found[1] + _BYTE.sub("48", found[2]), named)
