"""What is installed, and what each target supports here."""

from __future__ import annotations

import ctypes
import os
from enum import Enum

from texpr.support.diagnostic import Diagnostic, TexprError
from texpr.support.record import Record
from texpr.toolchain.cuda import Nvcc, capability, find_beside, find_nvcc, help_for
from texpr.toolchain.host import HostCompiler, find_host
from texpr.toolchain.machine import Machine

TARGETS = ("sm_80", "sm_90a", "sm_100a")
"""The CUDA targets that are checked."""

BESIDE = (
    ("fatbinary", "an artifact then has no fatbin"),
    ("nvdisasm", "machine code cannot be shown"),
)
"""Optional tools of the CUDA toolkit, and what is lost without them."""


class State(Enum):
    """The state of a finding."""

    OK = "ok"
    LIMITED = "limited"
    MISSING = "missing"


class Finding(Record):
    """A finding: its subject, its state, details, and a remedy."""

    subject: str
    state: State
    detail: str
    help: str | None = None


def doctor(machine: Machine) -> list[Finding]:
    """Looks for every tool, and reports for each target whether it builds and runs here."""
    host, nvcc = _host(machine), _nvcc(machine)
    return [*_tools(machine, host, nvcc), _cache(machine), *_targets(host, nvcc, find_device())]


def find_device() -> tuple[int, int] | str:
    """The compute capability of the first GPU, or why there is none."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return "no CUDA driver (libcuda.so.1)"
    major, minor, device = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
    if driver.cuInit(0) != 0 or driver.cuDeviceGet(ctypes.byref(device), 0) != 0:
        return "a CUDA driver, but no device"
    driver.cuDeviceGetAttribute(ctypes.byref(major), 75, device)  # cuda.h: COMPUTE_CAPABILITY_MAJOR, _MINOR
    driver.cuDeviceGetAttribute(ctypes.byref(minor), 76, device)
    return major.value, minor.value


def runs_on(target: str, device: tuple[int, int]) -> bool:
    """Whether code for `target` runs on a device: exactly that one for `sm_90a`, else the same or later ones of its
    generation."""
    major, minor, suffix = capability(target)
    return device == (major, minor) if suffix else device[0] == major and device[1] >= minor


def _host(machine: Machine) -> HostCompiler | Diagnostic:
    try:
        return find_host(machine)
    except TexprError as reason:
        return reason.diagnostics[0]


def _nvcc(machine: Machine) -> Nvcc | Diagnostic:
    try:
        return find_nvcc(machine)
    except TexprError as reason:
        return reason.diagnostics[0]


def _tools(machine: Machine, host: HostCompiler | Diagnostic, nvcc: Nvcc | Diagnostic) -> list[Finding]:
    found: list[Finding] = []
    if isinstance(host, Diagnostic):
        found.append(Finding("C++ compiler", State.MISSING, host.message, host.help))
    else:
        version = host.version.splitlines()[0] if host.version else "no version"
        found.append(Finding("C++ compiler", State.OK, f"{' '.join(host.command)} ({version})"))
        found.append(_openmp(host))
        found.append(_archiver(host))
    if isinstance(nvcc, Diagnostic):
        found.append(Finding("CUDA compiler", State.MISSING, nvcc.message, nvcc.help))
    else:
        found.append(Finding("CUDA compiler", State.OK, f"{nvcc.program} ({nvcc.release})"))
        found.extend(_optional(machine, nvcc, tool, use) for tool, use in BESIDE)
    return found


def _openmp(host: HostCompiler) -> Finding:
    if host.openmp:
        return Finding("OpenMP", State.OK, "CPU code uses all cores")
    return Finding("OpenMP", State.LIMITED, "not there: CPU code uses one core", "install g++, or libomp for clang")


def _archiver(host: HostCompiler) -> Finding:
    if host.archiver:
        return Finding("archiver", State.OK, " ".join(host.archiver))
    return Finding(
        "archiver", State.MISSING, "no ar, which `texpr build` needs", "install binutils (Debian: apt install binutils)"
    )


def _optional(machine: Machine, nvcc: Nvcc, tool: str, use: str) -> Finding:
    place = find_beside(machine, nvcc, tool)
    return Finding(tool, State.OK, str(place)) if place else Finding(tool, State.LIMITED, f"not found; {use}", help_for(tool))


def _cache(machine: Machine) -> Finding:
    place = machine.cache
    while not place.exists() and place != place.parent:
        place = place.parent
    if os.access(place, os.W_OK):
        return Finding("cache", State.OK, str(machine.cache))
    told = f"{machine.cache} cannot be written: everything is built again each time"
    return Finding("cache", State.LIMITED, told, "set TEXPR_CACHE to a folder that can")


def _targets(host: HostCompiler | Diagnostic, nvcc: Nvcc | Diagnostic, device: tuple[int, int] | str) -> list[Finding]:
    """The interpreter is not checked: it needs Python only."""
    found: list[Finding] = []
    for target in ("cpu", "emulator"):
        if isinstance(host, Diagnostic):
            found.append(Finding(f"target {target}", State.MISSING, "needs a C++ compiler", host.help))
        else:
            found.append(Finding(f"target {target}", State.OK, "builds and runs"))
    found.extend(_cuda_target(target, nvcc, device) for target in TARGETS)
    return found


def _cuda_target(target: str, nvcc: Nvcc | Diagnostic, device: tuple[int, int] | str) -> Finding:
    subject = f"target {target}"
    if isinstance(nvcc, Diagnostic):
        return Finding(subject, State.MISSING, "cannot be built; the emulator can still run it", nvcc.help)
    major, minor, _ = capability(target)
    if major * 10 + minor not in nvcc.architectures:
        return Finding(subject, State.MISSING, f"nvcc {nvcc.release} does not know it", "use a newer CUDA toolkit")
    if isinstance(device, str):
        return Finding(subject, State.LIMITED, f"builds; does not run here: {device}; the emulator can run it")
    if not runs_on(target, device):
        return Finding(subject, State.LIMITED, f"builds; does not run here: the device is sm_{device[0]}{device[1]}")
    return Finding(subject, State.OK, "builds and runs")
