"""Memory that a thread keeps for itself is touched by that thread alone: every instance enumerated, every access noted.

The oracle walks a nest as the program says it, gives each iteration of a team's loop to the thread with its digit (statements
outside every team loop to the first thread), and notes who touches which element of every `new`. The planner decides by
looking at subscripts.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping

import numpy as np
from tests.lowering import machine

from texpr.affine.expr import Sym, expr
from texpr.frontend import parse
from texpr.interp import run as interpret
from texpr.ir import kernel as k
from texpr.ir import program as ir
from texpr.ir.program import Function
from texpr.ir.steps.place import Place
from texpr.ir.value import Buffer, Load, walk
from texpr.isa.levels import Space
from texpr.isa.registry import resolve
from texpr.lowering.build.build import Title
from texpr.lowering.dependences.needs import Needs
from texpr.lowering.lower import lower
from texpr.lowering.names import Names
from texpr.lowering.nests import lower_nest
from texpr.mapping.dealt import deal
from texpr.mapping.default import map_nest
from texpr.mapping.nest import Nest, Role
from texpr.relation.collect import model

Owners = dict[tuple[Buffer, tuple[int, ...]], set[int]]


def owners(nest: Nest, body: tuple[ir.Stmt, ...]) -> Owners:
    """For each element of a `new`, the threads of a team that touch it in one iteration of the grid."""
    found: Owners = {}
    news = {s.buffer for s in ir.walk(body) if isinstance(s, ir.New)}

    def visit(body: tuple[ir.Stmt, ...], point: Mapping[Sym, int], thread: int) -> None:
        for stmt in body:
            match stmt:
                case ir.Par() | ir.Seq():
                    mapped = nest.loops.get(stmt) if isinstance(stmt, ir.Par) else None
                    for at in range(stmt.extent.evaluate(point)):
                        digits = mapped.digits if mapped is not None and mapped.role is not Role.GRID else ()
                        add = sum(at // d.weight % d.radix * d.stride for d in digits)
                        visit(stmt.body, {**point, stmt.sym: at}, thread + add)
                case ir.Bind():
                    values = [*stmt.targets, *stmt.values]
                    for load in (node for value in values for node in walk(value) if isinstance(node, Load)):
                        if load.buffer in news:
                            element = tuple(e.evaluate(point) for e in load.index)
                            found.setdefault((load.buffer, element), set()).add(thread)
                case _:
                    pass

    visit(body, {m.loop.sym: 0 for m in nest.grid}, 0)
    return found


INDICES = {
    "one": ("5", "33", "70", "300"),
    "two": ("4, 70", "20, 20", "3, 33"),
}


def _program(seed: int) -> str:
    """Locals written and read by several bands, straight, mirrored, crossed, or all by each."""
    chooser = random.Random(seed)
    shape = chooser.choice(INDICES[chooser.choice(["one", "two"])])
    extents = shape.split(", ")
    lines = [f"new v: i32[{shape}]"]
    for band in range(chooser.randint(2, 4)):
        names = [f"j{band}{at}" for at in range(len(extents))]
        head = " ".join(f"par {e} |{n}| {{" for n, e in zip(names, extents, strict=True))
        x = " + ".join(f"x[i, {n} % 7]" for n in names)
        own = ", ".join(names)
        other = ", ".join(chooser.choice([n, n, n, f"{e} - 1 - {n}"]) for n, e in zip(names, extents, strict=True))
        if band == 0:
            lines.append(f"{head} v[{other}] = {x}{' }' * len(names)}")
        elif chooser.random() < 0.5:
            lines.append(f"{head} v[{own}] += {x}{' }' * len(names)}")
        else:
            flat = " * 70 + ".join(names)
            lines.append(f"{head} y[i, {flat}] = v[{other}]{' }' * len(names)}")
    body = "\n".join(lines)
    return f"fn f(x: i32[2, 7], inout y: i32[2, 1500]) {{\npar 2 |i| {{\n{body}\n}}\n}}"


def _body(function: Function) -> tuple[ir.Stmt, ...]:
    """What one iteration of the grid does."""
    (par,) = function.body
    assert isinstance(par, ir.Par)
    return par.body


def _nests(seeds: range) -> Iterator[tuple[Function, Nest]]:
    for seed in seeds:
        function = parse(_program(seed), "place.te").functions[0]
        yield function, deal(map_nest(function.body, resolve("sm_90a"), frozenset()), {}, frozenset(), 1 << 15)


def _places(function: Function, nest: Nest) -> Mapping[Buffer, Place]:
    names, needs = Names(function), Needs(model(function))
    return dict(lower_nest(nest, resolve("sm_90a"), names, needs, frozenset(), Title("f_0", function)).placed.places)


def test_what_is_dealt_out_to_threads_is_touched_by_one_thread_each() -> None:
    dealt = together = 0
    for function, nest in _nests(range(36)):
        found = owners(nest, _body(function))
        places = _places(function, nest)
        for buffer in {buffer for buffer, _ in found}:
            place = places[buffer]
            if place.space is not Space.LOCAL:
                together += 1
                continue
            dealt += 1
            touched = {element: threads for (b, element), threads in found.items() if b is buffer}
            assert all(len(threads) == 1 for threads in touched.values())
            # Two elements of one thread never share a place of its own array.
            kept = {(*threads, *(e.constant for e in place.index(tuple(map(expr, at))))) for at, threads in touched.items()}
            assert len(kept) == len(touched)
    assert min(dealt, together) >= 8, (dealt, together)


def test_the_oracle_sees_threads_that_share() -> None:
    """Where a band reads mirrored, some element has two threads, and no planner may deal it out."""
    shared = [
        nest for function, nest in _nests(range(20))
        if any(len(threads) > 1 for threads in owners(nest, _body(function)).values())
    ]  # fmt: skip
    assert len(shared) >= 3


def test_places_in_whole_plans() -> None:
    """The same programs run by hand, where a thread's own array is its own and one that is shared is a block's."""
    spaces: set[Space] = set()
    for seed in range(0, 60, 10):
        function = parse(_program(seed), "place.te").functions[0]
        plan, _ = lower(function, resolve("sm_90a"))
        spaces |= {array.space for kernel in k.kernels(plan.steps) for array in kernel.arrays}
        numbers = np.random.default_rng(seed)
        given = {"x": numbers.integers(-4, 5, (2, 7)).astype(np.int32), "y": np.zeros((2, 1500), np.int32)}
        np.testing.assert_array_equal(machine.run(function, plan, given)["y"], interpret(function, given)["y"])
    assert spaces >= {Space.LOCAL, Space.SHARED}
