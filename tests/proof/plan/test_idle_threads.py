"""Threads of no iteration: a constant that they give a register is a hole, which nobody may read; and bugs put into that."""

from __future__ import annotations

from functools import cache

import pytest
from tests.proof.plan.test_open import CLUSTER, compiled
from tests.proof.plan.verdicts import is_proved, open_of

from texpr.ir.kernel.parse import parse_plan
from texpr.ir.kernel.text import plan_text
from texpr.ir.proof.tags import Statement
from texpr.ir.value import Literal, Ref
from texpr.proof.plan import prove, question
from texpr.proof.read.events import Event
from texpr.proof.search import proved, search
from texpr.support.record import replace


@cache
def text() -> str:
    """The plan of `rows`, whose blocks beyond the last row only fill a cluster, without lines of the program."""
    return "\n".join(each.split("  -- line")[0] for each in plan_text(compiled(CLUSTER, "sm_90a").plan).splitlines())


def changed(*changes: tuple[str, str]) -> str:
    """The plan with some text replaced, wherever it stands."""
    found = text()
    for old, new in changes:
        assert old in found, found
        found = found.replace(old, new)
    return found


def test_blocks_that_fill_a_cluster_are_proved() -> None:
    made = compiled(CLUSTER, "sm_90a")
    assert open_of(proved(made.function, parse_plan(text()))) == []


def guarded(text: str) -> tuple[tuple[str, str]]:
    """A line of the plan, for rows only."""
    return ((text, f"    {GUARD}\n    {text.split(' covers')[0]}\n    }}"),)


GUARD = "if (i32(i) < i32(M)) uniform {"
BEGUN = "    let s: f32 = 0.0:f32"
STORE = f"""        {GUARD}
            y[i] = s
        }}"""
LEAF = f"""    {GUARD}
        fused s_own = """
TAKEN = f"""    {GUARD}
        s_own_all = """
END = "    if (i32(thread) == 0:i32) {\n        if (i32(i) < i32(M)) uniform {\n            y[i]"
WIDER = GUARD.replace("<", "<=")

WRONG = {
    "a wider store": ((STORE, STORE.replace(GUARD, WIDER)),),
    "a store by all": ((STORE, "        y[i] = s"),),
    "a store by all, somewhere": ((STORE, "        y[min(i, M - 1)] = s"),),
    "a store by all, first": ((BEGUN, f"{BEGUN}\n    if (i32(thread) == 0:i32) {{\n        y[0] = 0.0:f32\n    }}"),),
    "a store by another axis": ((STORE, STORE.replace("i32(i) <", "i32(i_rank) <")),),
    "a wider sum": ((LEAF, LEAF.replace(GUARD, WIDER)),),
    "a sum by another axis": ((LEAF, LEAF.replace("i32(i) <", "i32(i_rank) <")),),
    "a sum that begins with something": ((BEGUN, BEGUN.replace("0.0", "1.0")),),
    "what is taken by another axis": ((TAKEN, TAKEN.replace("i32(i) <", "i32(i_rank) <")),),
    "an idle block makes no barrier": guarded("        mbarrier init ws_full[0] count 1"),
    "an idle block does not come to the cluster's barrier": guarded("    barrier cluster covers RAW ws_full from 12 to 12"),
    "blocks meet alone": (("    barrier cluster covers RAW ws_full from 12 to 12", "    barrier block"),),
    "an idle block arrives nowhere": guarded("        mbarrier expect ws_full[0] bytes 256"),
    "an idle block does not wait": guarded("    mbarrier wait ws_full[0] parity 0 covers RAW ws from 12 to 6"),
    "a copy that some blocks do not get": (("to [0, 1, 2, 3, 4, 5, 6, 7]", "to [0, 1, 2, 3]"),),
    "a copy that idle blocks bring, too": (("if (i32(i_rank) == i32(0))", "if (i32(i_rank) >= i32(0))"),),
    "partial values of the block beside": (
        ("    array shared s_own_warps: f32[2]", "    array cluster s_own_warps: f32[8, 2]"),
        ("s_own_warps[(thread / 32)]", "s_own_warps[i_rank, (thread / 32)]"),
        ("s_own_warps[0]", "s_own_warps[((i_rank + 1) % 8), 0]"),
        ("s_own_warps[warp]", "s_own_warps[((i_rank + 1) % 8), warp]"),
        ("    barrier block", "    barrier cluster"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_what_a_live_block_may_see_is_not_proved(name: str) -> None:
    made = compiled(CLUSTER, "sm_90a")
    assert not is_proved(proved(made.function, parse_plan(changed(*WRONG[name]))))


def is_begun(event: Event) -> bool:
    """Whether an event gives `s` a constant."""
    return isinstance(event.target, Ref) and event.target.sym.name.split("#")[0] == "s" and isinstance(event.value, Literal)


HOLES = {
    "of idle blocks": (" if (i32(i) >= i32(M)) uniform { s = 0.0:f32 }", True),
    "a block too early": (" if (i32(i) >= i32(M - 1)) uniform { s = 0.0:f32 }", False),
    "of idle blocks, by another axis": (" if (i32(i_rank) >= i32(M)) uniform { s = 0.0:f32 }", True),
    "of another axis": (" if (i32(i_rank) > 0:i32) uniform { s = 0.0:f32 }", False),
    "of every thread": (" s = 0.0:f32", False),
    "of the thread that stores": (" if (i32(thread) == 0:i32) { s = 0.0:f32 }", False),
    "of a warp": (" if (i32(thread) < 32:i32) { s = 0.0:f32 }", False),
}
"""What is stored again before the result is."""


@pytest.mark.parametrize("name", HOLES)
def test_nobody_reads_a_hole(name: str) -> None:
    """A tag says that it is as the first value of the register: of the program's iterations, and elsewhere holes."""
    more, right = HOLES[name]
    made, plan = compiled(CLUSTER, "sm_90a"), parse_plan(changed((END, f"{more}\n{END}")))
    asked = question(made.function, plan)
    tags = search(asked)
    first, *_, again = (n for n, e in enumerate(asked.reading.events) if is_begun(e))
    tag = tags.events[first]
    assert isinstance(tag, Statement) and tag.partial
    for each in (tag, replace(tag, partial=False)):
        tagged = replace(tags, events=(*tags.events[:again], each, *tags.events[again + 1 :]))
        assert is_proved(prove(asked, plan, tagged)) == (right and each.partial)
