"""Plans of earlier builds: used where they are proved again, and of no effect where somebody edited them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from texpr import delivery, driver, kept
from texpr.artifact import Part
from texpr.ir.program import Function
from texpr.ir.program.selection import AUTO
from texpr.isa.registry import resolve
from texpr.presburger.formula import Formula
from texpr.presburger.solve import omega
from texpr.proof.plan.places import follows
from texpr.support.span import Source
from texpr.toolchain import Cache

TEXT = """
fn flip(a: f32[n, 64], b: f32[n, 64]): f32[n, 64] {
    new y: f32[n, 64]
    par n |i| {
        new t: f32[64]
        par 64 |j| { t[j] = a[i, j] }
        par 64 |j| { y[i, j] = t[63 - j] - b[i, j] }
    }
    return y
}

schedule flip "staged" { stage(b, at=i, in=shared) -> b_s }

schedule flip "other" { stage(a, at=i, in=shared) -> a_s }
"""

PRODUCT = """
fn product(A: bf16[M, K], B: bf16[K, N]): f32[M, N] {
    new C: f32[M, N]
    par M |i| { par N |j| {
        C[i, j] = 0.0
        seq K |k| reduce(C) { C[i, j] += A[i, k] * B[k, j] }
    } }
    return C
}
"""

Data = dict[str, Any]


def function(text: str = TEXT, name: str = "flip.te") -> Function:
    return driver.parse(Source(name, text)).functions[0]


def built(of: Function, cache: Cache | None, target: str = "sm_90a", schedule: str = "staged") -> Part:
    (part,) = delivery.parts([of], [target], schedule=schedule, kept=cache)
    return part


def shipped(part: Part) -> tuple[Data, str]:
    """What of it is in an artifact: all but hints, and the source."""
    (shown,) = part.shown
    return {
        **shown.data,
        "hints": None,
        "wide": None if shown.wide is None else {**shown.wide.data, "hints": None},
    }, part.source(0)


def entry(cache: Cache) -> Path:
    (path,) = cache.root.glob(f"*/*/{kept.FILE}")
    return path


def edited(cache: Cache, edit: Callable[[Data], None]) -> None:
    """An entry changed by somebody who makes its hash fit."""
    path = entry(cache)
    data = json.loads(path.read_text())
    edit(data)
    name = path.parent.name
    for file in path.parent.iterdir():
        file.unlink()
    path.parent.rmdir()
    assert cache.put(name, {kept.FILE: json.dumps(data).encode()}).folder is not None


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return kept.plans(tmp_path)


@pytest.fixture
def idle(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Functions that are compiled, by name."""
    made: list[str] = []
    lower = driver.lower

    def told(function: Function, *args: Any, **named: Any) -> driver.Compiled:
        made.append(function.name)
        return lower(function, *args, **named)

    monkeypatch.setattr(delivery.driver, "lower", told)
    return made


@pytest.mark.parametrize(
    ("target", "schedule"), [("sm_90a", "none"), ("sm_90a", "staged"), ("sm_90a", "other"), ("cpu", "none")]
)
def test_a_plan_is_made_once(cache: Cache, idle: list[str], target: str, schedule: str) -> None:
    fresh = built(function(), None, target, schedule)
    first, again = built(function(), cache, target, schedule), built(function(), cache, target, schedule)
    assert shipped(first) == shipped(again) == shipped(fresh)
    assert idle == ["flip"] * 2


def test_a_wide_plan_is_kept_with_its_plan(cache: Cache, idle: list[str]) -> None:
    of = driver.parse(PRODUCT).functions[0]
    first, again = built(of, cache, schedule="auto"), built(of, cache, schedule="auto")
    assert first.shown[0].wide is not None
    assert shipped(first) == shipped(again)
    assert idle == ["product"]


def test_hints_make_proofs_shorter(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    """A question is asked by its core, in the same order; none is asked in full."""
    of = driver.parse(PRODUCT).functions[0]
    built(of, cache, schedule="auto")
    sizes: list[tuple[int, bool]] = []
    core = omega._core.__wrapped__

    def told(facts: tuple[Formula, ...]) -> tuple[int, ...] | None:
        found = core(facts)
        sizes.append((len(facts), found is not None))
        return found

    monkeypatch.setattr(omega, "_core", told)
    built(of, cache, schedule="auto")
    failed = [size for size, found in sizes if not found]
    assert sum(found for _, found in sizes) > 100
    assert len(failed) < 0.1 * len(sizes), failed


def names() -> dict[str, str | None]:
    of, auto = resolve("sm_90a"), AUTO
    other = TEXT.replace("- b", "+ b")
    fixed = {"n": 8}
    return {
        "as it is": kept.name_of(function(), of, auto, {}),
        "for another target": kept.name_of(function(), resolve("sm_80"), auto, {}),
        "at a size": kept.name_of(function(), of, auto, fixed),
        "by a schedule": kept.name_of(function(), of, function().schedules[0], {}),
        "without one": kept.name_of(function(), of, None, {}),
        "another program": kept.name_of(function(other), of, auto, {}),
        "in other places": kept.name_of(function("\n" + TEXT), of, auto, {}),
        "of another file": kept.name_of(function(name="turn.te"), of, auto, {}),
    }


def test_names_tell_apart_what_gives_other_plans() -> None:
    found = names()
    assert None not in found.values()
    assert len({*found.values()}) == len(found)
    assert names() == found


def test_another_compiler_has_other_names(monkeypatch: pytest.MonkeyPatch) -> None:
    before = names()
    monkeypatch.setattr(kept, "_compiler", lambda: "another")
    assert not {*before.values()} & {*names().values()}
    monkeypatch.setattr(kept, "_compiler", lambda: None)
    assert {*names().values()} == {None}


def swapped(kind: str, old: str, new: str) -> Callable[[Data], None]:
    def edit(data: Data) -> None:
        assert old in data[kind], data[kind]
        data[kind] = data[kind].replace(old, new)

    return edit


def quoting(data: Data) -> None:
    """A line that the source quotes in a comment, which goes on as code."""
    (number, line), *_ = data["origin"]["lines"].items()
    data["origin"]["lines"][number] = f"{line} \\"


def named_otherwise(data: Data) -> None:
    data["origin"]["name"] = "other.te"


def from_nowhere(data: Data) -> None:
    data["origin"] = None


def of_another(data: Data) -> None:
    """Texts of another program, that are proved, with the lines of this one."""
    lines = data["origin"]
    data |= built(function(TEXT.replace("- b", "+ b")), None).shown[0].data
    data["origin"] = lines


def permitted(data: Data) -> None:
    """Something is not proved, which the program after its schedule permits, not the one as it is written."""
    written = data["written"]
    data |= built(function(TEXT.replace("f32[n, 64] {", "f32[n, 64] #unproved {", 1)), None).shown[0].data
    assert "at [i, j] " in data["tags"]
    assert "unproved" in data["program"]
    data["tags"], data["written"] = data["tags"].replace("at [i, j] ", "at [i, 0] "), written


def hinting(change: Callable[[int, Any], object]) -> Callable[[Data], None]:
    """Other cores for questions of so many facts."""

    def edit(data: Data) -> None:
        data["hints"] = {kind: [[n, change(n, core)] for n, core in found] for kind, found in data["hints"].items()}

    return edit


def claimed(data: Data) -> None:
    """Another value, and hints by which any fact is contradictory."""
    swapped("plan", "63", "62")(data)
    hinting(lambda *_: [0])(data)


EDITS: dict[str, Callable[[Data], None]] = {
    "another value": swapped("plan", "63", "62"),
    "no barrier": swapped("plan", "barrier block covers RAW t from 6 to 7", ""),
    "another name": swapped("plan", "plan flip", "plan flop"),
    "spaces": swapped("plan", "launch flip", "launch  flip"),
    "another program after its schedule": swapped("program", "+ 63", "+ 62"),
    "another program as it is written": swapped("written", "+ 63", "+ 62"),
    "no tags": lambda data: data.update(tags=""),
    "no notes": lambda data: data.update(notes=None),
    "no plan": lambda data: data.update(plan=""),
    "no text": lambda data: data.update(plan=3),
    "nothing": lambda data: data.clear(),
    "a quoted line": quoting,
    "another file": named_otherwise,
    "no file": from_nowhere,
    "of another function": of_another,
    "unproved": permitted,
    "claimed to be refuted": claimed,
}


@pytest.mark.parametrize("edit", EDITS)
def test_an_edited_entry_is_not_used(cache: Cache, idle: list[str], edit: str) -> None:
    first = built(function(), cache)
    edited(cache, EDITS[edit])
    idle.clear()
    assert shipped(built(function(), cache)) == shipped(first)
    assert idle == ["flip"]


WRONG_HINTS: dict[str, Callable[[Data], None]] = {
    "none": lambda data: data.update(hints=None),
    "too small": hinting(lambda number, core: core and core[:1]),
    "of other questions": lambda data: data.update(hints={kind: [[99, [0]]] for kind in data["hints"]}),
    "all facts at once": hinting(lambda number, core: [*range(number)]),
}


@pytest.mark.parametrize("edit", WRONG_HINTS)
def test_a_wrong_hint_costs_time_only(cache: Cache, idle: list[str], edit: str) -> None:
    first = built(function(), cache)
    edited(cache, WRONG_HINTS[edit])
    idle.clear()
    assert shipped(built(function(), cache)) == shipped(first)
    assert idle == []


@pytest.mark.parametrize("text", [TEXT, PRODUCT], ids=["flip", "product"])
@pytest.mark.parametrize("core", [[99], ["i"], 3, [0], None])
def test_a_hint_that_gives_up_costs_a_plan_only(cache: Cache, core: object, text: str) -> None:
    """Nothing is refuted by such hints, which the plan that is made instead must not remember."""
    schedule = "staged" if text is TEXT else "auto"
    first = built(function(text), cache, schedule=schedule)
    edited(cache, hinting(lambda *_: core))
    assert shipped(built(function(text), cache, schedule=schedule)) == shipped(first)


def test_what_hints_left_open_is_asked_again(cache: Cache) -> None:
    of = function(PRODUCT)
    built(of, cache, schedule="auto")
    edited(cache, swapped("tags", "at [", "at [0 + "))
    assert follows.cache_info().currsize
    name = kept.name_of(of, resolve("sm_90a"), AUTO, {})
    assert name is not None
    assert kept.again(cache, name, of, resolve("sm_90a")) is None
    assert not follows.cache_info().currsize


def test_a_damaged_entry_is_made_again(cache: Cache, idle: list[str]) -> None:
    first = built(function(), cache)
    entry(cache).write_bytes(b"{")
    idle.clear()
    assert shipped(built(function(), cache)) == shipped(first)
    assert idle == ["flip"]
    built(function(), cache)
    assert idle == ["flip"]
