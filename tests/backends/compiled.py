"""C++ text built into a library by the host's compiler, as the toolchain builds it."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from tests.trapping import TRAPPING

from texpr.toolchain import HostCompiler, find_host, this_machine
from texpr.toolchain.host import BASELINE, FLAGS


@cache
def host() -> HostCompiler:
    """The host's compiler."""
    return find_host(this_machine())


def compiler() -> tuple[str, ...]:
    """The command of the host's C++ compiler."""
    return host().command


def _march() -> tuple[str, ...]:
    """Vectors of 32 bytes, where the machine has them."""
    if this_machine().architecture not in BASELINE:
        return ()
    return ("-march=x86_64_v3",) if host().kind == "zig" else ("-march=x86-64-v3",)


def build(
    folder: Path, sources: Mapping[str, str], *, flags: Sequence[str] = ("-fopenmp-simd", *TRAPPING), warn: bool = True
) -> tuple[Path, str]:
    """A shared library of the `.cpp` and `.c` among `sources`, the rest being headers; and what the compiler said."""
    folder.mkdir(exist_ok=True)
    for name, text in sources.items():
        (folder / name).write_text(text)
    objects: list[str] = []
    said = ""
    for name in (n for n in sources if n.endswith((".c", ".cpp"))):
        language = ("-x", "c", "-std=c11", "-pedantic") if name.endswith(".c") else ("-x", "c++", "-std=c++17")
        warnings = ("-Wall", "-Wextra", "-Werror") if warn else ()
        flags_ = (*warnings, *FLAGS, "-Wno-unused", "-Wno-unused-parameter", *_march(), *flags)
        said += _run((*compiler(), *language, *flags_, "-c", name, "-o", f"{name}.o"), folder)
        objects.append(f"{name}.o")
    said += _run(
        (*compiler(), "-shared", *objects, *(f for f in flags if f.startswith(("-fopenmp", "-fsan"))), "-o", "lib.so"), folder
    )
    return folder / "lib.so", said


def load(folder: Path, sources: Mapping[str, str], **more: Sequence[str]) -> ctypes.CDLL:
    """The library of `sources`."""
    return ctypes.CDLL(str(build(folder, sources, **more)[0]))  # pyright: ignore


def _run(command: Sequence[str], folder: Path) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stderr[:5000]}"
    return done.stderr
