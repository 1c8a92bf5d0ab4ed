"""Compiling the core and kernels with a host compiler into shared libraries, kept by content in a folder the caller names."""

from __future__ import annotations

import hashlib
import os
import shlex
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from texpr.emulator.sources import CORE, core_texts, headers
from texpr.support.diagnostic import CompilerBug, Note, limitation

COMPILER = ("g++",)
SECONDS = 300
"""How long a compiler may take."""

FLAGS = ("-std=c++17", "-fPIC", "-shared", "-fvisibility=hidden", "-ffp-contract=off", "-fno-strict-aliasing", "-g0", "-w")
"""No contraction: each operation rounds as written."""

CHECKED = ("-O1", "-fno-reorder-blocks", "-fno-thread-jumps", "-DTX_EMU_CHECKED=1")
"""An access is in one place of the machine code, and these come as in the text: so lanes that took different ways are told to
meet again (`core/count.hpp`)."""
PLAIN = ("-O2", "-DTX_EMU_CHECKED=0")


def build_core(directory: Path, compiler: Sequence[str] = COMPILER) -> Path:
    """The emulator's core as a shared library in `directory`: CUDA's driver interface, and the runtime below it.

    A launcher that loads it in place of libcuda.so.1 runs unchanged. Raises `Limitation` E0571 where `compiler` can't build it.
    """
    texts = core_texts()
    return _library("emulator", CORE, texts, (*FLAGS, "-O2"), directory, compiler)


def build_kernels(
    text: str, given: Mapping[str, str], directory: Path, compiler: Sequence[str] = COMPILER, *, checked: bool = True
) -> Path:
    """The kernels of a `.cu` as a shared library for the emulator. `given`: texts by name of the headers it includes.

    `checked`: with detectors, or as plain memory for speed. Raises `CompilerBug` where the text is not C++.
    """
    texts = {**headers(), **given, "kernels.cu": text}
    return _library("kernels", "kernels.cu", texts, (*FLAGS, *(CHECKED if checked else PLAIN)), directory, compiler)


def image(library: Path) -> bytes:
    """What `cuModuleLoadData` takes for kernels in `library`."""
    return b"TEXPR-EMULATED\0" + os.fsencode(library.resolve()) + b"\0"


def _library(
    kind: str, source: str, texts: Mapping[str, str], flags: Sequence[str], directory: Path, compiler: Sequence[str]
) -> Path:
    digest = hashlib.sha256("\0".join([*compiler, "", *flags]).encode())
    for name in sorted(texts):
        digest.update(f"\0{name}\0{len(texts[name])}\0{texts[name]}".encode())
    built = directory / f"{kind}-{digest.hexdigest()[:24]}.so"
    if built.exists():
        return built
    directory.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f"{kind}-", dir=directory) as folder:
        for name, text in texts.items():
            (Path(folder) / name).write_text(text, encoding="utf-8")
        made = Path(folder) / "made.so"
        words = [*compiler, *flags, "-I.", "-x", "c++", source, "-o", made.name, "-x", "none", "-ldl"]
        said = _run(words, folder)
        if said is not None:
            raise _refused(kind, words, said)
        os.replace(made, built)
    return built


def _run(words: Sequence[str], folder: str) -> str | None:
    """What the compiler said if it failed, else None."""
    try:
        done = subprocess.run(
            words, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS, check=False, text=True,
            errors="replace",
        )  # fmt: skip
    except OSError as reason:
        raise limitation(
            "E0571", None, f"cannot start {words[0]}: {reason.strerror}", help="install g++ or clang++"
        ) from reason
    except subprocess.TimeoutExpired as reason:
        raise limitation("E0571", None, f"{words[0]} took longer than {SECONDS} s and was stopped") from reason
    return None if done.returncode == 0 else done.stderr + done.stdout


def _refused(kind: str, words: Sequence[str], said: str) -> Exception:
    shown = said if len(said) < 4000 else said[:4000] + "\n… (more)"
    if kind == "kernels":
        return CompilerBug(f"the host compiler refuses an emitted kernel\n{shlex.join(words)}\n{shown}")
    help = "g++ 9 or clang++ 10, or later, on x86-64 or aarch64"
    return limitation("E0571", None, f"{words[0]} does not build the emulator", Note(shown), help=help)
