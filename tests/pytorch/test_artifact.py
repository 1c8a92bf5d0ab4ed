"""`texpr build --torch`: operators on LibTorch's stable ABI, built by CMake, loaded, checked; what `verify` says of them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.pytorch.programs import SCALE

import texpr
from texpr.artifact import verify
from texpr.artifact.place import SUMS, sums
from texpr.support.diagnostic import TexprError

STRIDED = """
fn strided(A: f32[m, n] stride(lda, 1), k: i32): (f32[m], i64[n + 1])
    where lda >= n
    where n >= 1
{
    new y: f32[m]
    new z: i64[n + 1]
    par m |i| { y[i] = A[i, 0] }
    par n + 1 |j| { z[j] = i64(k) }
    return (y, z)
}
"""

USE = """
import importlib.util, sys, torch
spec = importlib.util.spec_from_file_location("operators", sys.argv[1])
spec.loader.exec_module(importlib.util.module_from_spec(spec))
ops = torch.ops.shipped
x, w = torch.randn(3, 5), torch.randn(5)
assert torch.equal(ops.scale(x, w, 2.0), 2.0 * x * w)
assert torch.equal(ops.scale(x.t().contiguous().t(), w, 2.0), 2.0 * x * w)
y = torch.zeros(4)
assert ops.add_to(y, torch.ones(4)) is None and y.tolist() == [1.0] * 4
assert ops.fold(torch.ones(6), 2.0, n=3, m=2).tolist() == [2.0] * 2
halves = ops.halves(torch.ones(8, dtype=torch.bfloat16), 3)
assert [each.tolist() for each in halves] == [[2.0] * 4, [4] * 4]
A = torch.arange(12.0).view(3, 4)[:, :2]
assert [each.tolist() for each in ops.strided(A, 7)] == [[0.0, 4.0, 8.0], [7, 7, 7]]
def refused(what, call, *given):
    try:
        call(*given)
    except RuntimeError as why:
        assert what in str(why), why
    else:
        raise AssertionError(what)
refused("w of scale has an extent or stride of 3, not 5", ops.scale, x, w[:3], 2.0)
refused("x of scale has rank 1, not 2", ops.scale, x[0], w, 2.0)
refused("w of scale has another type", ops.scale, x, w.double(), 2.0)
refused("is not contiguous", ops.add_to, torch.zeros(8)[::2], torch.ones(4))
refused("A of strided has an extent or stride of 4, not 1", ops.strided, torch.zeros(4, 4).t()[:2], 1)
refused("strided does not run", ops.strided, torch.zeros(2, 0), 1)
torch.library.opcheck(ops.fold.default, (torch.ones(6), 2.0), {"n": 3, "m": 2})
bits = torch.ones(8, dtype=torch.bfloat16), 3
for op, given in ((ops.scale, (x, w, 2.0)), (ops.add_to, (y, torch.ones(4))), (ops.halves, bits), (ops.strided, (A, 7))):
    torch.library.opcheck(op.default, given)
traced = torch.compile(lambda x, w: ops.scale(x, w, 2.0) + 1, fullgraph=True, dynamic=True, backend="aot_eager")
for rows in (3, 8):
    x = torch.randn(rows, 5)
    assert torch.equal(traced(x, w), 2.0 * x * w + 1)
print("fine")
"""


def told(raised: TexprError) -> str:
    return " ".join(f"{found.message} {' '.join(note.text for note in found.notes)}" for found in raised.diagnostics)


def made(folder: Path, target: str = "cpu") -> Path:
    module = texpr.parse(SCALE + STRIDED)
    functions = [module[name] for name in ("scale", "add_to", "fold", "halves", "strided")]
    texpr.build(functions, target, folder, name="shipped", torch=True)
    return folder


@pytest.fixture(scope="module")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory.mktemp("torch") / "out")


def test_its_texts_follow_from_its_plans(shipped: Path, tmp_path: Path) -> None:
    assert verify(shipped).name == "shipped"
    for name in ("shipped.cpp", "shipped.py", "CMakeLists.txt"):
        copy = tmp_path / name.replace(".", "_")
        shutil.copytree(shipped, copy)
        text = (copy / "torch" / name).read_text(encoding="utf-8")
        (copy / "torch" / name).write_text(text + "\n", encoding="utf-8")
        files = {str(path.relative_to(copy)): path.read_bytes() for path in copy.rglob("*") if path.is_file()}
        (copy / SUMS).write_bytes(sums({path: data for path, data in files.items() if path != SUMS}))
        with pytest.raises(TexprError) as raised:
            verify(copy)
        assert f"not what follows from its plans: torch/{name}" in told(raised.value)


def test_without_the_option_there_is_none(tmp_path: Path) -> None:
    texpr.build(texpr.parse(SCALE)["add_to"], "cpu", tmp_path / "out")
    assert not (tmp_path / "out" / "torch").exists()
    assert '"torch"' not in (tmp_path / "out" / "manifest.json").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("fn f(v: f32): f32 { new y: f32 y = v return y }", "takes no array"),
        ("fn f(x: f32[n], v: bf16): f32[n] { new y: f32[n] par n |i| { y[i] = f32(v) + x[i] } return y }", "a number of bf16"),
        ("fn f(x: f32[lambda]): f32[lambda] { new y: f32[lambda] par lambda |i| { y[i] = x[i] } return y }", "word of Python"),
    ],
)
def test_what_no_operator_can_be(text: str, told: str, tmp_path: Path) -> None:
    with pytest.raises(TexprError, match="E0846") as raised:
        texpr.build(texpr.parse(text)["f"], "cpu", tmp_path / "out", torch=True)
    assert told in str(raised.value) and not (tmp_path / "out").exists()


@pytest.mark.skipif(shutil.which("cmake") is None, reason="needs CMake")
def test_operators_are_built_and_compute(shipped: Path, tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="needs PyTorch")
    source, build = tmp_path / "out", tmp_path / "build"
    shutil.copytree(shipped, source)
    run("cmake", "-S", source / "torch", "-B", build, f"-DPython_EXECUTABLE={sys.executable}")
    run("cmake", "--build", build)
    run("cmake", "--install", build)
    assert run(sys.executable, "-c", USE, source / "torch" / "shipped.py").endswith("fine\n")


@pytest.mark.skipif(shutil.which("cmake") is None, reason="needs CMake")
def test_a_python_without_pytorch_is_named(shipped: Path, tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("", encoding="utf-8")  # no package, wherever PyTorch is
    words = ["cmake", "-S", str(shipped / "torch"), "-B", str(tmp_path / "build"), f"-DPython_EXECUTABLE={sys.executable}"]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False, timeout=600)
    told = " ".join(done.stderr.split())
    assert (
        done.returncode != 0 and f"{sys.executable} has no PyTorch: name a Python that has it by -DPython_EXECUTABLE=" in told
    )


@pytest.mark.long
def test_operators_of_a_gpu_compile(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="needs PyTorch")
    folder = made(tmp_path / "out", "sm_90a")
    include = Path(torch.__file__).parent / "include"
    run(
        "g++",
        "-std=c++20",
        "-fsyntax-only",
        "-Wall",
        "-Wextra",
        "-Werror",
        f"-isystem{include}",
        f"-I{folder / 'include'}",
        folder / "torch" / "shipped.cpp",
    )


def run(*words: object) -> str:
    done = subprocess.run([*map(str, words)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
