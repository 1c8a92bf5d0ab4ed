"""Runs emitted CUDA, unchanged, on a CPU: threads as fibers, interleavings by seed, detection of races and other faults.

    include/   headers that take the place of CUDA where a `.cu` is compiled for a host
    core/      the core in C++: schedules, detectors, counters, and CUDA's driver interface
    compile    builds both with a host compiler;  harness  runs kernels on NumPy arrays

Shares nothing with lowering or the printers: it implements the rules of CUDA independently, so that their faults show here.
"""

from texpr.emulator.compile import build_core, build_kernels, image
from texpr.emulator.counts import Counts
from texpr.emulator.harness import IN_ORDER, LOCKSTEP, Emulated, build
from texpr.emulator.report import Fault, Party, Report, parse_reports
from texpr.emulator.sources import core_texts, headers

__all__ = [
    "IN_ORDER", "LOCKSTEP", "Counts", "Emulated", "Fault", "Party", "Report", "build", "build_core", "build_kernels",
    "core_texts", "headers", "image", "parse_reports",
]  # fmt: skip
