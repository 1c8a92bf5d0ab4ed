"""Rings that a text has, with barriers of its own: what is right is proved and runs, and no bug is taken.

A warp copies rows ahead, another one adds them up, backwards. Each bug is refused by name; where it changes results or hangs,
the emulator shows that in some order of a run.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from tests.lowering.emulated import run_plan
from tests.planted import plain

from texpr.cli import main
from texpr.driver import Compiled, load, lower
from texpr.emulator.report import Fault
from texpr.frontend import parse
from texpr.interp import run
from texpr.ir import kernel as k
from texpr.ir import program as ir
from texpr.ir.kernel.parse import parse_plan
from texpr.ir.kernel.text import plan_text
from texpr.ir.program.selection import AUTO
from texpr.ir.proof import Verdict
from texpr.isa.registry import resolve
from texpr.lowering.lower import lower as lower_alone
from texpr.ordered import check
from texpr.proof.plan import question
from texpr.proof.search import certified
from texpr.support.diagnostic import TexprError

ACQUIRE, FILL, FULL = "wait(empty[k % 4], k / 4 - 1)", "slots[k % 4, t] = x[b, k, t]", "arrive(full[k % 4])"
WAIT, USE, EMPTY = "wait(full[k % 4], k / 4)", "total += slots[k % 4, 63 - t]", "arrive(empty[k % 4])"
RING = f"""fn ring(x: f32[n, m, 32]): f32[n, 32] {{
    new y: f32[n, 32]
    par n |b| {{
        new slots: f32[4, 32]
        new full: mbarrier(32)[4]
        new empty: mbarrier(32)[4]
        fully par 64 |t| {{
            reg total: f32 = 0.0
            seq m |k| {{
                if t < 32 {{
                    {ACQUIRE}
                    {FILL}
                    {FULL}
                }} else {{
                    {WAIT}
                    {USE}
                    {EMPTY}
                }}
            }}
            if t >= 32 {{ y[b, t - 32] = total }}
        }}
    }}
    return y
}}
"""


def swapped(one: str, other: str) -> tuple[tuple[str, str], ...]:
    """Two lines of the text, in the other order."""
    lines = RING.splitlines(keepends=True)
    at = next(number for number, line in enumerate(lines) if line.strip() == one)
    assert lines[at + 1].strip() == other
    return (("".join(lines[at : at + 2]), lines[at + 1] + lines[at]),)


def function(*changes: tuple[str, str]) -> ir.Function:
    text = RING
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    return parse(text, "f.te").functions[0]


@cache
def plan(*changes: tuple[str, str]) -> tuple[ir.Function, k.Plan]:
    """The plan of a text, whatever its barriers do."""
    found = function(*changes)
    return found, lower_alone(found, resolve("sm_90a"))[0]


SEEDS = (None, -1, 1, 2)


def faults(of: tuple[ir.Function, k.Plan], sizes: tuple[int, ...]) -> set[str]:
    """What some order of a run shows: faults, or other numbers than the text's own order gives."""
    found = set[str]()
    for m in sizes:
        x = np.random.default_rng(m).integers(-4, 5, (2, m, 32)).astype(np.float32)
        wanted = x.sum(axis=1)[:, ::-1]
        for seed in SEEDS:
            ran = run_plan(*of, {"x": x}, seed=seed)
            found |= {report.fault.name for report in ran.reports}
            found |= set() if np.array_equal(ran.arrays["y"], wanted) else {"numbers"}
    return found


EXAMPLE = Path(__file__).parents[3] / "examples" / "hopper" / "ring.te"


@cache
def example() -> Compiled:
    return lower(load(EXAMPLE).functions[0], "sm_90a", schedule=AUTO)


RIGHT = {
    "as it is": (),
    "one slot": (("[4", "[1"), ("% 4", "% 1"), ("k / 4", "k / 1")),
    "a wait for the first turns is left out": ((ACQUIRE, f"if k >= 4 {{ {ACQUIRE} }}"),),
    "the last releases are left out": ((EMPTY, f"if k + 4 < m {{ {EMPTY} }}"),),
    "a release a turn late": ((EMPTY, "if k >= 1 { arrive(empty[(k + 3) % 4]) }"),),
    "three slots": (("(32)[4]", "(32)[3]"), ("f32[4", "f32[3"), ("% 4", "% 3"), ("k / 4", "k / 3")),
    "other lanes fill each turn": ((FILL, "slots[k % 4, (t + k) % 32] = x[b, k, (t + k) % 32]"),),
    "two warps use": (
        ("empty: mbarrier(32)", "empty: mbarrier(64)"), ("fully par 64", "fully par 96"), ("63 - t", "t % 32"),
        ("if t >= 32 { y[b, t - 32]", "if t >= 64 { y[b, 95 - t]"),
    ),
}  # fmt: skip
"""Rings that are odd, and right."""


@pytest.mark.parametrize("name", RIGHT)
def test_what_is_right_is_proved(name: str) -> None:
    changes = RIGHT[name]
    assert not check(function(*changes))
    asked = question(*plan(*changes))
    proof = certified(asked, plan(*changes)[1]).proof
    assert not proof.of(Verdict.REFUSED) and not proof.of(Verdict.UNDECIDED)


@pytest.mark.parametrize("name", ["as it is", "a release a turn late", "two warps use"])
def test_what_is_right_runs_in_any_order(name: str) -> None:
    """No turn, one, and a turn less, as many, and a turn more than there are slots."""
    assert not faults(plan(*RIGHT[name]), (0, 1, 3, 4, 5, 9))


class Bug(NamedTuple):
    """`changes` of the text. `code` and `told`: what is said of it. `shown`: what the emulator shows, if it runs."""

    changes: tuple[tuple[str, str], ...]
    code: str
    told: str
    shown: str = ""


BUGS = {
    "nobody arrives at full": Bug(((FULL, ""),), "E0424", "lanes wait at `full`, and no lane arrives there", "DEADLOCK"),
    "nobody arrives at empty": Bug(((EMPTY, ""),), "E0424", "lanes wait at `empty`, and no lane arrives there", "DEADLOCK"),
    "nobody waits for full": Bug(((WAIT, ""),), "E0424", "lanes arrive at `full`, and no lane waits there", "RACE"),
    "nobody waits for empty": Bug(((ACQUIRE, ""),), "E0424", "lanes arrive at `empty`, and no lane waits there", "RACE"),
    "too few arrivals": Bug((("full: mbarrier(32)", "full: mbarrier(31)"),), "E0424", "phases of `full` do not get", "RACE"),
    "too many arrivals": Bug((("empty: mbarrier(32)", "empty: mbarrier(64)"),), "E0424", "phases of `empty`", "DEADLOCK"),
    "an arrival twice": Bug(((FULL, f"{FULL}\n{FULL}"),), "E0424", "phases of `full` do not get"),
    "half of the lanes arrive": Bug(((EMPTY, f"if t >= 48 {{ {EMPTY} }}"),), "E0424", "phases of `empty` do not get"),
    "the phase before": Bug(((WAIT, "wait(full[k % 4], k / 4 - 1)"),), "E0424", "`full` is for another slot or phase", "RACE"),
    "the phase behind": Bug(((WAIT, "wait(full[k % 4], k / 4 + 1)"),), "E0424", "`full` is for another slot or phase"),
    "two phases behind": Bug(((WAIT, "wait(full[k % 4], k / 4 + 2)"),), "E0424", "`full` is for another slot or phase"),
    "another slot": Bug(((WAIT, "wait(full[(k + 1) % 4], k / 4)"),), "E0424", "`full` is for another slot", "DEADLOCK"),
    "a circle": Bug(((ACQUIRE, "wait(empty[k % 4], k / 4)"),), "E0424", "`empty` is for another slot or phase", "DEADLOCK"),
    "too late a release": Bug(((EMPTY, f"if k >= 4 {{ {EMPTY} }}"),), "E0424", "come before it in the text", "DEADLOCK"),
    "read early": Bug(swapped(WAIT, USE), "E0425", "no barrier orders `slots[k % 4, t]`", "RACE"),
    "filled early": Bug(swapped(ACQUIRE, FILL), "E0425", "no barrier orders `slots[k % 4, -t + 63]`", "RACE"),
    "filled behind the arrival": Bug(swapped(FILL, FULL), "E0425", "no barrier orders", "RACE"),
    "overwritten early": Bug(swapped(USE, EMPTY), "E0425", "no barrier orders", "RACE"),
    "lanes of one warp on two sides": Bug(
        (("fully par 64", "fully par 32"), ("63 - t", "31 - t"), ("< 32", "< 16"), (">= 32", ">= 16"), ("- 32", "- 16"),
         (", 32]", ", 16]"), ("mbarrier(32)", "mbarrier(16)")),
        "E0424", "is no whole warps, or one warp is on both",
    ),
}  # fmt: skip


@pytest.mark.planted
@pytest.mark.parametrize("name", BUGS)
def test_a_bug_is_refused_by_name(name: str) -> None:
    bug = BUGS[name]
    found = check(function(*bug.changes))
    assert [each.code for each in found] == [bug.code] * len(found) and any(bug.told in each.message for each in found), found
    assert all(each.span is not None and each.help for each in found)
    with pytest.raises(TexprError):
        lower(function(*bug.changes), "sm_90a", schedule=None)


@pytest.mark.planted
@pytest.mark.parametrize("name", [name for name, bug in BUGS.items() if bug.shown])
def test_a_bug_is_shown(name: str) -> None:
    assert BUGS[name].shown in faults(plan(*BUGS[name].changes), (9,))


def test_who_waits_for_what_is_reported() -> None:
    made, lowered = plan((ACQUIRE, "wait(empty[k % 4], k / 4)"))
    (report, *_) = run_plan(made, lowered, {"x": np.zeros((1, 2, 32), np.float32)}).reports
    assert report.fault is Fault.DEADLOCK
    assert "waited at barrier empty[0], phase 0: 0 of 0 bytes and 0 of 32 arrivals came" in str(report)
    assert "waited at barrier full[0]" in str(report)


def test_the_interpreter_has_the_order_of_the_text() -> None:
    x = np.arange(2 * 9 * 32, dtype=np.float32).reshape(2, 9, 32)
    assert np.array_equal(run(function(), {"x": x})["y"], x.sum(axis=1)[:, ::-1])
    with pytest.raises(
        TexprError, match=r"waits for ever: empty\[0\] has 0 arrivals before this .* 1 phases take 32"
    ) as raised:
        run(function((ACQUIRE, "wait(empty[k % 4], k / 4)")), {"x": x})
    assert raised.value.diagnostics[0].code == "E0727"


def apart(turns: str) -> tuple[tuple[str, str], ...]:
    """Each side has a loop of its own."""
    loop = RING[RING.index("            seq m |k| {") : RING.index("            if t >= 32 { y")]
    fills, uses = f"{ACQUIRE}\n{FILL}\n{FULL}", f"{WAIT}\n{USE}\n{EMPTY}"
    return ((loop, f"if t < 32 {{ seq m |k| {{ {fills} }} }} else {{ seq {turns} |j| {{ {uses.replace('k', 'j')} }} }}\n"),)


def test_loops_of_two_sides_go_turn_by_turn() -> None:
    assert not check(function(*apart("m"))) and not faults(plan(*apart("m")), (0, 1, 5))
    assert plain(plan(*apart("m"))[1]) == plain(plan()[1])


def test_loops_of_other_turns_are_not_understood_and_wait_for_ever() -> None:
    """All turns of one side stand before those of the other."""
    made = function(*apart("m - 1"))
    assert [each.code for each in check(made)] == ["E0510", "E0510"]
    with pytest.raises(TexprError, match="waits for ever"):
        run(made, {"x": np.zeros((1, 5, 32), np.float32)})


def test_a_plan_with_such_barriers_is_read_back() -> None:
    _, lowered = plan()
    assert plain(parse_plan(plain(lowered))) == plain(lowered) and "parity ((k / 4) % 2) phase (k / 4)" in plan_text(lowered)


TILES = (
    RING.replace("x: f32[n, m, 32]", "x: f32[n, p, m, 32]")
    .replace("x[b, k, t]", "x[b, i, k, t]")
    .replace("k / 4", "i * (k / 4 + 1 + (m - 1 - k) / 4) + k / 4")
    .replace("seq m |k| {", "seq p |i| { seq m |k| {")
    .replace("            if t >= 32 { y", "            }\n            if t >= 32 { y")
)

BEHIND = """fn behind(x: f32[n, p, m, 32]): f32[n, 32] {
    new y: f32[n, 32]
    par n |b| {
        new one: f32[2, 32]
        new other: f32[3, 32]
        new full: mbarrier(32)[2]
        new empty: mbarrier(32)[2]
        new ready: mbarrier(32)[3]
        new free: mbarrier(32)[3]
        fully par 96 |t| {
            reg total: f32 = 0.0
            seq p |i| {
                seq m |k| {
                    if t < 32 {
                        wait(empty[k % 2], i * (k / 2 + 1 + (m - 1 - k) / 2) + k / 2 - 1)
                        one[k % 2, t] = x[b, i, k, t]
                        arrive(full[k % 2])
                    } else if t < 64 {
                        wait(full[k % 2], i * (k / 2 + 1 + (m - 1 - k) / 2) + k / 2)
                        wait(free[k % 3], i * (k / 3 + 1 + (m - 1 - k) / 3) + k / 3 - 1)
                        other[k % 3, t - 32] = one[k % 2, 63 - t]
                        arrive(empty[k % 2])
                        arrive(ready[k % 3])
                    } else {
                        wait(ready[k % 3], i * (k / 3 + 1 + (m - 1 - k) / 3) + k / 3)
                        total += other[k % 3, t - 64]
                        arrive(free[k % 3])
                    }
                }
            }
            if t >= 64 { y[b, t - 64] = total }
        }
    }
    return y
}
"""


@pytest.mark.parametrize("text", [TILES, BEHIND], ids=["a ring through tiles", "two rings, one behind the other"])
def test_rings_that_go_on(text: str) -> None:
    """Each tile begins in slot 0 again; the phases of a slot go on."""
    compiled = lower(parse(text, "f.te").functions[0], "sm_90a", schedule=None)
    for m, seed in ((m, seed) for m in (0, 1, 3, 5) for seed in SEEDS):
        x = np.random.default_rng(m).integers(-4, 5, (2, 3, m, 32)).astype(np.float32)
        ran = run_plan(compiled.function, compiled.plan, {"x": x}, seed=seed)
        assert not ran.reports and np.array_equal(ran.arrays["y"], x.sum(axis=(1, 2))[:, ::-1])


@pytest.mark.parametrize("m", [0, 1, 3, 4, 5, 9])
def test_the_example(m: int) -> None:
    """Of examples/hopper: no turn, one, and turns around the number of slots, in several orders."""
    compiled = example()
    x = np.random.default_rng(m).integers(-4, 5, (2, m, 128)).astype(np.float32)
    assert np.array_equal(run(compiled.function, {"x": x})["y"], x.sum(axis=1))
    for seed in SEEDS:
        ran = run_plan(compiled.function, compiled.plan, {"x": x}, seed=seed)
        assert not ran.reports and np.array_equal(ran.arrays["y"], x.sum(axis=1))


def test_the_example_is_proved_and_meets_at_no_other_barrier() -> None:
    compiled = example()
    asked = question(compiled.function, compiled.plan)
    assert certified(asked, compiled.plan).proof.counts["proved"] == len(certified(asked, compiled.plan).proof.obligations)
    assert compiled.source.count("__syncthreads") == 1 and "tx_barrier_wait(full, k % 4, k / 4 % 2);" in compiled.source


def test_a_schedule_is_refused() -> None:
    text = RING + "schedule ring for cuda { bind(b, grid.x) }\n"
    made = parse(text, "f.te").functions[0]
    with pytest.raises(TexprError, match="signal each other by barriers") as raised:
        lower(made, "sm_90a", schedule=made.schedules[0])
    assert raised.value.diagnostics[0].code == "E0914"
    assert lower(made, "sm_90a", schedule=AUTO).schedule is None


def test_an_older_machine_has_none() -> None:
    with pytest.raises(TexprError, match="threads of sm_80 do not wait at barriers in shared memory"):
        lower(function(), "sm_80", schedule=None)


def test_what_explains_names_the_waits(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")  # nothing is compiled
    assert main(["explain", str(EXAMPLE), "--for", "sm_90a"]) == 0
    assert "phase: as the text says (2 times)" in " ".join(capsys.readouterr().out.split())


def test_a_cpu_needs_no_barriers() -> None:
    assert "arrier" not in lower(function(), "cpu", schedule=None).source
