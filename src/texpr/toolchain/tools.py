"""The compilers of a machine as one object, located on first use: the implementation of the interface for builds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from texpr.support.record import Mutable
from texpr.toolchain.cuda import (
    FLAGS,
    TO_CUBIN,
    CudaBinary,
    Nvcc,
    compile_all,
    compile_cuda,
    find_beside,
    find_nvcc,
    make_fatbin,
)
from texpr.toolchain.host import HostCompiler, HostJob, build_host, find_host, host_flags, native_features
from texpr.toolchain.machine import Machine

OPENMP = {"gnu": "gomp", "clang": "omp"}
"""The library that OpenMP needs at run time, by family of compiler."""


class Toolchain(Mutable):
    """The compilers of `machine`. Every method may raise `TexprError` (E06), and those that compile `CompilerBug`. `progress`
    is called with each `.cu` that is compiled."""

    machine: Machine
    progress: Callable[[str], None] = lambda done: None
    _host: HostCompiler | None = None
    _nvcc: Nvcc | None = None

    @property
    def host(self) -> HostCompiler:
        """The host's compiler."""
        if self._host is None:
            self._host = find_host(self.machine)
        return self._host

    @property
    def nvcc(self) -> Nvcc:
        """The CUDA compiler."""
        if self._nvcc is None:
            self._nvcc = find_nvcc(self.machine)
        return self._nvcc

    def versions(self, *, device: bool) -> Mapping[str, str]:
        """The names and versions of the compilers; with `device`, nvcc's release too."""
        found = {"host": self.host.version}
        return {**found, "nvcc": self.nvcc.release} if device else found

    def flags(
        self, *, device: bool, told: Sequence[str] = (), openmp: bool = False, march: str = ""
    ) -> Mapping[str, list[str]]:
        """The flags of `library` for the host's compiler, and with `device`, of nvcc; and the architecture."""
        job = HostJob("", {}, flags=tuple(told), openmp=openmp, march=march)
        found = {"architecture": [self.machine.architecture], "host": list(host_flags(self.machine, self.host, job))}
        return {**found, "nvcc": [*FLAGS, "-ptx"], "ptxas": [*TO_CUBIN]} if device else found

    def openmp(self) -> str | None:
        """The library that OpenMP needs at run time, if there is OpenMP."""
        return OPENMP.get(self.host.kind) if self.host.openmp else None

    def library(
        self, name: str, sources: Mapping[str, str], headers: Mapping[str, str], *, flags: Sequence[str] = (),
        libraries: Sequence[str] = (), openmp: bool = False, march: str = "",
    ) -> tuple[bytes, bytes]:  # fmt: skip
        """The shared and the static library of C and C++ sources, for any machine of this architecture, or from `march` on."""
        job = HostJob(name, sources, headers, tuple(flags), tuple(libraries), openmp=openmp, static=True, march=march)
        built = build_host(self.machine, self.host, job)
        assert built.static is not None
        return built.shared, built.static

    def has(self, feature: str) -> bool:
        """Whether this processor has a feature, by its predefined macro, such as "__AVX512F__"."""
        return feature in native_features(self.machine, self.host)

    def loadable(
        self, name: str, sources: Mapping[str, str], headers: Mapping[str, str], *, flags: Sequence[str] = (),
        libraries: Sequence[str] = (), openmp: bool = False,
    ) -> Path:  # fmt: skip
        """A shared library of C and C++ sources for this processor only, as a loadable file."""
        job = HostJob(name, sources, headers, tuple(flags), tuple(libraries), native=True, openmp=openmp)
        return build_host(self.machine, self.host, job).path

    def device(self, text: str, headers: Mapping[str, str], target: str) -> CudaBinary:
        """A `.cu` for a CUDA target."""
        return compile_cuda(self.machine, self.nvcc, text, headers, target)

    def devices(self, wanted: Sequence[tuple[str, str]], headers: Mapping[str, str]) -> Sequence[CudaBinary]:
        """Each `.cu` compiled for a CUDA target, given its text and the target's name, in order."""
        return compile_all(self.machine, self.nvcc, wanted, headers, self.progress)

    def fatbin(self, codes: Sequence[tuple[str, bytes, bytes]]) -> bytes | None:
        """One file with code for several targets (each a name, a cubin, PTX), or None if there is no fatbinary."""
        if find_beside(self.machine, self.nvcc, "fatbinary") is None:
            return None
        return make_fatbin(self.machine, self.nvcc, codes)
