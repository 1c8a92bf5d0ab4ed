"""`texpr bench`: what it says, what it compares first, and what it refuses. No test looks at a time."""

from __future__ import annotations

import json
import sys
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.cli.conftest import Call

from texpr.cli.bench import places, point
from texpr.cli.execute import Setting
from texpr.delivery import compile
from texpr.ir.program import Function
from texpr.runtime import Kernel
from texpr.runtime.memory import Driver
from texpr.support.record import field

SAXPY = """
fn saxpy(a: f32, x: f32[n], y: f32[n]): f32[n] {
    new z: f32[n]
    par n |i| { z[i] = a * x[i] + y[i] }
    return z
}
"""
MORE = """
fn more(inout y: f32[n], x: f32[n]): f32 {
    par n |i| { y[i] = y[i] + x[i] }
    new s: f32 = 0.0
    par n |i| reduce(s) { s += x[i] }
    return s
}
"""
FUNCTIONS = """
import numpy as np

CALLS = []

def saxpy(a, x, y):
    return a * x + y

def second(a, x, y):
    return [np.float64(a) * x + y]

def wrong(a, x, y):
    z = a * x + y
    z[3] += 1
    return z

def short(a, x, y):
    return x[1:]

def text(a, x, y):
    return "z"

def whole(a, x, y):
    return (x, y)

def broken(a, x, y):
    raise ValueError("no such luck")

def spoils(a, x, y):
    y += 1
    return a * x + y

class limits:
    low = 3

def in_place(y, x):
    CALLS.append(float(y[0]))
    y += x
    return x.sum(dtype=np.float32)

def beside(y, x):
    return x.sum(dtype=np.float32), y + x

def forgets(y, x):
    return x.sum(dtype=np.float32)
"""
ARGUMENTS = ("--arg", "a=2", "--arg", "x=random", "--arg", "y=random")
QUICK = ("--seconds", "1e-9", "--cache", "warm")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a program and functions beside it."""
    (tmp_path / "saxpy.te").write_text(SAXPY)
    (tmp_path / "more.te").write_text(MORE)
    (tmp_path / "mine.py").write_text(FUNCTIONS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "mine", raising=False)
    return tmp_path


def measured(texpr: Call, *words: str) -> dict[str, Any]:
    code, out, err = texpr("bench", *words, *QUICK, "--json")
    assert (code, err) == (0, "")
    return json.loads(out)


def test_what_is_not_given_is_random(texpr: Call, folder: Path) -> None:
    assert measured(texpr, "saxpy.te", "--size", "n=100")["points"][0]["sizes"] == {"n": 100}


def test_a_table_of_ours_and_of_references(texpr: Call, folder: Path) -> None:
    code, out, err = texpr("bench", "saxpy.te", *ARGUMENTS, "--size", "n=100", "--against", "mine:saxpy", *QUICK)
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0].startswith("saxpy on cpu at n = 100: ") and "caches: as the run before leaves them" in lines[1]
    assert "  z: equal to the bit (against mine:saxpy)" in lines
    assert lines[-3].split() == ["what", "median", "quartiles", "runs", "GB/s", "GFLOP/s", "of", "bound", "times", "ours"]
    assert lines[-2].startswith("texpr ") and lines[-1].startswith("mine:saxpy ")


def test_one_object_with_device_and_date(texpr: Call, folder: Path) -> None:
    """Bytes and operations are counted by hand: x, y and z; a product and a sum."""
    found = measured(
        texpr, "saxpy.te", *ARGUMENTS, "--size", "n=100,300", "--against", "mine:saxpy", "--against", "mine:second"
    )
    assert found["ok"] and found["device"] and len(found["date"]) == 10 and found["texpr"]
    assert [(each["sizes"], each["bytes"], each["flops"]) for each in found["points"]] == [
        ({"n": 100}, 1200, 200),
        ({"n": 300}, 3600, 600),
    ]
    for each in found["points"]:
        ours, *others = each["measured"]
        assert ours["what"] == "texpr" and ours["runs"] >= 5 and ours["times_ours"] is None and ours["of_bound"] is None
        assert [other["what"] for other in others] == ["mine:saxpy", "mine:second"]
        assert all(other["times_ours"] > 0 for other in others)
        assert each["measured"][0]["gb_per_s"] == pytest.approx(each["bytes"] / ours["median_us"] / 1e3)


def test_lists_of_sizes_go_on_together(texpr: Call, folder: Path) -> None:
    text = "fn f(x: f32[m, n]): f32[m, n] { new y: f32[m, n] par m |i| { par n |j| { y[i, j] = x[i, j] } } return y }"
    (folder / "f.te").write_text(text)
    found = measured(texpr, "f.te", "--arg", "x=zeros", "--size", "m=2,4", "--size", "n=3,5")
    assert [each["sizes"] for each in found["points"]] == [{"m": 2, "n": 3}, {"m": 4, "n": 5}]
    code, _, err = texpr("bench", "f.te", "--arg", "x=zeros", "--size", "m=2,4", "--size", "n=3,5,6")
    assert code == 2 and "2 of `m`, 3 of `n`" in err


@pytest.mark.parametrize("name", ["in_place", "beside"])
def test_what_a_run_changes_is_restored(texpr: Call, folder: Path, name: str) -> None:
    """An inout that grows with each run is what it was before the next one, ours and the reference's."""
    found = measured(texpr, "more.te", "--arg", "x=1", "--arg", "y=7", "--size", "n=64", "--against", f"mine:{name}")
    assert len(found["points"][0]["agreed"]) == 2
    calls = sys.modules["mine"].CALLS
    assert (len(calls) >= 5) == (name == "in_place") and set(calls) <= {7.0}


def test_no_elements_and_no_time(texpr: Call, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing is moved there is no rate, and where a clock stands still no ratio; a picture is drawn all the same."""

    def still(call: Callable[[], object]) -> float:
        call()
        return 0.0

    monkeypatch.setattr(places, "by_clock", lambda: still)
    words = ("saxpy.te", *ARGUMENTS, "--size", "n=0,3", "--against", "mine:saxpy", "-o", "a.svg")
    empty, some = measured(texpr, *words)["points"]
    assert empty["bytes"] == 0 and empty["measured"][1]["gb_per_s"] is None
    assert some["measured"][0]["gb_per_s"] is None and some["measured"][1]["times_ours"] is None
    assert (folder / "a.svg").read_text(encoding="utf-8").startswith("<svg")


def test_caches_are_emptied_before_each_run(texpr: Call, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "last_level_cache", lambda: 3 << 20)
    code, out, _ = texpr("bench", "saxpy.te", *ARGUMENTS, "--size", "n=100", "--seconds", "1e-9")
    assert code == 0 and "caches: emptied before each run, by writing 3 MiB" in out


@pytest.mark.parametrize(
    ("against", "code", "exit", "told"),
    [
        ("mine:wrong", "E0858", 1, "`z[3]` is "),
        ("mine:short", "E0866", 1, "gives the shape [99]"),
        ("mine:text", "E0866", 1, "gives <U1"),
        ("mine:whole", "E0866", 1, "gives 2 arrays, not one for each of `z`"),
        ("mine:broken", "E0865", 1, "ValueError: no such luck"),
        ("mine:spoils", "E0865", 1, "read-only"),
        ("mine:saxpi", "E0864", 2, "`mine` has no `saxpi`"),
        ("mine:limits.low", "E0864", 2, "cannot be called, it is of the type int"),
        ("not_there:f", "E0864", 2, "needs the module `not_there`"),
        ("syntax:f", "E0864", 2, "`syntax` cannot be imported: SyntaxError"),
    ],
)
def test_references_that_are_refused(texpr: Call, folder: Path, against: str, code: str, exit: int, told: str) -> None:
    (folder / "syntax.py").write_text("def f(:\n")
    status, out, err = texpr("bench", "saxpy.te", *ARGUMENTS, "--size", "n=100", "--against", against, *QUICK)
    assert status == exit and code in err and told in err and out == ""
    if told.endswith("`saxpi`"):
        assert "did you mean `saxpy`?" in err


def test_a_reference_that_leaves_an_inout_alone(texpr: Call, folder: Path) -> None:
    words = ("--arg", "x=1", "--arg", "y=7", "--size", "n=64", "--against", "mine:forgets")
    status, _, err = texpr("bench", "more.te", *words, *QUICK)
    assert status == 1 and "`y[0]` is 8.0, but `mine:forgets` gives 7.0" in err


def test_a_tolerance(texpr: Call, folder: Path) -> None:
    words = ("saxpy.te", *ARGUMENTS, "--size", "n=100", "--against", "mine:wrong", *QUICK)
    assert texpr("bench", *words, "--tolerance", "0.5")[0] == 0
    assert texpr("bench", *words, "--tolerance", "1e-6")[0] == 1


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--size", "n=100", "--against", "numpy"), "--against takes MODULE:FUNCTION"),
        (("--size", "n=100", "-o", "out.svg"), "give several"),
        (("--size", "n=100,200", "-o", "out.png"), "ends in .svg"),
        (("--size", "n=100,x"), "--size takes NAME=INTEGER"),
        (("--size", "n=100", "--size", "n=200"), "given twice"),
        (("--size", "k=100"), "has no size `k`"),
        ((), "size `n` of `x: f32[n]` is not known"),
        (("--size", "n=9", "--on", "interp"), "'interp' is not one of"),
        (("--size", "n=9", "--seconds", "0"), "0"),
    ],
)
def test_wrong_calls(texpr: Call, folder: Path, words: tuple[str, ...], told: str) -> None:
    code, out, err = texpr("bench", "saxpy.te", *ARGUMENTS, *words)
    assert (code, out) == (2, "") and told in err


def test_a_missing_schedule_and_a_wrong_file(texpr: Call, folder: Path) -> None:
    np.save(folder / "x.npy", np.zeros(100))
    assert "E0860" in texpr("bench", "saxpy.te", *ARGUMENTS, "--size", "n=9", "--schedule", "none_such")[2]
    code, _, err = texpr("bench", "saxpy.te", "--arg", "a=2", "--arg", "x=x.npy", "--arg", "y=zeros", *QUICK)
    assert code == 1 and "E0857" in err


def test_no_gpu(texpr: Call, folder: Path) -> None:
    code, _, err = texpr("bench", "saxpy.te", *ARGUMENTS, "--size", "n=100", "--on", "cuda")
    assert code == 0 or (code == 1 and "E0782" in err)


def test_a_picture_over_sizes(texpr: Call, folder: Path) -> None:
    code, out, _ = texpr(
        "bench", "saxpy.te", *ARGUMENTS, "--size", "n=300,100", "--against", "mine:saxpy", "-o", "a.svg", *QUICK
    )
    assert code == 0 and out.endswith("a.svg: times over n\n")
    root = ET.parse(folder / "a.svg").getroot()
    texts = [each.text for each in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"100", "300", "n", "texpr", "mine:saxpy", "GB/s"} <= set(texts)
    assert len(list(root.iter("{http://www.w3.org/2000/svg}circle"))) == 2 + 2 * 2 * 2


TORCH = """
import numpy as np

class Tensor:
    def __init__(self, array): self.array = array
    def detach(self): return self
    def cpu(self): return self
    def contiguous(self): return self
    def __mul__(self, other): return Tensor(self.array * other)
    __rmul__ = __mul__
    def __add__(self, other): return Tensor(self.array + other.array)
    def __dlpack__(self, **_): return self.array.__dlpack__()
    def __dlpack_device__(self): return self.array.__dlpack_device__()

def from_dlpack(given):
    return Tensor(np.from_dlpack(given))

def clamp(input): return input
"""


def test_a_function_of_tensors_gets_tensors(texpr: Call, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By its annotation, or as one of PyTorch's own; on a made-up PyTorch."""
    (folder / "torch.py").write_text(TORCH)
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    monkeypatch.syspath_prepend(folder)
    (folder / "tensors.py").write_text(
        "import torch\ndef saxpy(a: float, x: torch.Tensor, y: torch.Tensor):\n"
        "    assert type(a) is float and type(x) is torch.Tensor\n    return a * x + y\n"
    )
    try:
        found = measured(texpr, "saxpy.te", *ARGUMENTS, "--size", "n=100", "--against", "tensors:saxpy")
        assert found["points"][0]["agreed"] == ["z: equal to the bit (against tensors:saxpy)"]
    finally:
        for name in ("torch", "tensors"):
            sys.modules.pop(name, None)


class MadeUp(Driver):
    """The emulator's driver with events, graphs and a cache, which it does not have."""

    graphs: bool = True
    log: list[str] = field(default_factory=list[str])

    def has(self, name: str) -> bool:
        return self.graphs if "Capture" in name or "Graph" in name else super().has(name)

    @property
    def name(self) -> str:
        return "a device that is made up"

    def attribute(self, number: int) -> int:
        return 1024

    def check(self, name: str, *args: Any) -> None:
        self.log.append(name)
        if name.startswith(("cuEvent", "cuGraph", "cuStream", "cuMemset")) and name != "cuStreamSynchronize":
            if name.startswith("cuEventElapsedTime"):
                args[0]._obj.value = 0.5
            if name == "cuStreamCreate":
                args[0]._obj.value = 7
            return
        super().check(name, *args)


@pytest.mark.parametrize("graphs", [True, False])
def test_on_a_device(texpr: Call, folder: Path, monkeypatch: pytest.MonkeyPatch, graphs: bool) -> None:
    """Emulated, with what the emulator's driver lacks made up: half a millisecond between any two events."""

    def built(on: str, function: Function, setting: Setting) -> Kernel:
        kernel = compile(function, "sm_90a", setting.fixed, emulate=True)
        assert kernel.driver is not None
        kernel.driver = MadeUp(kernel.driver.library, graphs=graphs)
        kernel.driver.start()
        made.append(kernel.driver)
        return kernel

    made: list[MadeUp] = []
    monkeypatch.setattr(point, "built", built)
    words = ("--on", "cuda", "--seconds", "1e-9", "--arg", "x=1", "--arg", "y=7", "--size", "n=64")
    code, out, err = texpr("bench", "more.te", *words, "--against", "mine:in_place", "--json")
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert found["device"] == "a device that is made up" and found["model"] == "H100 SXM5"
    assert found["how"] == f"timed by events, launches {'replayed from a graph' if graphs else 'one by one'}"
    assert found["flushed_bytes"] == 2048
    (only,) = found["points"]
    ours = only["measured"][0]
    assert ours["median_us"] == 500 and ours["of_bound"] == pytest.approx(only["bound_us"] / 500) and only["bound_us"] > 0
    log = made[0].log
    first = log.index("cuEventRecord")
    # Restored, the cache emptied, timed.
    assert log[first - 2 : first] == ["cuMemcpyDtoDAsync_v2", "cuMemsetD32Async"]
    assert (log[first + 1] == "cuGraphLaunch") == graphs and log.count("cuEventDestroy_v2") == 2
