"""The steps form: well formed, the same after print and parse, and all that a kernel is emitted from."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.ir.steps_text import check
from tests.lowering.clustered import HALO, blocked, in_turns, normalised
from tests.schedule.laid import laid
from tests.snapshot import ROOT, TARGETS, programs

from texpr import driver
from texpr.driver import Compiled
from texpr.frontend import parse
from texpr.ir import kernel as k
from texpr.ir.steps import text as printer
from texpr.support.diagnostic import CompilerBug, TexprError

PROGRAMS = {path.relative_to(ROOT).with_suffix("").as_posix(): path for path in programs()}


def compiled(path: Path, targets: tuple[str, ...]) -> Iterator[Compiled]:
    """What is made of a program, with each of its schedules, the one that is found, and none."""
    try:
        functions = driver.load(path).functions
    except TexprError:
        return
    for function in functions:
        for target in targets:
            for schedule in ("auto", None, *function.schedules):
                try:
                    yield driver.lower(function, target, schedule=schedule)
                except (TexprError, CompilerBug):
                    continue


@pytest.mark.parametrize("name", [name for at, name in enumerate(PROGRAMS) if at % 3 == 0 or "everyday" not in name])
def test_a_kernel_is_made_of_the_text_of_its_steps_alone(name: str) -> None:
    for made in compiled(PROGRAMS[name], ("cpu", "sm_90a")):
        check(made.plan, made.notes)


@pytest.mark.long
@pytest.mark.parametrize("name", PROGRAMS)
def test_so_it_is_for_all_targets(name: str) -> None:
    for made in compiled(PROGRAMS[name], TARGETS):
        check(made.plan, made.notes)


CLUSTERS = [
    (normalised(300), blocked(75, "j", "k", "l", "o")),
    (normalised(300), in_turns(4, "j", "k", "l", "o")),
    (HALO, ""),
]


@pytest.mark.parametrize(("text", "directives"), CLUSTERS)
def test_so_it_is_where_blocks_of_a_cluster_share_an_iteration(text: str, directives: str) -> None:
    (kernel,) = k.kernels(laid(text, directives).plan.steps)
    assert kernel.cluster != (1, 1, 1)


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("_digits", lambda digits: ", ".join(f"{d.radix}:{1}" for d in digits)),
        ("_changes", lambda place: ""),
        ("_effects", lambda step: iter(())),
        ("line_text", lambda span: ""),
    ],
    ids=["strides", "changes of subscripts", "effects", "lines"],
)
def test_what_a_printer_leaves_out_is_noticed(name: str, wrong: Callable[..., object], monkeypatch: pytest.MonkeyPatch) -> None:
    (function, *_) = driver.load(ROOT / "examples/tma/matmul.te").functions
    made = driver.lower(function, "sm_90a", schedule=function.schedules[0])
    check(made.plan, made.notes)
    monkeypatch.setattr(printer, name, wrong)
    with pytest.raises((AssertionError, CompilerBug, TexprError)):
        check(made.plan, made.notes)


WORDS = [
    "steps", "of", "buffer", "size", "host", "avoid", "threads", "team", "warp", "blocks", "vectors", "line", "axis",
    "coordinates", "array", "map", "along", "block", "tile", "by", "lane", "ragged", "dealt", "meets", "digits", "unroll",
    "place", "register", "leading", "trailing", "slots", "parts", "dim", "run", "rank", "known", "thread", "reduction",
    "own", "warps", "all", "iteration", "each", "alike", "reads", "writes", "through", "completes", "group", "at", "middle",
    "total", "order", "end", "decide", "repeat", "choose", "partial", "spread", "points", "issue", "engine", "generic",
    "async", "bind", "update",
]  # fmt: skip
"""Words of the grammar that a program may call its own things."""


@pytest.mark.parametrize("target", ["cpu", "sm_90a"])
@pytest.mark.parametrize("first", range(0, len(WORDS) - 6, 6))
def test_a_program_may_use_the_words_of_the_form(first: int, target: str) -> None:
    a, b, c, d, e, f = WORDS[first : first + 6]
    text = f"""
fn named({a}: f32[n, 64], {b}: i32[n]): f32[n, 64] {{
    new {c}: f32[n, 64]
    par n |{d}| {{
        new {e}: f32[64]
        new {f}: f32
        {f} = 0
        par 64 |j| reduce({f}) {{ {f} += {a}[{d}, j] }}
        if {b}[{d}] > 0 {{ par 64 |k| {{ {e}[k] = {f} * {a}[{d}, k] }} }} else {{ par 64 |k| {{ {e}[k] = {f} }} }}
        par 64 |l| {{ {c}[{d}, l] = {e}[63 - l] }}
    }}
    return {c}
}}
"""
    (function,) = parse(text, "named.te").functions
    made = driver.lower(function, target, schedule=None)
    check(made.plan, made.notes)
