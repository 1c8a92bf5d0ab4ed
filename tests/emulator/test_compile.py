"""Building: kept by content, whose fault a failure is, headers without warnings, what a launch refuses."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from texpr.backends.cuda.headers import headers as device_headers
from texpr.emulator import Emulated, build, build_core, build_kernels, compile, core_texts, headers
from texpr.support.diagnostic import CompilerBug, Limitation, TexprError

from .kernels import CASES, HEAD, SAXPY, SHIFT, result


def test_libraries_are_kept_by_content(work: Path, tmp_path: Path) -> None:
    core = build_core(work)
    stamp = core.stat().st_mtime_ns
    assert build_core(work) == core and core.stat().st_mtime_ns == stamp
    one = build_kernels(HEAD + SAXPY.source, device_headers(), tmp_path)
    assert build_kernels(HEAD + SAXPY.source, device_headers(), tmp_path) == one
    assert build_kernels(HEAD + SAXPY.source, device_headers(), tmp_path, checked=False) != one
    assert not [path for path in tmp_path.iterdir() if path.is_dir()], "nothing half built is left"


def test_another_version_of_a_compiler_makes_another_library(tmp_path: Path) -> None:
    """Both are called alike; what is kept of one is not taken for the other's."""
    compiler, made = tmp_path / "compiler", list[Path]()
    for version in ("g++ 1", "g++ 2", "g++ 1"):
        compiler.write_text(f'#!/bin/sh\n[ "$1" = --version ] && echo {version} || exec g++ "$@"\n')
        compiler.chmod(0o755)
        compile._version.cache_clear()  # pyright: ignore[reportPrivateUsage]
        made.append(build_kernels(HEAD + SAXPY.source, device_headers(), tmp_path / "work", (str(compiler),)))
    assert made[0] == made[2] != made[1]


def test_a_precompiled_header_changes_no_library(tmp_path: Path) -> None:
    first = build_kernels(HEAD + SHIFT.source, device_headers(), tmp_path)
    assert not list(tmp_path.glob("*.gch")), "one kernel alone is compiled as soon without"
    plain = build_kernels(HEAD + SAXPY.source, device_headers(), tmp_path / "alone")
    made = build_kernels(HEAD + SAXPY.source, device_headers(), tmp_path)
    assert made.name == plain.name and made.read_bytes() == plain.read_bytes() != first.read_bytes()
    (header,) = tmp_path.glob("*.gch")
    header.write_bytes(b"no header")
    assert build_kernels(HEAD + SAXPY.source + "// again\n", device_headers(), tmp_path).read_bytes() == plain.read_bytes()


def test_a_compiler_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(Limitation) as caught:
        build_core(tmp_path, ("no-such-compiler",))
    assert caught.value.diagnostics[0].code == "E0571"


def test_a_compiler_that_cannot(tmp_path: Path) -> None:
    with pytest.raises(Limitation) as caught:
        build_core(tmp_path, ("false",))
    assert caught.value.diagnostics[0].code == "E0571"


def test_a_text_that_is_not_cpp_is_our_fault(work: Path) -> None:
    with pytest.raises(CompilerBug, match="no_such_thing"):
        build_kernels(HEAD + "int x = no_such_thing;", device_headers(), work)


def test_a_kernel_that_is_not_exported(emulate: Callable[..., Emulated]) -> None:
    with pytest.raises(CompilerBug, match="TX_EXPORT"):
        emulate(HEAD + SAXPY.text).launch("saxpy_0", 1, 64, [])


@pytest.mark.parametrize("checked", [0, 1])
def test_headers_give_no_warnings(tmp_path: Path, checked: int) -> None:
    texts = {**headers(), **device_headers(), "kernels.cu": HEAD + "".join(case.source for case in CASES)}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    flags = ["-std=c++17", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", f"-DTX_EMU_CHECKED={checked}", "-x", "c++"]
    done = subprocess.run(["g++", *flags, "kernels.cu"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_core_gives_no_warnings(tmp_path: Path) -> None:
    for name, text in core_texts().items():
        (tmp_path / name).write_text(text)
    flags = ["-std=c++17", "-fsyntax-only", "-Wall", "-Wextra", "-Werror"]
    done = subprocess.run(["g++", *flags, "core.cpp"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_arguments_that_do_not_fit(emulate: Callable[..., Emulated]) -> None:
    emulated = emulate(HEAD + SAXPY.source)
    x, n = np.zeros(64, np.float32), 64
    for args in (
        [1.0, x, x, n],
        [1.0, x, x.astype(np.float64), n, x],
        [1.0, x, x[::2], n, x],
        [1.0, 5, x, n, x],
        [x, x, x, n, x],
    ):
        with pytest.raises(ValueError, match="argument"):
            emulated.launch("saxpy_0", 1, 64, args)


@pytest.mark.parametrize(
    ("grid", "block", "cluster"), [(0, 64, 1), (1, 0, 1), (1, 1025, 1), (1, (32, 33), 1), (3, 64, 2), ((1, 65536), 64, 1)]
)
def test_launches_no_device_could_run(emulate: Callable[..., Emulated], grid: int, block: int, cluster: int) -> None:
    x = np.zeros(64, np.float32)
    with pytest.raises(TexprError) as caught:
        emulate(HEAD + SAXPY.source).launch("saxpy_0", grid, block, [1.0, x, x, 64, x], cluster=cluster)
    assert caught.value.diagnostics[0].code == "E0572"


@pytest.mark.long
def test_without_our_own_switch_of_stacks(work: Path) -> None:
    emulated = build(HEAD + SHIFT.source, device_headers(), work, ("g++", "-DTX_EMU_UCONTEXT"))
    for seed in (None, 0, 1):
        args = SHIFT.args()
        assert emulated.launch(SHIFT.name, SHIFT.grid, SHIFT.block, args, seed=seed) == []
        np.testing.assert_array_equal(result(args), SHIFT.expected(args))
