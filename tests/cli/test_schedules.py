"""`--schedule`, and `schedule=` from Python: which schedule reaches the compiler, and what is said where none can."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.conftest import Call

import texpr
from texpr.cli import main
from texpr.driver import lower
from texpr.ir.kernel import kernels
from texpr.ir.program import Schedule
from texpr.ir.program.selection import Selected, select_schedule
from texpr.isa.levels import Level
from texpr.isa.registry import resolve
from texpr.support.diagnostic import TexprError, error

TEXT = """\
fn copy(x: f32[n]): f32[n] {
    new y: f32[n]
    par n |i| { y[i] = x[i] }
    return y
}
schedule copy "plain" { }
schedule copy for cuda { }
schedule copy "fast" for sm_90a { }
schedule copy "slow" for sm_90a { }
schedule copy "old" for sm_80 { }
fn twice(inout x: f32[n]) { par n |i| { x[i] = x[i] + x[i] } }
"""

Seen = list[tuple[str, str, str | None]]


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """A file with several schedules."""
    path = tmp_path / "copy.te"
    path.write_text(TEXT, encoding="utf-8")
    return path


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Seen:
    """Each function that is lowered, its target, its schedule; compiling stops there."""
    found: Seen = []

    def stop(function: object, target: str, sizes: object = None, *, schedule: Selected = None) -> None:
        called = f"{schedule.name} {schedule.target}" if isinstance(schedule, Schedule) else schedule
        family = "cpu" if target.startswith("cpu") else target  # which one is that of the processor at hand
        found.append((getattr(function, "name", "?"), family, called))
        raise error("E0999", None, "stop")

    monkeypatch.setattr("texpr.delivery.driver.lower", stop)
    return found


RUN = ("--arg", "x=1", "--size", "n=4")


@pytest.mark.parametrize(
    ("on", "schedule", "target", "reached"),
    [
        ("cpu", [], "cpu", "plain None"),
        ("cpu", ["--schedule", "auto"], "cpu", "plain None"),
        ("cpu", ["--schedule", "plain"], "cpu", "plain None"),
        ("cpu", ["--schedule", "none"], "cpu", None),
        ("emulator", ["--schedule", "fast"], "sm_90a", "fast sm_90a"),
        ("emulator", ["--schedule", "none"], "sm_90a", None),
    ],
)
def test_run(on: str, schedule: list[str], target: str, reached: str | None, program: Path, texpr: Call, seen: Seen) -> None:
    texpr("run", program, "copy", "--on", on, *schedule, *RUN)
    assert seen == [("copy", target, reached)]


def test_run_without_a_schedule_of_its_own(program: Path, texpr: Call, seen: Seen) -> None:
    texpr("run", program, "twice", *RUN)
    assert seen == [("twice", "cpu", "auto")]


def test_the_interpreter_needs_no_schedule(program: Path, texpr: Call) -> None:
    for schedule in ("auto", "none", "fast"):
        assert texpr("run", program, "copy", "--on", "interp", "--schedule", schedule, *RUN)[0] == 0


@pytest.mark.parametrize(
    ("target", "schedule", "reached"),
    [("sm_86", "auto", "None cuda"), ("sm_80", "auto", "old sm_80"), ("sm_90a", "slow", "slow sm_90a"), ("cpu", "none", None)],
)
def test_build_and_explain(
    target: str, schedule: str, reached: str | None, program: Path, texpr: Call, seen: Seen, tmp_path: Path
) -> None:
    texpr("build", program, "copy", "--for", target, "-o", tmp_path / "out", "--schedule", schedule)
    texpr("explain", program, "copy", "--for", target, "--schedule", schedule)
    assert seen == [("copy", target, reached)] * 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--on", "cpu", "--schedule", "fats"], "error[E0860]: `copy` has no schedule `fats`"),
        (["--on", "interp", "--schedule", "fats"], "error[E0860]: `copy` has no schedule `fats`"),
        (["--on", "cpu", "--schedule", "fast"], "error[E0861]: schedule `fast` is for sm_90a, not for cpu"),
        (["--on", "emulator"], "error[E0862]: several schedules of `copy` fit sm_90a"),
    ],
)
def test_a_schedule_that_cannot_be(words: list[str], said: str, program: Path, texpr: Call) -> None:
    code, out, err = texpr("run", program, "copy", *words, *RUN)
    assert (code, out) == (2, "")
    assert said in err


def test_an_unknown_schedule_leaves_no_folder(program: Path, texpr: Call, tmp_path: Path) -> None:
    wrong = ("--schedule", "fats")
    assert texpr("run", program, "copy", *wrong, *RUN, "-o", tmp_path / "out")[0] == 2
    assert texpr("build", program, "copy", "--for", "cpu", *wrong, "-o", tmp_path / "out")[0] == 2
    assert not (tmp_path / "out").exists()


def test_a_name_must_fit_every_function_and_target(program: Path, texpr: Call, tmp_path: Path) -> None:
    for names, code in ((("copy",), "E0861"), (("twice",), "E0860")):
        words = ("--for", "sm_90a", "--for", "sm_80", "--schedule", "old", "-o", tmp_path / "out")
        assert texpr("build", program, *names, *words)[0] == 2
        assert code in texpr("build", program, *names, *words)[2]


def test_wrong_schedules_are_the_program_s_fault(tmp_path: Path, texpr: Call) -> None:
    path = tmp_path / "wrong.te"
    path.write_text(TEXT + "schedule copi { }\nschedule copy for sm_1 { }\n", encoding="utf-8")
    code, _, err = texpr("check", path)
    assert code == 1
    assert "E0214" in err and "E0216" in err


def test_from_python(program: Path, tmp_path: Path, seen: Seen) -> None:
    module = texpr.load(program)
    copy, twice = module["copy"], module["twice"]
    fast = next(schedule for schedule in copy.schedules if schedule.name == "fast")
    for schedule in ("fast", fast):
        with pytest.raises(TexprError, match="stop"):
            texpr.compile(copy, "sm_90a", schedule=schedule, emulate=True)
        with pytest.raises(TexprError, match="stop"):
            texpr.build(copy, "sm_90a", tmp_path / "out", schedule=schedule)
    with pytest.raises(TexprError, match="stop"):
        texpr.compile(copy)
    assert seen == [("copy", "sm_90a", "fast sm_90a")] * 4 + [("copy", "cpu", "plain None")]
    with pytest.raises(TexprError, match="E0863"):
        texpr.compile(twice, "sm_90a", schedule=fast)


TILED = """\
fn plus(x: f32[n], y: f32[n], const tile: i32): f32[n] {
    new z: f32[n]
    par n |i| { z[i] = x[i] + y[i] }
    return z
}
schedule plus for cuda {
    split(i, 128 / tile) -> (outer, inner)
    bind(outer, grid.x)
    bind(inner, block.x)
}
"""


def threads(schedule: str, tile: int) -> int:
    """Of a block of `plus`."""
    function = texpr.parse(TILED)["plus"]
    machine = resolve("sm_80")
    compiled = lower(function, "sm_80", {"tile": tile}, schedule=select_schedule(function, schedule, machine))
    (kernel,) = kernels(compiled.plan.steps)
    (extent,) = (axis.extent.constant for axis in kernel.axes if axis.level is Level.BLOCK)
    return extent


def test_a_const_in_a_schedule_is_fixed_with_the_function() -> None:
    assert (threads("auto", 2), threads("auto", 4)) == (64, 32)
    assert threads("none", 4) == threads("none", 2)


def test_a_schedule_that_divides_by_zero() -> None:
    with pytest.raises(TexprError) as raised:
        threads("auto", 0)
    (found,) = raised.value.diagnostics
    assert (found.code, found.message) == ("E0724", "a schedule of `plus` divides by zero, at tile = 0")
    assert found.span is not None and found.span.line == 6


def test_a_scheduled_run_agrees_with_the_interpreter(tmp_path: Path, texpr: Call) -> None:
    path = tmp_path / "plus.te"
    path.write_text(TILED, encoding="utf-8")
    words = ("--arg", "x=random", "--arg", "y=random", "--size", "n=300", "--size", "tile=2", "--against", "interp")
    code, out, err = texpr("run", path, "--on", "emulator", *words)
    assert (code, err) == (0, "")
    assert "z: equal to the bit" in out


@pytest.mark.parametrize(
    ("asked", "target", "name", "words"),
    [
        ("slow", "sm_90a", "slow", 'copy for sm_90a, schedule "slow": 1 kernel'),
        ("auto", "sm_86", "", "copy for sm_86, by its schedule: 1 kernel"),
        ("none", "sm_90a", None, "copy for sm_90a: 1 kernel"),
    ],
)
def test_explain_says_which_schedule_it_was(
    program: Path, texpr: Call, asked: str, target: str, name: str | None, words: str
) -> None:
    call = ("explain", program, "copy", "--for", target, "--schedule", asked)
    assert texpr(*call)[1].startswith(words)
    assert json.loads(texpr(*call, "--json")[1])["schedule"] == name


def test_check_follows_schedules(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It called a file legal whose schedules nothing could follow."""
    text = "fn copy(x: f32[n]): f32[n] {\n    new y: f32[n]\n    par n |i| { y[i] = x[i] }\n    return y\n}\n"
    file = tmp_path / "copy.te"
    wrong = {
        'schedule copy "a" for cuda { spilt(i, 4) }': "E0901",
        'schedule copy "b" for cpu { split(k, 4) }': "E0903",
        'schedule copy "c" { bind(i, nowhere) }': "E0908",
    }
    for schedule, code in wrong.items():
        file.write_text(f"{text}{schedule}\n")
        assert main(["check", str(file)]) == 1
        assert f"error[{code}]" in capsys.readouterr().err
    right = ["for cuda { bind(i, grid.x) }", "for cpu { bind(i, core) }", '"any" { bind(i, core) }', '"fixed" { unroll(i) }']
    file.write_text(text + "\n".join(f"schedule copy {each}" for each in right))
    assert main(["check", str(file)]) == 0


def test_check_for_a_target_is_a_gate(texpr: Call, tmp_path: Path) -> None:
    """What `build` refuses for a target, `check --for` refuses, in the same words; what passes, it takes."""
    path = tmp_path / "f.te"
    body = "{ new y: f32[n, m]\npar n, m |i, j| { y[i, j] = x[i, j] }\nreturn y }"
    text = f"fn f(x: f32[n, m] align(16)): f32[n, m] where m % 8 == 0 {body}\n"
    refused = {
        'schedule f "lanes" for cpu { split(j, 4) -> (a, b) vectorize(a) }': "E0911",
        'schedule f "threads" for sm_90a { split(i, 4096) -> (c, d) bind(d, block.x) }': "E0910",
    }
    for schedule, code in refused.items():
        path.write_text(f"{text}{schedule}\n", encoding="utf-8")
        target = schedule.split(" for ")[1].split()[0]
        status, _, said = texpr("check", path, "--for", target)
        assert status == 1 and f"error[{code}]" in said
        assert texpr("build", path, "--for", target, "-o", tmp_path / "out")[0] == 1
    path.write_text(f'{text}schedule f "good" for cpu {{ split(j, 8) -> (a, b) vectorize(b) }}\n', encoding="utf-8")
    status, told, _ = texpr("check", path, "--for", "cpu")
    assert status == 0 and "legal, and built for cpu (f)" in told
    assert texpr("build", path, "--for", "cpu", "-o", tmp_path / "out")[0] == 0


def test_check_says_what_no_size_changes(texpr: Call, tmp_path: Path) -> None:
    """A refusal that names no size stands without `--for`; one that a size may lift is left to the build."""
    path = tmp_path / "f.te"
    text = "fn f(x: f32[n, 64] align(16)): f32[n, 64] { new y: f32[n, 64]\npar n, 64 |i, j| { y[i, j] = x[i, j] }\nreturn y }\n"
    path.write_text(f"{text}schedule f for sm_90a {{ split(j, 4) -> (a, b) vectorize(a) }}\n", encoding="utf-8")
    status, _, said = texpr("check", path)
    assert status == 1 and "error[E0911]" in said and "the loop over `b` is inside of it" in said
    path.write_text(f"{text.replace('64', 'm')}schedule f for sm_90a {{ vectorize(j) }}\n", encoding="utf-8")
    assert texpr("check", path)[0] == texpr("check", path, "--size", "m=4")[0] == 0
    assert texpr("check", path, "--size", "m=3")[0] == 1
