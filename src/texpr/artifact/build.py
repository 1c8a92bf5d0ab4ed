"""Builds an artifact: sources, libraries, packages for C++ and Rust, and a manifest, in one folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from texpr import __version__
from texpr.artifact.cxx import print_cxx
from texpr.artifact.manifest import print_manifest
from texpr.artifact.place import MANIFEST, SUMS, publish, refuse_foreign, sums
from texpr.artifact.proofs import proof_files
from texpr.artifact.rust import print_crate
from texpr.artifact.sources import (
    Part,
    cpu_source_headers,
    cpu_sources,
    cuda_source_headers,
    emulator_sources,
    family,
    image_sources,
    launchers,
    public_headers,
    variants,
    where,
)  # fmt: skip
from texpr.artifact.template import template
from texpr.artifact.tools import DeviceCode, Tools
from texpr.backends.c.arguments import function_name
from texpr.backends.c.names import identifier
from texpr.isa.registry import resolve
from texpr.support.diagnostic import error
from texpr.support.record import Record

SUFFIXES = ("", "_workspace_bytes", "_validate", "_load", "_unload", "_supported")
"""The C functions that each function has."""

HOST_LIBRARIES = ("dl", "pthread")
"""What a launcher needs of the host, which every host has."""


class Artifact(Record):
    """What was built: where, for which targets, every file, and what ptxas said of each kernel (function, target → binary)."""

    directory: Path
    name: str
    targets: tuple[str, ...]
    files: tuple[str, ...]
    binaries: Mapping[tuple[str, str], DeviceCode]


class Built(Record):
    """The sources (by path below src/) and the libraries of an artifact; `extra` are further files of lib/."""

    sources: Mapping[str, str]
    shared: bytes
    static: bytes
    extra: Mapping[str, bytes]
    libraries: tuple[str, ...]
    binaries: Mapping[tuple[str, str], DeviceCode]
    tools: Mapping[str, str]


def build(tools: Tools, name: str, parts: Sequence[Part], directory: Path, *, version: str = __version__) -> Artifact:
    """Build the functions of `parts` into `directory`, whole or not at all; the same input gives the same bytes.

    Raises `TexprError`: nothing to build or a mixture of targets (E0805–E0807), a folder that is not ours or cannot be written
    (E0810–E0812), a compiler that is missing or broken (E06).
    """
    on = where(parts)
    _check_names(name, parts)
    refuse_foreign(directory)
    built = _cpu(tools, name, parts) if on == "cpu" else _cuda(tools, name, parts)
    plans, targets = parts[0].plans, tuple(part.target for part in parts)
    texts = {
        **{f"include/{path}": text for path, text in public_headers(name, plans, on).items()},
        "include/texpr/texpr.hpp": template("texpr.hpp"),
        f"include/texpr/{name}.hpp": print_cxx(name, plans),
        **{f"src/{path}": text for path, text in built.sources.items()},
        "src/CMakeLists.txt": _cmake_sources(name, on, built.sources),
        **_packages(name, on, targets, version, built.libraries),
        **{f"rust/{path}": text for path, text in print_crate(name, plans, on, version, built.libraries).items()},
        **proof_files(parts),
        MANIFEST: print_manifest(name, version, parts, built.binaries, built.tools),
    }
    files = {
        **{path: text.encode() for path, text in texts.items()},
        f"lib/libtexpr_{name}.so": built.shared,
        f"lib/libtexpr_{name}.a": built.static,
        **{f"lib/{path}": data for path, data in built.extra.items()},
    }
    publish(directory, {**files, SUMS: sums(files)})
    return Artifact(directory, name, targets, (*sorted(files), SUMS), built.binaries)


def refuse_early(tools: Tools, targets: Sequence[str], directory: Path) -> None:
    """Raises what `build` would raise, whatever is built: for the targets, the folder, and the compilers of this machine."""
    on = family(targets)
    refuse_foreign(directory)
    tools.versions(device=on == "cuda")


def _check_names(name: str, parts: Sequence[Part]) -> None:
    names = [identifier(plan.name) for plan in parts[0].plans]
    if identifier(name) != name or not name.isascii():
        other = f"my_{name}"
        taken = name[:1].isalpha() and name.isascii() and identifier(other) == other
        why = ": C, C++, CUDA or every artifact has that name for something else" if taken else ""
        help = f"call it {other}, say" if taken else "use letters, digits and _, a letter first"
        raise error("E0807", None, f"an artifact cannot be called {name!r}{why}", help=help)
    if len(set(names)) != len(names):
        raise error("E0807", None, f"two functions of one artifact have the same name in C: {', '.join(sorted(names))}")
    symbols = [function_name(plan) + suffix for plan in parts[0].plans for suffix in SUFFIXES]
    if len(set(symbols)) != len(symbols):
        told = "the name of one function is that of another's companion in C, such as `f` and `f_load`"
        raise error("E0807", None, told, help="rename one, or build two artifacts")
    for part in parts[1:]:
        if [plan.name for plan in part.plans] != [plan.name for plan in parts[0].plans]:
            raise error("E0807", None, f"the functions for {part.target} are not those for {parts[0].target}")


def _cpu(tools: Tools, name: str, parts: Sequence[Part]) -> Built:
    if len(parts) != 1:
        raise error("E0805", None, "an artifact for a CPU has one target")
    plans = parts[0].plans
    sources, headers = cpu_sources(parts[0]), cpu_source_headers()
    openmp = tools.openmp()
    shared, static = tools.library(
        f"texpr_{name}",
        sources,
        {**headers, **public_headers(name, plans, "cpu")},
        flags=("-fno-exceptions", "-fno-rtti"),
        openmp=True,
        march=resolve(parts[0].target).march,
    )
    linked = ("m",) if openmp is None else (openmp, "m")
    return Built({**sources, **headers}, shared, static, {}, linked, {}, tools.versions(device=False))


def _cuda(tools: Tools, name: str, parts: Sequence[Part]) -> Built:
    functions = [variants(parts, at) for at in range(len(parts[0].plans))]
    headers = cuda_source_headers()
    sources = {**launchers(name, functions), **headers}
    images: dict[str, str] = {}
    extra: dict[str, bytes] = {}
    binaries: dict[tuple[str, str], DeviceCode] = {}
    wanted = [(variant.text, target) for found in functions for variant in found for target in variant.targets]
    codes = iter(tools.devices(wanted, headers))
    for found in functions:
        compiled = {target: next(codes) for variant in found for target in variant.targets}
        images |= image_sources(found, compiled)
        extra |= _device_files(tools, identifier(found[0].plan.name), [compiled[part.target] for part in parts])
        binaries |= {(found[0].plan.name, target): binary for target, binary in compiled.items()}
        sources |= {variant.path(number): variant.text for number, variant in enumerate(found)}
    shared, static = tools.library(
        f"texpr_{name}",
        {path: text for path, text in {**sources, **images}.items() if path.endswith(".c")},
        {**headers, **public_headers(name, parts[0].plans, "cuda")},
        libraries=HOST_LIBRARIES,
    )
    sources |= {**images, **{f"emulator/{path}": text for path, text in emulator_sources().items()}}
    return Built(sources, shared, static, extra, HOST_LIBRARIES, binaries, tools.versions(device=True))


def _device_files(tools: Tools, function: str, compiled: Sequence[DeviceCode]) -> dict[str, bytes]:
    """Cubins and PTX of a function as files, and all of them as a fatbin where that can be made."""
    files: dict[str, bytes] = {}
    for binary in compiled:
        files[f"{function}.{binary.target}.cubin"] = binary.cubin
        files[f"{function}.{binary.target}.ptx"] = binary.ptx
    joined = tools.fatbin([(binary.target, binary.cubin, binary.ptx) for binary in compiled])
    return files if joined is None else {**files, f"{function}.fatbin": joined}


def _cmake_sources(name: str, on: str, sources: Mapping[str, str]) -> str:
    images = [path for path in sorted(sources) if path.endswith((".cubin.c", ".ptx.c"))]
    kernels = [path for path in sorted(sources) if path.endswith(".cu") and path.count(".") == 1]
    plain = [path for path in sorted(sources) if path.endswith((".c", ".cpp")) and path not in images and "/" not in path]
    return template(
        "CMakeLists.txt",
        NAME=name,
        SOURCES=" ".join(plain),
        IMAGES=" ".join(images),
        KERNELS=" ".join(kernels),
        OPENMP="ON" if on == "cpu" else "OFF",
    )


def _packages(name: str, on: str, targets: Sequence[str], version: str, libraries: Sequence[str]) -> dict[str, str]:
    """What CMake's `find_package(texpr_NAME)` and `pkg-config texpr_NAME` read."""
    folder = f"lib/cmake/texpr_{name}/texpr_{name}"
    linked = ";".join(libraries)
    listed = " ".join(targets)
    return {
        f"{folder}Config.cmake": template("Config.cmake", NAME=name, ON=on, TARGETS=listed, LIBRARIES=linked),
        f"{folder}ConfigVersion.cmake": template("ConfigVersion.cmake", VERSION=version),
        f"lib/pkgconfig/texpr_{name}.pc": template(
            "texpr.pc", NAME=name, VERSION=version, LIBRARIES=" ".join(f"-l{library}" for library in libraries)
        ),
    }
