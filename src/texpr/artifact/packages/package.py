"""What a backend answers when an artifact is made: which files it has, and how they are built."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from texpr.artifact.record import Recorded
from texpr.artifact.texts.platform import Platform
from texpr.artifact.texts.sources import Part
from texpr.artifact.tools import Made, Tools
from texpr.support.record import Record

Images: TypeAlias = Mapping[str, tuple[str, str]]
"""Sources that embed device code, by path: the name of the array, and the path of the code."""


class Package(Record):
    """The artifacts of one backend.

    `sources`: for a name and parts the compiled sources and their headers, by path below src/, without embedded binaries.
    `make`: compiles them; raises as the compilers do (E06). `binaries`: paths of the compiled files. `images`: the sources that
    embed device code.
    """

    platform: Platform
    sources: Callable[[str, Sequence[Part]], dict[str, str]]
    make: Callable[[Tools, str, Sequence[Part]], Made]
    binaries: Callable[[Recorded], tuple[str, ...]]
    images: Callable[[Sequence[Part]], Images]


def libraries_of(name: str) -> tuple[str, str]:
    """The paths of the libraries: the shared one, and the static one."""
    return f"lib/libtexpr_{name}.so", f"lib/libtexpr_{name}.a"
