"""Artifacts for a CPU: C++ with OpenMP, in one library."""

from __future__ import annotations

from collections.abc import Sequence

from texpr.artifact.packages.package import Package, libraries_of
from texpr.artifact.texts.platform import CPU
from texpr.artifact.texts.sources import Part, cpu_source_headers, cpu_sources, public_headers
from texpr.artifact.tools import Made, Tools
from texpr.isa.registry import resolve
from texpr.support.diagnostic import error

CPU_FLAGS = ("-fno-exceptions", "-fno-rtti")
"""Compiler flags for CPU code, in addition to the common ones."""


def _sources(_: str, parts: Sequence[Part]) -> dict[str, str]:
    return {**cpu_sources(parts[0]), **cpu_source_headers()}


def _make(tools: Tools, name: str, parts: Sequence[Part]) -> Made:
    if len(parts) != 1:
        raise error("E0805", None, "an artifact for a CPU has one target")
    openmp, march = tools.openmp(), resolve(parts[0].target).march
    shared, static = tools.library(
        f"texpr_{name}",
        cpu_sources(parts[0]),
        {**cpu_source_headers(), **public_headers(name, parts[0].plans, CPU)},
        flags=CPU_FLAGS,
        openmp=True,
        march=march,
    )
    linked = ("m",) if openmp is None else (openmp, "m")
    flags = tools.flags(device=False, told=CPU_FLAGS, openmp=True, march=march)
    return Made(
        dict(zip(libraries_of(name), (shared, static), strict=True)), {}, linked, False, tools.versions(device=False), flags
    )


PACKAGE = Package(CPU, _sources, _make, lambda record: libraries_of(record.name), lambda _: {})
