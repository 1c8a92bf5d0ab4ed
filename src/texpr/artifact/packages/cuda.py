"""Artifacts for CUDA devices: launchers in C with the code of every target embedded, and that code as files."""

from __future__ import annotations

from collections.abc import Sequence

from texpr.artifact.packages.package import Images, Package, libraries_of
from texpr.artifact.record import HOST_LIBRARIES, Recorded
from texpr.artifact.texts.platform import CUDA
from texpr.artifact.texts.sources import (
    Part,
    Variant,
    cuda_source_headers,
    emulator_sources,
    image_files,
    image_sources,
    launchers,
    public_headers,
    variants,
)  # fmt: skip
from texpr.artifact.tools import DeviceCode, Made, Tools
from texpr.backends.c.names import identifier


def _functions(parts: Sequence[Part]) -> list[tuple[Variant, ...]]:
    return [variants(parts, at) for at in range(len(parts[0].plans))]


def _sources(name: str, parts: Sequence[Part]) -> dict[str, str]:
    functions = _functions(parts)
    kernels = {variant.path(number): variant.text for found in functions for number, variant in enumerate(found)}
    emulator = {f"emulator/{path}": text for path, text in emulator_sources().items()}
    return {**launchers(name, functions), **cuda_source_headers(), **kernels, **emulator}


def _make(tools: Tools, name: str, parts: Sequence[Part]) -> Made:
    functions = _functions(parts)
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
        {**headers, **public_headers(name, parts[0].plans, CUDA)},
        libraries=HOST_LIBRARIES,
    )
    files |= dict(zip(libraries_of(name), (shared, static), strict=True))
    return Made(files, binaries, HOST_LIBRARIES, joined, tools.versions(device=True), tools.flags(device=True))


def _device_files(tools: Tools, found: Sequence[Variant], compiled: Sequence[DeviceCode]) -> tuple[dict[str, bytes], bool]:
    """Cubins and PTX of a function as files, and a fatbin of all of them if possible; and whether it was."""
    function, files = identifier(found[0].plan.name), dict[str, bytes]()
    for binary in compiled:
        files[f"lib/{function}.{binary.target}.cubin"] = binary.cubin
        files[f"lib/{function}.{binary.target}.ptx"] = binary.ptx
    joined = tools.fatbin([(binary.target, binary.cubin, binary.ptx) for binary in compiled])
    return (files, False) if joined is None else ({**files, f"lib/{function}.fatbin": joined}, True)


def _binaries(record: Recorded) -> tuple[str, ...]:
    found = [*libraries_of(record.name)]
    for function in map(identifier, record.functions):
        found += (f"lib/{function}.{target}.{kind}" for target in record.targets for kind in ("cubin", "ptx"))
        found += (f"lib/{function}.fatbin",) if record.fatbin else ()
    return tuple(found)


def _images(parts: Sequence[Part]) -> Images:
    return {
        f"src/{path}": (symbol, f"lib/{identifier(each[0].plan.name)}.{target}.{kind}")
        for each in _functions(parts)
        for path, (symbol, target, kind) in image_files(each).items()
    }


PACKAGE = Package(CUDA, _sources, _make, _binaries, _images)
