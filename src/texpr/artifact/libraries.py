"""The compiled files of an artifact: libraries, and device code. All other files are text."""

from __future__ import annotations

from collections.abc import Sequence

from texpr.artifact.record import HOST_LIBRARIES, Recorded
from texpr.artifact.texts.sources import (
    Part,
    Variant,
    cpu_source_headers,
    cpu_sources,
    cuda_source_headers,
    image_files,
    image_sources,
    launchers,
    public_headers,
    variants,
    where,
)  # fmt: skip
from texpr.artifact.tools import DeviceCode, Made, Tools
from texpr.backends.c.names import identifier
from texpr.isa.registry import resolve
from texpr.support.diagnostic import error

CPU_FLAGS = ("-fno-exceptions", "-fno-rtti")
"""Compiler flags for CPU code, in addition to the common ones."""


def make(tools: Tools, name: str, parts: Sequence[Part]) -> Made:
    """Compiles the sources of `parts` for an artifact called `name`. Raises as the compilers do (E06)."""
    return _cpu(tools, name, parts) if where(parts) == "cpu" else _cuda(tools, name, parts)


def binary_paths(record: Recorded) -> tuple[str, ...]:
    """The compiled files, by path."""
    libraries = [f"lib/libtexpr_{record.name}.so", f"lib/libtexpr_{record.name}.a"]
    if record.on != "cuda":
        return tuple(libraries)
    for function in map(identifier, record.functions):
        libraries += (f"lib/{function}.{target}.{kind}" for target in record.targets for kind in ("cubin", "ptx"))
        libraries += (f"lib/{function}.fatbin",) if record.fatbin else ()
    return tuple(libraries)


def image_origins(parts: Sequence[Part]) -> dict[str, tuple[str, str]]:
    """The sources that embed device code, by path: the name of the array, and the path of the code."""
    if where(parts) != "cuda":
        return {}
    found = [variants(parts, at) for at in range(len(parts[0].plans))]
    return {
        f"src/{path}": (symbol, f"lib/{identifier(each[0].plan.name)}.{target}.{kind}")
        for each in found
        for path, (symbol, target, kind) in image_files(each).items()
    }


def _cpu(tools: Tools, name: str, parts: Sequence[Part]) -> Made:
    if len(parts) != 1:
        raise error("E0805", None, "an artifact for a CPU has one target")
    openmp, march = tools.openmp(), resolve(parts[0].target).march
    shared, static = tools.library(
        f"texpr_{name}",
        cpu_sources(parts[0]),
        {**cpu_source_headers(), **public_headers(name, parts[0].plans, "cpu")},
        flags=CPU_FLAGS,
        openmp=True,
        march=march,
    )
    linked = ("m",) if openmp is None else (openmp, "m")
    flags = tools.flags(device=False, told=CPU_FLAGS, openmp=True, march=march)
    return Made(_libraries(name, shared, static), {}, linked, False, tools.versions(device=False), flags)


def _cuda(tools: Tools, name: str, parts: Sequence[Part]) -> Made:
    functions = [variants(parts, at) for at in range(len(parts[0].plans))]
    headers = cuda_source_headers()
    wanted = [(variant.text, target) for found in functions for variant in found for target in variant.targets]
    codes = iter(tools.devices(wanted, headers))
    sources, files = launchers(name, functions), dict[str, bytes]()
    binaries: dict[tuple[str, str], DeviceCode] = {}
    joined = True
    for found in functions:
        compiled = {target: next(codes) for variant in found for target in variant.targets}
        sources |= image_sources(found, compiled)
        binaries |= {(found[0].plan.name, target): binary for target, binary in compiled.items()}
        extra, whole = _device_files(tools, found, [compiled[part.target] for part in parts])
        files, joined = {**files, **extra}, joined and whole
    shared, static = tools.library(
        f"texpr_{name}",
        sources,
        {**headers, **public_headers(name, parts[0].plans, "cuda")},
        libraries=HOST_LIBRARIES,
    )
    files |= _libraries(name, shared, static)
    return Made(files, binaries, HOST_LIBRARIES, joined, tools.versions(device=True), tools.flags(device=True))


def _libraries(name: str, shared: bytes, static: bytes) -> dict[str, bytes]:
    return {f"lib/libtexpr_{name}.so": shared, f"lib/libtexpr_{name}.a": static}


def _device_files(tools: Tools, found: Sequence[Variant], compiled: Sequence[DeviceCode]) -> tuple[dict[str, bytes], bool]:
    """Cubins and PTX of a function as files, and a fatbin of all of them if possible; and whether it was."""
    function, files = identifier(found[0].plan.name), dict[str, bytes]()
    for binary in compiled:
        files[f"lib/{function}.{binary.target}.cubin"] = binary.cubin
        files[f"lib/{function}.{binary.target}.ptx"] = binary.ptx
    joined = tools.fatbin([(binary.target, binary.cubin, binary.ptx) for binary in compiled])
    return (files, False) if joined is None else ({**files, f"lib/{function}.fatbin": joined}, True)
