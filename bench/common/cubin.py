"""What a cubin says of its kernels beside their machine code: registers, shared memory, where arguments lie.

A cubin is an ELF file. `.nv.shared.NAME` is as long as the shared memory that a kernel declares, the system's share of it
included; `.nv.info` and, of one kernel, `.nv.info.NAME` are lists of attributes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

_SECTION = struct.Struct("<IIQQQQIIQQ")
_LONG = 4
"""The form of an attribute that has a length of its own."""
_ARGUMENT, _REGISTERS = 0x17, 0x2F
"""EIATTR_KPARAM_INFO, EIATTR_REGCOUNT."""
_SYMBOL = (1 << 24) - 1


@dataclass(frozen=True, slots=True)
class Entry:
    """A kernel. `shared`: bytes that it declares, with those of the system; `arguments`: offset and size of each, in order."""

    name: str
    registers: int
    shared: int
    arguments: tuple[tuple[int, int], ...]


def entries(cubin: bytes) -> list[Entry]:
    """The kernels of a cubin."""
    sections = dict(_sections(cubin))
    registers = dict(_registers(cubin, sections.get(".nv.info", (0, 0, 0))))
    found: list[Entry] = []
    for section, (info, _, _) in sections.items():
        name = section.removeprefix(".text.")
        if name != section:
            _, shared, _ = sections.get(f".nv.shared.{name}", (0, 0, 0))
            arguments = tuple(sorted(_arguments(cubin, sections.get(f".nv.info.{name}", (0, 0, 0)))))
            found.append(Entry(name, registers.get(info & _SYMBOL, 0), shared, arguments))
    return found


def _sections(cubin: bytes) -> Iterator[tuple[str, tuple[int, int, int]]]:
    """Of each section, by name: what `sh_info` says, its size, where it lies."""
    (start,) = struct.unpack_from("<Q", cubin, 0x28)
    size, many, names = struct.unpack_from("<HHH", cubin, 0x3A)
    rows = [_SECTION.unpack_from(cubin, start + size * number) for number in range(many)]
    texts = rows[names][4]
    for name, _, _, _, at, length, _, info, _, _ in rows:
        end = cubin.index(b"\0", texts + name)
        yield cubin[texts + name : end].decode(), (info, length, at)


def _attributes(cubin: bytes, section: tuple[int, int, int]) -> Iterator[tuple[int, int]]:
    """The kind of each attribute that has a length, and where its value lies."""
    _, size, at = section
    end = at + size
    while at + 4 <= end:
        form, kind, length = struct.unpack_from("<BBH", cubin, at)
        at += 4
        if form == _LONG:
            yield kind, at
            at += length


def _registers(cubin: bytes, section: tuple[int, int, int]) -> Iterator[tuple[int, int]]:
    """Registers of a thread, by the number of the kernel's symbol."""
    for kind, at in _attributes(cubin, section):
        if kind == _REGISTERS:
            symbol, count = struct.unpack_from("<II", cubin, at)
            yield symbol, count


def _arguments(cubin: bytes, section: tuple[int, int, int]) -> Iterator[tuple[int, int]]:
    for kind, at in _attributes(cubin, section):
        if kind == _ARGUMENT:
            _, _, offset, packed = struct.unpack_from("<IHHI", cubin, at)
            yield offset, packed >> 18
