"""Compiling the core and kernels with a host compiler into shared libraries, cached by content in a folder of the caller."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

from texpr.emulator.sources import CORE, core_texts, headers
from texpr.isa.memories import COALESCING, Coalescing
from texpr.support.diagnostic import CompilerBug, Note, limitation
from texpr.support.record import as_dict

COMPILER = ("g++",)
SECONDS = 300
"""The time limit of a compiler, in seconds."""

FLAGS = ("-std=c++17", "-fPIC", "-shared", "-fvisibility=hidden", "-ffp-contract=off", "-fno-strict-aliasing", "-g0", "-w")
"""No contraction: each operation rounds as written."""

CHECKED = ("-O1", "-fno-reorder-blocks", "-fno-thread-jumps", "-DTX_EMU_CHECKED=1")
"""Each access has one address in the machine code, in textual order, by which lanes that diverged are recognised to
reconverge (`core/count.hpp`)."""
PLAIN = ("-O2", "-DTX_EMU_CHECKED=0")


def core_flags(machine: Coalescing) -> tuple[str, ...]:
    """The flags that tell the core the properties of a machine, if they are not the default."""
    names = {
        "lanes": "TX_WARP",
        "sector": "TX_EMU_SECTOR",
        "line": "TX_EMU_LINE",
        "banks": "TX_EMU_BANKS",
        "word": "TX_EMU_WORD",
    }
    told, usual = as_dict(machine), as_dict(COALESCING)
    return tuple(f"-D{name}={told[key]}u" for key, name in names.items() if told[key] != usual[key])


def build_core(directory: Path, compiler: Sequence[str] = COMPILER, machine: Coalescing = COALESCING) -> Path:
    """The emulator's core as a shared library in `directory`: CUDA's driver interface, and the runtime below it.

    `machine`: the lanes of a warp, and the units in which their requests are counted. A launcher that loads it in place of
    libcuda.so.1 runs unchanged. Raises `Limitation` E0571 where `compiler` can't build it.
    """
    texts = core_texts()
    return _library("emulator", CORE, texts, (*FLAGS, "-O2", *core_flags(machine)), directory, compiler)


def build_kernels(
    text: str, given: Mapping[str, str], directory: Path, compiler: Sequence[str] = COMPILER, *, checked: bool = True
) -> Path:
    """The kernels of a `.cu` as a shared library for the emulator. `given`: texts by name of the headers it includes.

    `checked`: with detectors, or with plain memory for speed. Raises `CompilerBug` where the text is not C++.
    """
    texts = {**headers(), **given, "kernels.cu": text}
    return _library("kernels", "kernels.cu", texts, (*FLAGS, *(CHECKED if checked else PLAIN)), directory, compiler)


def image(library: Path) -> bytes:
    """The image that `cuModuleLoadData` takes for kernels in `library`."""
    return b"TEXPR-EMULATED\0" + os.fsencode(library.resolve()) + b"\0"


def _library(
    kind: str, source: str, texts: Mapping[str, str], flags: Sequence[str], directory: Path, compiler: Sequence[str]
) -> Path:
    built = directory / f"{kind}-{_digest(texts, flags, compiler)}.so"
    if built.exists():
        return built
    directory.mkdir(parents=True, exist_ok=True)
    header = _header(texts[source]) if kind == "kernels" else None
    ready = None if header is None else _precompiled(header, source, texts, flags, directory, compiler)
    with tempfile.TemporaryDirectory(prefix=f"{kind}-", dir=directory) as folder:
        _write(texts, folder)
        if ready is not None:
            with suppress(OSError):  # without it, compiling takes twice as long
                os.link(ready, Path(folder) / f"{header}.gch")
        made = Path(folder) / "made.so"
        words = [*compiler, *flags, "-I.", "-x", "c++", source, "-o", made.name, "-x", "none", "-ldl"]
        said = _run(words, folder)
        if said is not None:
            raise _refused(kind, words, said)
        os.replace(made, built)
    return built


def _header(text: str) -> str | None:
    """The first header that a text includes, the only one that g++ takes precompiled."""
    found = re.match(r'#include "([^"]+)"\n', text)
    return None if found is None else found[1]


def _precompiled(
    header: str, source: str, texts: Mapping[str, str], flags: Sequence[str], directory: Path, compiler: Sequence[str]
) -> Path | None:
    """A header precompiled by g++, which pays off from the second kernel on: so not for the first of a folder."""
    others = {name: text for name, text in texts.items() if name != source}
    built = directory / f"{Path(header).stem}-{_digest(others, flags, compiler)}.gch"
    if built.exists():
        return built
    if header not in others or "clang" in _version(tuple(compiler)) or next(directory.glob("kernels-*.so"), None) is None:
        return None
    with tempfile.TemporaryDirectory(prefix="header-", dir=directory) as folder:
        _write(others, folder)
        if _run([*compiler, *flags, "-I.", "-x", "c++-header", header, "-o", "made.gch"], folder) is not None:
            return None
        os.replace(Path(folder) / "made.gch", built)
    return built


def _write(texts: Mapping[str, str], folder: str) -> None:
    for name, text in texts.items():
        (Path(folder) / name).write_text(text, encoding="utf-8")


def _digest(texts: Mapping[str, str], flags: Sequence[str], compiler: Sequence[str]) -> str:
    """A hash of all inputs of a library, compiler included."""
    digest = hashlib.sha256("\0".join([*compiler, "", *flags, "", _version(tuple(compiler))]).encode())
    for name in sorted(texts):
        digest.update(f"\0{name}\0{len(texts[name])}\0{texts[name]}".encode())
    return digest.hexdigest()[:24]


@cache
def _version(compiler: tuple[str, ...]) -> str:
    """The version line of a compiler: another version may give another library from the same text."""
    done = _started([*compiler, "--version"], None)
    return done.stdout + done.stderr


def _run(words: Sequence[str], folder: str) -> str | None:
    """The output of a failed compiler, None if it succeeded."""
    done = _started(words, folder)
    return None if done.returncode == 0 else done.stderr + done.stdout


def _started(words: Sequence[str], folder: str | None) -> subprocess.CompletedProcess[str]:
    """A finished compiler. Raises `Limitation` E0571."""
    try:
        return subprocess.run(
            words, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS, check=False, text=True,
            errors="replace",
        )  # fmt: skip
    except OSError as reason:
        raise limitation(
            "E0571", None, f"cannot start {words[0]}: {reason.strerror}", help="install g++ or clang++"
        ) from reason
    except subprocess.TimeoutExpired as reason:
        raise limitation("E0571", None, f"{words[0]} took longer than {SECONDS} s and was stopped") from reason


def _refused(kind: str, words: Sequence[str], said: str) -> Exception:
    shown = said if len(said) < 4000 else said[:4000] + "\n… (more)"
    if kind == "kernels":
        return CompilerBug(f"the host compiler refuses an emitted kernel\n{shlex.join(words)}\n{shown}")
    help = "g++ 9 or clang++ 10, or later, on x86-64 or aarch64"
    return limitation("E0571", None, f"{words[0]} does not build the emulator", Note(shown), help=help)
