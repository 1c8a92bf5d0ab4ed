"""What an artifact needs of a machine's compilers. The room `toolchain` has it; a test may hand in something else."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol, TypeAlias

from texpr.support.record import Record

Share: TypeAlias = Callable[[Callable[[int], bytes], Sequence[str]], Iterator[bytes]]
"""Answers of a task for 0, 1, … as many as there are names, in order; other processes may find them."""


def in_turn(task: Callable[[int], bytes], names: Sequence[str]) -> Iterator[bytes]:
    """The answers, found one after the other."""
    return map(task, range(len(names)))


class Usage(Protocol):
    """What one kernel takes of a device; its fields are those of the manifest."""

    @property
    def kernel(self) -> str:
        """Its name."""
        ...

    def numbers(self) -> Mapping[str, int]:
        """Registers, bytes and so on, by name."""
        ...


class DeviceCode(Protocol):
    """A `.cu` compiled for one target."""

    @property
    def target(self) -> str:
        """Such as `sm_90a`."""
        ...

    @property
    def cubin(self) -> bytes:
        """Machine code, for this target alone."""
        ...

    @property
    def ptx(self) -> bytes:
        """PTX, which a driver can translate for this target, and if that has no suffix for later ones."""
        ...

    @property
    def kernels(self) -> Sequence[Usage]:
        """What each kernel takes."""
        ...


class Tools(Protocol):
    """The compilers of a machine. Every method may raise `TexprError` (E06) or `CompilerBug`."""

    def versions(self, *, device: bool) -> Mapping[str, str]:
        """What the compilers call themselves; with `device`, the device's too."""
        ...

    def flags(
        self, *, device: bool, told: Sequence[str] = (), openmp: bool = False, march: str = ""
    ) -> Mapping[str, Sequence[str]]:
        """What `library` tells the host's compiler, and with `device`, what the device's is told; of which machine."""
        ...

    def openmp(self) -> str | None:
        """The library that OpenMP needs at run time, if there is OpenMP."""
        ...

    def library(
        self, name: str, sources: Mapping[str, str], headers: Mapping[str, str], *, flags: Sequence[str] = (),
        libraries: Sequence[str] = (), openmp: bool = False, march: str = "",
    ) -> tuple[bytes, bytes]:  # fmt: skip
        """The shared and the static library of C (`.c`) and C++ (`.cpp`) sources, for any machine of this architecture, or of
        those from `march` on."""
        ...

    def devices(self, wanted: Sequence[tuple[str, str]], headers: Mapping[str, str]) -> Sequence[DeviceCode]:
        """Each `.cu` for a CUDA target, of its text and the target's name, in order."""
        ...

    def fatbin(self, codes: Sequence[tuple[str, bytes, bytes]]) -> bytes | None:
        """One file with code for several targets (each a name, a cubin, PTX), or None where that cannot be made here."""
        ...


class Made(Record):
    """What compilers make of an artifact's sources: `files` by path, and `codes` by function and target.

    `libraries`: what is to be linked beside it; `fatbin`: whether the code for all targets could be joined; `tools` and
    `flags`: what the compilers call themselves, and what they were told.
    """

    files: Mapping[str, bytes]
    codes: Mapping[tuple[str, str], DeviceCode]
    libraries: tuple[str, ...]
    fatbin: bool
    tools: Mapping[str, str]
    flags: Mapping[str, Sequence[str]]
