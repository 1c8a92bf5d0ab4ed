"""Rings between roles whose readers are threads: what is right is proved, and nobody's word is taken for a premise.

A warp copies rows ahead, eight warps read them. The kernel is written here, as no schedule makes it yet.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
from tests.lowering.emulated import run_plan
from tests.planted import open_of

from texpr.affine.expr import Expr, expr
from texpr.driver import Compiled, lower
from texpr.frontend import parse
from texpr.ir import kernel as k
from texpr.ir.kernel.parse import parse_plan
from texpr.ir.kernel.text import plan_text
from texpr.ir.operation import Arrives, Brings, Releases, Waits
from texpr.ir.proof import Verdict
from texpr.ir.proof.tags import Instance, Parcel, Statement, Tags
from texpr.proof.plan import Question, prove, question
from texpr.proof.read.events import Channel, Signal
from texpr.proof.search import search
from texpr.support.record import replace

TEXT = """
fn f(x: f32[n, 256] align(16)): f32[n, 256] where n % 2 == 0 {
    new y: f32[n, 256]
    par 1 |b| { seq n |i| { par 256 |j| { y[i, j] = x[i, j] + x[i, 255 - j] } } }
    return y
}
schedule f for sm_90a {
    bind(b, grid.x)
    stage(x, at=i, in=shared, via=tma) -> row
    pipeline(i, stages=4, lag=1)
}
"""

READ = "                y[i - 2, j] = (row[((i + 2) % 4), 0, j] + row[((i + 2) % 4), 0, -j + 255])\n"
FENCE = "                fence async\n"
RELEASE = "                mbarrier release row_empty[((i + 1) % 3)]\n"
WAIT = "                    mbarrier wait row_empty[(i % 3)] parity (((i / 3) + 1) % 2)\n"
COPY = "                    tensor load row[(i % 4), 0, 0] = x_map[256 * i] arrives row_full[(i % 3)]\n"
INITS = "".join(
    f"        mbarrier init row_{of}[{slot}] count {count}\n" for of, count in (("full", 1), ("empty", 8)) for slot in range(3)
)

BODY = f"""{{
    if (i32(thread) == 0:i32) {{
{INITS}        fence init
    }}
    barrier block
    for i in 0..n + 2 uniform {{
        if (i32(thread) >= 256:i32) role copy 8 1 {{
            let decided: bool = (i64(i) < i64(n))
            if decided uniform {{
                if (i32(thread) == 256:i32) {{
{WAIT}                    mbarrier expect row_full[(i % 3)] bytes 1024
{COPY}                }}
            }}
        }}
        if (i32(thread) < 256:i32) role compute 0 8 {{
            let decided_1: bool = (i64(i) >= i64(2))
            if decided_1 uniform {{
                mbarrier wait row_full[((i + 1) % 3)] parity ((((i + 1) / 3) + 1) % 2)
                let j: i32 = i32(thread)
{READ}{FENCE}{RELEASE}            }}
        }}
    }}
}}
"""
"""Four rows, of which the barriers know three: copies are two turns ahead."""

RING = 'row_full: u64[3] barriers "they have landed"\n    array shared row_empty: u64[3] barriers "they were read"\n'


@cache
def made() -> Compiled:
    function = parse(TEXT)["f"]
    return lower(function, "sm_90a", schedule=function.schedules[0])


def altered(*changes: tuple[str, str]) -> k.Plan:
    head, text = "", plan_text(made().plan)
    for line in text[: text.index("\n{\n    if")].splitlines(keepends=True):
        head += f"    array shared {RING}" if "row_full" in line else line.split("  -- ")[0].rstrip("\n") + "\n"
    text = head.replace("thread < 256", "thread < 288") + BODY
    for old, new in changes:
        assert old in text, (old, text)
        text = text.replace(old, new)
    return parse_plan(text)


def shown(plan: k.Plan) -> bool:
    """Whether some order of a run has a fault, or gives other numbers."""
    for rows, seed in ((rows, seed) for rows in (0, 2, 4, 10) for seed in (None, 1, 2, 3)):
        x = np.arange(rows * 256, dtype=np.float32).reshape(rows, 256)
        run = run_plan(made().function, plan, {"x": x}, seed=seed)
        if run.reports or not np.array_equal(run.arrays["y"], x + x[:, ::-1]):
            return True
    return False


LATE = {
    "as it is": (),
    "a fence behind the release": ((FENCE + RELEASE, RELEASE + FENCE),),
    "read behind the release": ((READ + FENCE + RELEASE, RELEASE + READ + FENCE),),
}
"""With a row more than barriers, the release of the next turn is early enough."""


@pytest.mark.parametrize("name", LATE)
def test_what_is_right_is_proved(name: str) -> None:
    plan = altered(*LATE[name])
    assert not open_of(made(), plan) and not shown(plan)


BUGS = {
    "no fence between proxies": ((FENCE, ""),),
    "a fence of one lane": ((FENCE, f"                if (i32(thread) == 0:i32) {{\n{FENCE}                }}\n"),),
    "a fence of the one who copies": ((FENCE, ""), (COPY, f"    {FENCE}{COPY}")),
    "lanes are counted along another dimension": (("axis block.x", "axis block.y"),),
}


@pytest.mark.planted
@pytest.mark.parametrize("name", BUGS)
def test_no_bug_is_proved(name: str) -> None:
    plan = altered(*BUGS[name])
    assert open_of(made(), plan) and shown(plan)


def is_of_other_warps(plan: k.Plan) -> bool:
    return "channel, counts" in {each.split(": ")[0] for each in open_of(made(), plan)}


def test_a_release_is_of_the_lanes_that_arrive_once() -> None:
    halves = (("axis block.x", "warp 16\n    axis block.x"), ("copy 8 1", "copy 16 2"), ("compute 0 8", "compute 0 16"))
    assert is_of_other_warps(altered(*halves)) and is_of_other_warps(altered(*halves, ("count 8", "count 16")))


def swapped(tags: Tags, asked: Question, other: Callable[[Expr], Expr]) -> Tags:
    """The tags of a kernel in which a turn copies what the turn `other` waits and arrives for."""
    numbers = {type(s.what): at for at, s in enumerate(asked.reading.signals)}
    events, turns = list(tags.events), list(tags.turns)
    for at, (event, tag) in enumerate(zip(asked.reading.events, tags.events, strict=True)):
        if event.signal is not None and isinstance(tag, Statement):
            (turn,) = (loop.sym for loop in asked.program.actions[tag.action].spot.loops if loop.sym.name == "i")
            events[at] = replace(tag, inverse=(*tag.inverse[:2], other(expr(turn)), *tag.inverse[3:]))
    for at, signal in enumerate(asked.reading.signals):
        turn = other(expr(signal.site.loops[0].sym)) if signal.site.loops else expr(0)
        if isinstance(signal.what, Arrives):
            copied = Instance(numbers[Brings], (expr(signal.site.launch.threads[0]), turn))
            turns[at] = replace(turns[at], parcels=(Parcel((copied,), (), expr(1024)),))
        elif isinstance(signal.what, Brings):
            turns[at] = replace(turns[at], begun=(Instance(numbers[Arrives], (expr(256), turn)),))
    return replace(tags, events=tuple(events), turns=tuple(turns))


@pytest.mark.planted
def test_a_copy_is_behind_the_wait_of_its_own_phase() -> None:
    """Two turns each copy what the other one arrives for: so one of them does before the slot is known to be empty."""
    turn = "(i + 1 - 2 * (i % 2))"
    new = COPY.replace("(i % 4)", f"({turn} % 4)").replace("256 * i", f"256 * {turn}").replace("(i % 3)", f"({turn} % 3)")
    plan = altered((COPY, new))
    asked = question(made().function, plan)
    proof = prove(asked, plan, swapped(search(asked), asked, lambda i: i + 1 - 2 * (i % 2)))
    assert {each.what for each in proof.of(Verdict.REFUSED)} == {"all have passed"} and not proof.of(Verdict.UNDECIDED)
    assert shown(plan)


def forced(asked: Question) -> None:
    """Says that the kernel has a ring, as if reading had found one."""
    (launch,), by = asked.reading.launches, dict[tuple[str, type], Signal]()
    for signal in asked.reading.signals:
        by.setdefault((signal.barrier.buffer.name, type(signal.what)), signal)
    kinds = (("row_empty", Waits), ("row_full", Arrives), ("row_full", Waits), ("row_empty", Releases))
    found = acquire, fill, use, release = [by[kind] for kind in kinds]
    first = dict(zip(found, (0, 0, 2, 2), strict=True))
    launch.channels[:] = [Channel(fill.site.loops[0], acquire, fill, (use,), (release,), first, (256, 257), (0, 256))]


@pytest.mark.planted
@pytest.mark.parametrize(
    "changes",
    [
        ((WAIT, WAIT + "                    mbarrier arrive row_empty[(i % 3)]\n"),),
        ((RELEASE, RELEASE + RELEASE),),
        ((WAIT, WAIT + WAIT),),
        ((COPY, COPY + "                    mbarrier arrive row_full[(i % 3)]\n"),),
        ((RELEASE, f"                if (row[((i + 2) % 4), 0, 0] >= 0.0:f32) uniform {{\n{RELEASE}                }}\n"),),
    ],
)
def test_nobody_believes_that_a_ring_was_found(changes: tuple[tuple[str, str], ...]) -> None:
    plan = altered(*changes)
    asked = question(made().function, plan)
    forced(asked)
    refused = {
        each.what for verdict in (Verdict.REFUSED, Verdict.UNDECIDED) for each in prove(asked, plan, search(asked)).of(verdict)
    }
    assert "channel, counts" in refused
