"""Line tables of `.te` files in machine code, for profilers and debuggers, with the shipped `.cu` left readable.

A `.cu` has `TX_SOURCE("f.te")` once, and `TX_AT(12)` before code that comes from line 12. The text for nvcc has `#line`
directives instead, and is compiled with `-lineinfo`, which changes no instruction. File names are as written: build folders
and times are removed from the PTX, so that a build is reproducible anywhere.
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
"""`_INTERNAL_` in the names of module-local functions, and 8 digits that nvcc derives from the folder, as bytes in
`.debug_str`."""


def with_lines(text: str) -> str:
    """`text` for nvcc: a `#line` directive before each line of a kernel, with its line in the program."""
    source = _SOURCE.search(text)
    return text if source is None else "".join(_numbered(text, source[1]))


def _numbered(text: str, source: str) -> Iterator[str]:
    """Before the first `TX_AT` of a kernel, lines are those of the `.cu`."""
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
    """PTX with file names without folders, and without module numbers derived from the folder."""
    named = _FILE.sub(lambda found: f'{found[1]}"{found[2].rpartition("/")[2]}"', ptx)
    return _MODULE.sub(lambda found: found[1] + _BYTE.sub("48", found[2]), named)
