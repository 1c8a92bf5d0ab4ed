"""Which obligation refuses a bug planted in a barrier of copies: what is made, arrives, brings bytes, or waits."""

from collections.abc import Mapping
from functools import cache

import pytest
from tests.proof.plan.test_engine import bugs

from texpr import driver
from texpr.affine.expr import Sym, expr
from texpr.ir import kernel as k
from texpr.ir.program import Function
from texpr.ir.proof.tags import Instance
from texpr.proof.plan import Verdict, prove, question
from texpr.proof.search import proved, search
from texpr.support.record import replace

REFUSED = {
    ("barrierinit dropped", 0): "phases follow",
    ("more arrivals awaited", 0): "a barrier is made",
    ("fence dropped: init", 0): "phases follow",
    ("barrier dropped", 0): "phases follow",
    ("guard dropped", 0): "a barrier is made",
    ("guard dropped", 1): "phases are counted",
    ("barrierexpect dropped", 0): "phases follow",
    ("arrives twice", 0): "phases follow",
    ("fewer bytes expected", 0): "bytes of a phase",
    ("more bytes expected", 0): "bytes of a phase",
    ("copytensor dropped", 0): "bytes of a phase",
    ("copied twice", 0): "bytes of a phase",
    ("barrierwait dropped", 0): "a phase is waited for",
    ("other parity", 0): "parity",
}
"""What refuses a bug of a class: the first in the text, the next."""


@cache
def planted() -> Mapping[tuple[str, int], tuple[k.Plan, Function]]:
    found: dict[tuple[str, int], tuple[k.Plan, Function]] = {}
    for bug, function in bugs("copy"):
        found[bug.kind, sum(kind == bug.kind for kind, _ in found)] = bug.plan, function
    return found


@pytest.mark.parametrize(("kind", "number"), REFUSED)
def test_a_bug_is_refused_by(kind: str, number: int) -> None:
    plan, function = planted()[kind, number]
    assert REFUSED[kind, number] in {each.what for each in proved(function, plan).of(Verdict.REFUSED)}


OFTEN = """
fn often(A: f32[M, K] align(16)): f32[M, K]
    where M % 32 == 0, K % 32 == 0
{
    new B: f32[M, K]
    par M |i| { par K |j| {
        B[i, j] = 0.0
        seq 4 |r| reduce(B) { B[i, j] += A[i, j] }
    } }
    return B
}

schedule often "tiles" for sm_90a {
    split(i, 32) -> (bi, ti)  split(j, 32) -> (bj, tj)
    reorder(bi, bj, r, ti, tj)
    bind(bi, grid.y)  bind(bj, grid.x)
    stage(A, at=bj, in=shared, via=tma, fill=zero) -> As
}"""
"""One tile is copied, and read in each turn of a loop."""


@cache
def often() -> tuple[k.Plan, Function]:
    """A phase in each turn of the loop, of which one alone gets the bytes: the others never complete."""
    (function,) = driver.parse(OFTEN).functions
    compiled = driver.lower(function, "sm_90a", schedule=function.schedules[0])
    (kernel,) = k.kernels(compiled.plan.steps)
    body: list[k.Stmt] = []
    moved: list[k.Stmt] = []
    for stmt in kernel.body:
        if isinstance(stmt, k.If) and any(isinstance(each, k.BarrierExpect) for each in stmt.then):
            moved.append(replace(stmt, then=tuple(each for each in stmt.then if isinstance(each, k.BarrierExpect))))
            body.append(replace(stmt, then=tuple(each for each in stmt.then if not isinstance(each, k.BarrierExpect))))
        elif isinstance(stmt, k.BarrierWait):
            moved.append(stmt)
        elif isinstance(stmt, k.For) and stmt.sym.name == "r":
            turned = [replace(s, parity=expr(stmt.sym) % 2) if isinstance(s, k.BarrierWait) else s for s in moved]
            body.append(replace(stmt, body=(*turned, *stmt.body, k.Barrier(k.Level.BLOCK))))
        else:
            body.append(stmt)
    assert len(moved) == 2
    return replace(compiled.plan, steps=(k.Launch(replace(kernel, body=tuple(body))),)), compiled.function


def test_bytes_of_one_phase_are_not_those_of_each() -> None:
    plan, function = often()
    assert "bytes of a phase" in {each.what for each in proved(function, plan).of(Verdict.REFUSED)}


@pytest.mark.parametrize("turn", ["r", "r % 4", "0", "r○"])
def test_a_tag_says_no_more_than_what_names_it_knows(turn: str) -> None:
    """A copy that stands in no loop is said to be of the arrival in some turn, as that is called elsewhere."""
    plan, function = often()
    asked = question(function, plan)
    tags = search(asked)
    arrival, copy = (
        next(at for at, s in enumerate(asked.reading.signals) if isinstance(s.stmt, kind))
        for kind in (k.BarrierExpect, k.CopyTensor)
    )
    (loop,) = asked.reading.signals[arrival].site.loops
    own = expr(loop.sym)
    said = {"r": own, "r % 4": own % 4, "0": expr(0), "r○": expr(Sym("r○"))}[turn]
    turns = [
        replace(each, begun=(Instance(arrival, (expr(0), said)),)) if at == copy else each for at, each in enumerate(tags.turns)
    ]
    proof = prove(asked, plan, replace(tags, turns=tuple(turns)))
    wrong = [each for each in (*proof.of(Verdict.REFUSED), *proof.of(Verdict.UNDECIDED)) if each.what == "bytes of a phase"]
    assert wrong
