"""Splits that divide and splits that do not: the seed's cases, walked through in the loops that schedules make of programs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.schedule.walker import Event, events, holding

from texpr.affine.expr import Sym, expr
from texpr.affine.facts import Known
from texpr.domain.equivalence.decide import Different, Nothing, Same, compare
from texpr.domain.graph import DomainGraph
from texpr.domain.iteration import Iteration
from texpr.driver import lower, parse
from texpr.ir import kernel as k
from texpr.ir import program as ir
from texpr.ir.value import Index, Op, Value
from texpr.isa.registry import resolve
from texpr.relation.facts import known
from texpr.schedule.apply import apply_schedule, followed
from texpr.schedule.rewrite.materialise import given
from texpr.schedule.tree import loops

EXAMPLES = Path(__file__).parents[2] / "examples" / "scheduled"
TARGET = resolve("sm_90a")


def laid_out(text: str) -> ir.Function:
    """The only function of `text`, as its only schedule lays it out."""
    (function,) = parse(text).functions
    (schedule,) = function.schedules
    made = apply_schedule(function, schedule, TARGET)
    assert made is not None
    return made.function


# Three indivisible splits.

FIFTEEN = """
fn fifteen(x: i32[15]): i32[15] {
    new y: i32[15]
    par 15 |i0| { y[i0] = x[i0] }
    return y
}
schedule fifteen for cuda {
    split(i0, 6) -> (i1, i2)
    split(i1, 2) -> (i3, i4)
    split(i2, 4) -> (i5, i6)
}
"""
I3, I4, I5, I6 = (expr(Sym(name)) for name in ("i3", "i4", "i5", "i6"))
I2 = 4 * I5 + I6
I0 = 6 * (2 * I3 + I4) + I2


def parts(condition: Value) -> list[Value]:
    """The comparisons of a conjunction."""
    match condition:
        case Op("and", args):
            return [part for arg in args for part in parts(arg)]
        case _:
            return [condition]


def comparisons(function: ir.Function) -> list[tuple[str, object, object]]:
    """Every comparison of a function, as operator and two expressions."""
    found: list[tuple[str, object, object]] = []
    for stmt in ir.walk(function.body):
        for part in parts(stmt.condition) if isinstance(stmt, ir.If) else ():
            assert isinstance(part, Op)
            left, right = part.args
            assert isinstance(left, Index)
            assert isinstance(right, Index)
            found.append((part.name, left.expr, right.expr))
    return found


def visited(event: Event) -> tuple[int, ...]:
    """The element that an assignment writes."""
    found = [touch.element for touch in event.touches() if touch.writes]
    assert len(found) == 1
    assert found[0] is not None
    return found[0]


def test_three_indivisible_splits_need_two_comparisons() -> None:
    """That i1 < 3 follows from i0 < 15: Theorem 1 of the seed."""
    function = laid_out(FIFTEEN)
    assert [loop.extent.constant for loop in loops(function.body)] == [2, 2, 2, 4]
    assert set(comparisons(function)) == {("lt", I0, expr(15)), ("lt", I2, expr(6))}
    assert len(comparisons(function)) == 2
    assert [visited(event) for event in events(function, {})] == [(n,) for n in range(15)]


def test_with_one_comparison_items_come_twice() -> None:
    """What the seed prints where only i0 is compared."""

    def only_i0(condition: Value, at: Mapping[Sym, int]) -> bool | None:
        kept = [
            p for p in parts(condition) if isinstance(p, Op) and isinstance(p.args[1], Index) and p.args[1].expr == expr(15)
        ]
        assert len(kept) == 1
        return holding(kept[0], at)

    seen = [visited(event)[0] for event in events(laid_out(FIFTEEN), {}, only_i0)]
    assert seen == [0, 1, 2, 3, 4, 5, 6, 7, 6, 7, 8, 9, 10, 11, 12, 13, 12, 13, 14]


# The case study: are split then merge, and merge then split, equivalent?

SPLIT_FIRST = "split(j, 4) -> (jo, b)  merge(i, jo) -> a"
MERGE_FIRST = "merge(i, j) -> p  split(p, 4) -> (a, b)"

FIRST_LISTING = """
T[0, 0], T[0, 1], T[0, 2], T[0, 3]
T[0, 4], T[0, 5], T[0, 6], T[0, 7]
T[1, 0], T[1, 1], T[1, 2], T[1, 3]
T[1, 4], T[1, 5], T[1, 6], T[1, 7]
"""

SECOND_LISTING = """
T[0, 0], T[0, 1], T[0, 2], T[0, 3]
T[0, 4], T[1, 0], T[1, 1], T[1, 2]
T[1, 3], T[1, 4], T[2, 0], T[2, 1]
"""


def tensor(rows: str, columns: str, directives: str, where: str = "") -> str:
    """A program that goes through T[rows, columns] under directives."""
    return (
        f"fn f(T: i32[{rows}, {columns}]): i32[{rows}, {columns}] {where} {{\n    new y: i32[{rows}, {columns}]\n"
        f"    par {rows} |i| {{ par {columns} |j| {{ y[i, j] = T[i, j] }} }}\n    return y\n}}\n"
        f"schedule f for cuda {{ {directives} }}\n"
    )


def listing(function: ir.Function) -> str:
    """Every position of the loops, holes too, as the seed lists them: a line for each iteration of the outer loop."""
    (_, inner) = loops(function.body)
    found = [f"T[{', '.join(map(str, visited(event)))}]" for event in events(function, {}, lambda condition, at: True)]
    width = inner.extent.constant
    return "\n" + "".join(", ".join(found[at : at + width]) + "\n" for at in range(0, len(found), width))


def iteration(text: str) -> tuple[Iteration, Known]:
    """The schedule of `text` as the domain room has it, and what is known of sizes."""
    (function,) = parse(text).functions
    state = followed(function, function.schedules[0], TARGET)
    graph = state.graph(loops(state.function.body))
    (rows, columns) = (loop.sym for loop in loops(function.body))
    logical = tuple(graph[sym.name] for sym in (rows, columns))
    return Iteration(DomainGraph(logical, graph.transforms, graph.leaves)), known(given(function))


@pytest.mark.parametrize(("directives", "wanted"), [(SPLIT_FIRST, FIRST_LISTING), (MERGE_FIRST, SECOND_LISTING)])
def test_the_case_study_visits_the_listings(directives: str, wanted: str) -> None:
    function = laid_out(tensor("2", "5", directives))
    assert listing(function) == wanted
    every = [(i, j) for i in range(2) for j in range(5)]
    assert [visited(event) for event in events(function, {})] == every


def test_the_case_study_tells_them_apart() -> None:
    first, _ = iteration(tensor("2", "5", SPLIT_FIRST))
    second, _ = iteration(tensor("2", "5", MERGE_FIRST))
    found = compare(first, second)
    assert isinstance(found, Different)
    assert found.witness is not None
    assert (found.witness.place, found.witness.first, found.witness.second) == (5, Nothing.HOLE, (1, 0))


@pytest.mark.parametrize(("rows", "columns", "where"), [("2", "8", ""), ("n", "m", "where m % 4 == 0")])
def test_the_case_study_with_a_divisible_factor(rows: str, columns: str, where: str) -> None:
    texts = [tensor(rows, columns, directives, where) for directives in (SPLIT_FIRST, MERGE_FIRST)]
    (first, promised), (second, _) = map(iteration, texts)
    assert isinstance(compare(first, second, known=promised), Same)
    one, other = map(laid_out, texts)
    assert comparisons(one) == comparisons(other) == []
    sizes = {s.name: 8 for s in one.sizes}
    assert [visited(event) for event in events(one, sizes)] == [visited(event) for event in events(other, sizes)]


# Divisible splits.


@pytest.mark.parametrize(("size", "where"), [("96", ""), ("n", "where n % 32 == 0")])
def test_divisible_splits_leave_no_comparison(size: str, where: str) -> None:
    directives = "split(i, 32) -> (io, ii)  split(j, 8) -> (jo, ji)  split(ii, 4) -> (a, b)  reorder(io, jo, a, ji, b)"
    function = laid_out(tensor(size, size, directives, where))
    assert not any(isinstance(stmt, ir.If) for stmt in ir.walk(function.body))
    seen = [visited(event) for event in events(function, {s.name: 64 for s in function.sizes})]
    extent = 64 if function.sizes else 96
    assert sorted(seen) == [(i, j) for i in range(extent) for j in range(extent)]


def test_a_split_that_may_not_divide_is_compared() -> None:
    assert comparisons(laid_out(tensor("n", "n", "split(i, 32) -> (o, t)", "where n % 16 == 0")))


SCHEDULED = (
    ("transpose.te", "transpose2d", {"M": 64, "N": 96}),
    ("transpose.te", "wide", {"M": 64, "N": 96}),
    ("matmul.te", "matmul", {"M": 128, "N": 192, "K": 32}),
    ("matmul.te", "whole", {"M": 128, "N": 256, "K": 32}),
)
PROMISE = "where M % 128 == 0, N % 128 == 0, K % 16 == 0"


@pytest.mark.parametrize(("file", "name", "sizes"), SCHEDULED)
@pytest.mark.parametrize("fixed", [True, False])
def test_cuda_of_divisible_tiles_compares_nothing(file: str, name: str, sizes: Mapping[str, int], fixed: bool) -> None:
    text = (EXAMPLES / file).read_text(encoding="utf-8")
    function = parse(text if fixed else promised(text, sizes))[name]
    assert function.schedules
    for schedule in function.schedules:
        made = lower(function, "sm_90a", sizes if fixed else {}, schedule=schedule)
        assert not any(isinstance(stmt, ir.If) for stmt in ir.walk(made.function.body))
        body = [stmt for kernel in k.kernels(made.plan.steps) for stmt in k.walk(kernel.body)]
        assert not any(isinstance(stmt, k.If) for stmt in body)
        assert compared(made.source) == []


def promised(text: str, sizes: Mapping[str, int]) -> str:
    """The example with the promise that its tiles divide, in place of what it promises."""
    found = PROMISE if "K" in sizes else PROMISE.replace(", K % 16 == 0", "")
    return re.sub(r"(^fn [^{]*?\): f32\[\w+, \w+\])[^{]*\{", rf"\1\n    {found}\n{{", text, flags=re.MULTILINE)


def compared(source: str) -> list[str]:
    """Lines of CUDA that compare or choose, apart from the ends of loops, comments and template arguments."""
    code = re.sub(r"//[^\n]*|TX_\w+\([^\n]*|^#[^\n]*|for \(int \w+ = [^;]*; \w+ < [^;?]*;", "", source, flags=re.MULTILINE)
    code = re.sub(r"\btx_\w+<[^<>]*>", "", code)
    return [line for line in code.splitlines() if re.search(r"\bif\b|[<>?]|==|!=|&&|\|\||\btx_(min|max)\b", line)]


def test_what_compares_is_found() -> None:
    function = parse((EXAMPLES / "transpose.te").read_text(encoding="utf-8"))["transpose2d"]
    assert compared(lower(function, "sm_90a", schedule=function.schedules[0]).source)
