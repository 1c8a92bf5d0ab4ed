"""The interface of an artifact to a machine's compilers, implemented by `toolchain`; tests may pass something else."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol, TypeAlias

from texpr.support.record import Record

Share: TypeAlias = Callable[[Callable[[int], bytes], Sequence[str]], Iterator[bytes]]
"""The results of a task for 0, 1, … as many as there are names, in order; other processes may compute them."""


def in_turn(task: Callable[[int], bytes], names: Sequence[str]) -> Iterator[bytes]:
    """The results, computed sequentially."""
    return map(task, range(len(names)))


class Usage(Protocol):
    """The device resources of one kernel; its fields are those of the manifest."""

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
        """The target, such as `sm_90a`."""
        ...

    @property
    def cubin(self) -> bytes:
        """Machine code, for this target only."""
        ...

    @property
    def ptx(self) -> bytes:
        """PTX, which a driver can translate for this target and, if it has no suffix, for later ones."""
        ...

    @property
    def kernels(self) -> Sequence[Usage]:
        """The resources of each kernel."""
        ...


class Tools(Protocol):
    """The compilers of a machine. Every method may raise `TexprError` (E06) or `CompilerBug`."""

    def versions(self, *, device: bool) -> Mapping[str, str]:
        """The names and versions of the compilers; with `device`, of the device compiler, too."""
        ...

    def flags(
        self, *, device: bool, told: Sequence[str] = (), openmp: bool = False, march: str = ""
    ) -> Mapping[str, Sequence[str]]:
        """The flags of `library` for the host's compiler, and with `device`, of the device compiler; and the architecture."""
        ...

    def openmp(self) -> str | None:
        """The library that OpenMP needs at run time, if there is OpenMP."""
        ...

    def library(
        self, name: str, sources: Mapping[str, str], headers: Mapping[str, str], *, flags: Sequence[str] = (),
        libraries: Sequence[str] = (), openmp: bool = False, march: str = "",
    ) -> tuple[bytes, bytes]:  # fmt: skip
        """The shared and the static library of C (`.c`) and C++ (`.cpp`) sources, for any machine of this architecture, or
        for those from `march` on."""
        ...

    def devices(self, wanted: Sequence[tuple[str, str]], headers: Mapping[str, str]) -> Sequence[DeviceCode]:
        """Each `.cu` compiled for a CUDA target, given its text and the target's name, in order."""
        ...

    def fatbin(self, codes: Sequence[tuple[str, bytes, bytes]]) -> bytes | None:
        """One file with code for several targets (each a name, a cubin, PTX), or None where it cannot be made here."""
        ...


class Made(Record):
    """The compiled files of an artifact: `files` by path, and `codes` by function and target.

    `libraries`: what is to be linked in addition; `fatbin`: whether the code for all targets could be combined; `tools` and
    `flags`: the names and versions of the compilers, and their flags.
    """

    files: Mapping[str, bytes]
    codes: Mapping[tuple[str, str], DeviceCode]
    libraries: tuple[str, ...]
    fatbin: bool
    tools: Mapping[str, str]
    flags: Mapping[str, Sequence[str]]
