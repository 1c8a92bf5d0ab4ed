"""Builds an artifact: sources, libraries, packages for C++ and Rust, and a manifest, in one folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from texpr.artifact.cxx import print_cxx
from texpr.artifact.manifest import print_manifest
from texpr.artifact.place import MANIFEST, SUMS, publish, refuse_foreign, sums
from texpr.artifact.rust import print_crate
from texpr.artifact.sources import (
    Part,
    Variant,
    cpu_source_headers,
    cpu_sources,
    cuda_source_headers,
    emulator_sources,
    image_sources,
    launchers,
    public_headers,
    variants,
    where,
)  # fmt: skip
from texpr.artifact.template import template
from texpr.backends.c.names import identifier
from texpr.support.diagnostic import error
from texpr.toolchain.cuda import CudaBinary, Nvcc, compile_cuda, find_beside, find_nvcc, make_fatbin
from texpr.toolchain.host import HostBinary, HostCompiler, HostJob, build_host, find_host
from texpr.toolchain.machine import Machine

OPENMP = {"gnu": "gomp", "clang": "omp"}
"""The library that OpenMP needs at run time, by family of compiler."""


@dataclass(frozen=True, slots=True)
class Artifact:
    """What was built: where, for which targets, every file, and what ptxas said of each kernel (function, target → binary)."""

    directory: Path
    name: str
    targets: tuple[str, ...]
    files: tuple[str, ...]
    binaries: Mapping[tuple[str, str], CudaBinary]


@dataclass(frozen=True, slots=True)
class Built:
    """The sources (by path below src/) and the libraries of an artifact; `extra` are further files of lib/."""

    sources: Mapping[str, str]
    library: HostBinary
    extra: Mapping[str, bytes]
    libraries: tuple[str, ...]
    binaries: Mapping[tuple[str, str], CudaBinary]
    tools: Mapping[str, str]


def build(machine: Machine, name: str, parts: Sequence[Part], directory: Path, *, version: str) -> Artifact:
    """Build the functions of `parts` into `directory`, whole or not at all; the same input gives the same bytes.

    Raises `TexprError`: nothing to build or a mixture of targets (E0805–E0807), a folder that is not ours or cannot be written
    (E0810–E0812), a compiler that is missing or broken (E06).
    """
    on = where(parts)
    _check_names(name, parts)
    refuse_foreign(directory)
    host = find_host(machine)
    built = _cpu(machine, host, name, parts) if on == "cpu" else _cuda(machine, host, name, parts)
    plans, targets = parts[0].plans, tuple(part.target for part in parts)
    texts = {
        **{f"include/{path}": text for path, text in public_headers(name, plans, on).items()},
        "include/texpr/texpr.hpp": template("texpr.hpp"),
        f"include/texpr/{name}.hpp": print_cxx(name, plans),
        **{f"src/{path}": text for path, text in built.sources.items()},
        "src/CMakeLists.txt": _cmake_sources(name, on, built.sources),
        **_packages(name, on, targets, version, built.libraries),
        **{f"rust/{path}": text for path, text in print_crate(name, plans, on, version, built.libraries).items()},
        MANIFEST: print_manifest(name, version, parts, built.binaries, built.tools),
    }
    assert built.library.static is not None
    files = {
        **{path: text.encode() for path, text in texts.items()},
        f"lib/libtexpr_{name}.so": built.library.shared,
        f"lib/libtexpr_{name}.a": built.library.static,
        **{f"lib/{path}": data for path, data in built.extra.items()},
    }
    publish(directory, {**files, SUMS: sums(files)})
    return Artifact(directory, name, targets, (*sorted(files), SUMS), built.binaries)


def _check_names(name: str, parts: Sequence[Part]) -> None:
    names = [identifier(plan.name) for plan in parts[0].plans]
    if identifier(name) != name or not name.isascii():
        raise error("E0807", None, f"an artifact cannot be called {name!r}", help="use letters, digits and _, a letter first")
    if len(set(names)) != len(names):
        raise error("E0807", None, f"two functions of one artifact have the same name in C: {', '.join(sorted(names))}")
    for part in parts[1:]:
        if [plan.name for plan in part.plans] != [plan.name for plan in parts[0].plans]:
            raise error("E0807", None, f"the functions for {part.target} are not those for {parts[0].target}")


def _cpu(machine: Machine, host: HostCompiler, name: str, parts: Sequence[Part]) -> Built:
    if len(parts) != 1:
        raise error("E0805", None, "an artifact for a CPU has one target")
    plans = parts[0].plans
    sources, headers = cpu_sources(plans), cpu_source_headers()
    job = HostJob(
        name=f"texpr_{name}",
        sources=sources,
        headers={**headers, **public_headers(name, plans, "cpu")},
        flags=("-fno-exceptions", "-fno-rtti"),
        openmp=True,
        static=True,
    )
    runtime = (OPENMP[host.family],) if host.openmp else ()
    return Built({**sources, **headers}, build_host(machine, host, job), {}, (*runtime, "m"), {}, {"host": host.version})


def _cuda(machine: Machine, host: HostCompiler, name: str, parts: Sequence[Part]) -> Built:
    nvcc = find_nvcc(machine)
    functions = [variants(parts, at) for at in range(len(parts[0].plans))]
    headers = cuda_source_headers()
    sources = {**launchers(name, functions), **headers}
    images: dict[str, str] = {}
    extra: dict[str, bytes] = {}
    binaries: dict[tuple[str, str], CudaBinary] = {}
    for found in functions:
        compiled = _compile(machine, nvcc, found)
        function = identifier(found[0].plan.name)
        images |= image_sources(found, compiled)
        extra |= _device_files(machine, nvcc, function, [compiled[part.target] for part in parts])
        binaries |= {(found[0].plan.name, target): binary for target, binary in compiled.items()}
        sources |= {variant.path(number): variant.text for number, variant in enumerate(found)}
    job = HostJob(
        name=f"texpr_{name}",
        sources={path: text for path, text in {**sources, **images}.items() if path.endswith(".c")},
        headers={**headers, **public_headers(name, parts[0].plans, "cuda")},
        libraries=("dl", "pthread"),
        static=True,
    )
    sources |= {**images, **{f"emulator/{path}": text for path, text in emulator_sources().items()}}
    tools = {"host": host.version, "nvcc": nvcc.release}
    return Built(sources, build_host(machine, host, job), extra, ("dl", "pthread"), binaries, tools)


def _compile(machine: Machine, nvcc: Nvcc, found: Sequence[Variant]) -> dict[str, CudaBinary]:
    headers = cuda_source_headers()
    return {
        target: compile_cuda(machine, nvcc, variant.text, headers, target) for variant in found for target in variant.targets
    }


def _device_files(machine: Machine, nvcc: Nvcc, function: str, compiled: Sequence[CudaBinary]) -> dict[str, bytes]:
    """Cubins and PTX of a function as files, and all of them as a fatbin where that tool is there."""
    files: dict[str, bytes] = {}
    for binary in compiled:
        files[f"{function}.{binary.target}.cubin"] = binary.cubin
        files[f"{function}.{binary.target}.ptx"] = binary.ptx
    if find_beside(machine, nvcc, "fatbinary") is not None:
        files[f"{function}.fatbin"] = make_fatbin(machine, nvcc, compiled)
    return files


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
