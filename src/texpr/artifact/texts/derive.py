"""The derived texts of an artifact: from its plans, the record, and the templates of this version only.

`build` writes these `texts`, and `verify` compares with them, byte for byte. In both, the plans are parsed from the
artifact's own texts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from texpr.artifact.packages import package_of
from texpr.artifact.place import MANIFEST
from texpr.artifact.record import Recorded
from texpr.artifact.texts.cxx import print_cxx
from texpr.artifact.texts.manifest import print_manifest
from texpr.artifact.texts.platform import Platform
from texpr.artifact.texts.rust import print_crate
from texpr.artifact.texts.sources import Part, public_headers
from texpr.artifact.texts.template import template
from texpr.artifact.texts.torch import torch_texts
from texpr.backends.c.arguments import function_name
from texpr.backends.c.names import identifier
from texpr.ir.kernel import Plan, kernels
from texpr.ir.kernel.origin import Origin
from texpr.ir.kernel.together import together
from texpr.support.diagnostic import error
from texpr.support.record import replace

SUFFIXES = ("", "_workspace_bytes", "_validate", "_load", "_unload", "_supported")
"""The C functions that each function has."""

_SHOWN = re.compile(r"^ *(?:TX_AT\(([0-9]+)\)  )?// ?(?:([0-9]+): )?", re.MULTILINE)


def texts(record: Recorded, parts: Sequence[Part]) -> dict[str, str]:
    """The texts by path: headers, sources without embedded binaries, packages, the crate, the manifest.

    Raises TexprError for invalid names (E0807), and CompilerBug for a plan that cannot be printed.
    """
    name, package, plans = record.name, package_of(parts), parts[0].plans
    on = package.platform
    require_names(name, parts)
    sources = package.sources(name, parts)
    return {
        **{f"include/{path}": text for path, text in public_headers(name, plans, on).items()},
        "include/texpr/texpr.hpp": template("texpr.hpp"),
        f"include/texpr/{name}.hpp": print_cxx(name, plans),
        **{f"src/{path}": text for path, text in sources.items()},
        "src/CMakeLists.txt": _cmake_sources(
            name, on, [*sources, *(path.removeprefix("src/") for path in package.images(parts))]
        ),
        **_packages(record),
        **{f"rust/{path}": text for path, text in print_crate(name, plans, on, record.version, record.libraries).items()},
        **(torch_texts(name, plans, on) if record.torch else {}),
        MANIFEST: print_manifest(replace(record, origins=_shown(record.origins, sources)), parts),
    }


def _shown(origins: Mapping[str, Origin], sources: Mapping[str, str]) -> dict[str, Origin]:
    """The recorded source files of functions, with only those lines that some generated source shows."""
    numbers: dict[str, set[int]] = {}
    for path, text in sources.items():
        shown = numbers.setdefault(path.split(".")[0], set())
        shown |= {int(found[1] or found[2]) for found in _SHOWN.finditer(text) if found[1] or found[2]}
    return {
        function: replace(origin, lines={at: line for at, line in origin.lines.items() if at in numbers[identifier(function)]})
        for function, origin in origins.items()
    }


def require_names(name: str, parts: Sequence[Part]) -> None:
    """Raises TexprError E0807 for an invalid name of an artifact or of its functions."""
    plans = parts[0].plans
    names = [identifier(plan.name) for plan in plans]
    if identifier(name) != name or not name.isascii():
        other = f"my_{name}"
        taken = name[:1].isalpha() and name.isascii() and identifier(other) == other
        why = ": C, C++, CUDA or every artifact has that name for something else" if taken else ""
        help = f"call it {other}, say" if taken else "use letters, digits and _, a letter first"
        raise error("E0807", None, f"an artifact cannot be called {name!r}{why}", help=help)
    if len(set(names)) != len(names):
        raise error("E0807", None, f"two functions of one artifact have the same name in C: {', '.join(sorted(names))}")
    symbols = [function_name(plan) + suffix for plan in plans for suffix in SUFFIXES]
    if len(set(symbols)) != len(symbols):
        told = "the name of one function is that of another's companion in C, such as `f` and `f_load`"
        raise error("E0807", None, told, help="rename one, or build two artifacts")
    for part in parts[1:]:
        if [plan.name for plan in part.plans] != [plan.name for plan in plans]:
            raise error("E0807", None, f"the functions for {part.target} are not those for {parts[0].target}")
    for kernel in (kernel for part in parts for plan in part.plans for kernel in _kernel_names(plan)):
        if identifier(kernel) != kernel:
            raise error("E0807", None, f"a kernel cannot be called {kernel!r}: the name means something in C")


def _kernel_names(plan: Plan) -> Iterator[str]:
    for each in plan.versions:
        yield from (kernel.name for kernel in kernels(each.steps))
        yield from (loop.together.name for loop in together(each.steps) if loop.together is not None)


def _cmake_sources(name: str, on: Platform, sources: Sequence[str]) -> str:
    images = [path for path in sorted(sources) if path.endswith((".cubin.c", ".ptx.c"))]
    kernels = [path for path in sorted(sources) if path.endswith(".cu") and path.count(".") == 1]
    plain = [path for path in sorted(sources) if path.endswith((".c", ".cpp")) and path not in images and "/" not in path]
    return template(
        "CMakeLists.txt",
        NAME=name,
        SOURCES=" ".join(plain),
        IMAGES=" ".join(images),
        KERNELS=" ".join(kernels),
        OPENMP="ON" if on.openmp else "OFF",
    )


def _packages(record: Recorded) -> dict[str, str]:
    """The files for CMake's `find_package(texpr_NAME)` and `pkg-config texpr_NAME`."""
    name, folder = record.name, f"lib/cmake/texpr_{record.name}/texpr_{record.name}"
    linked, listed = ";".join(record.libraries), " ".join(record.targets)
    return {
        f"{folder}Config.cmake": template("Config.cmake", NAME=name, ON=record.on, TARGETS=listed, LIBRARIES=linked),
        f"{folder}ConfigVersion.cmake": template("ConfigVersion.cmake", VERSION=record.version),
        f"lib/pkgconfig/texpr_{name}.pc": template(
            "texpr.pc", NAME=name, VERSION=record.version, LIBRARIES=" ".join(f"-l{library}" for library in record.libraries)
        ),
    }
