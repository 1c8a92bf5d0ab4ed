"""Compilers of this machine: located, run without a shell, with a cache of results by content.

The entry point is a `Machine` (`this_machine()` reads the environment, once). A failed tool is attributed either to the
machine (`TexprError`, E06) or to this compiler (`CompilerBug`, with the refused source kept).
"""

from texpr.toolchain.cache import Cache
from texpr.toolchain.cuda import CudaBinary, Nvcc, compile_cuda, disassemble, find_nvcc, make_fatbin
from texpr.toolchain.doctor import Finding, State, doctor, runs_on
from texpr.toolchain.host import HostBinary, HostCompiler, HostJob, build_host, find_host
from texpr.toolchain.machine import Machine, this_machine, usable_cores
from texpr.toolchain.resources import Resources
from texpr.toolchain.tools import Toolchain
from texpr.toolchain.workers import shared

__all__ = [
    "Cache", "CudaBinary", "Finding", "HostBinary", "HostCompiler", "HostJob", "Machine", "Nvcc", "Resources", "State",
    "Toolchain", "build_host", "compile_cuda", "disassemble", "doctor", "find_host", "find_nvcc", "make_fatbin", "runs_on",
    "shared", "this_machine", "usable_cores",
]  # fmt: skip
