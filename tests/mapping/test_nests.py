"""σ covers every iteration once: bands of random extents, each block, thread and step enumerated."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from itertools import product
from math import prod

import pytest

from texpr.affine.expr import Sym, expr
from texpr.frontend import parse
from texpr.ir import program as ir
from texpr.ir.steps.digits import Digit
from texpr.isa.registry import resolve
from texpr.mapping.dealt import deal
from texpr.mapping.default import map_nest
from texpr.mapping.nest import LoopMap, Nest, Role
from texpr.support.record import replace

TARGETS = ("sm_90a", "cpu")
B, T, S = Sym("block"), Sym("thread"), Sym("step")


def _index(found: LoopMap, block: int, thread: int, step: int) -> int:
    """The seed's σ, written again from its definition."""
    share = sum(thread // d.stride % d.radix * d.weight for d in found.digits)
    side_by_side = prod(d.radix for d in found.digits)
    return (block * found.tile if found.role is Role.GRID else 0) + step * side_by_side + share


def _extent(found: LoopMap) -> int:
    return found.loop.extent.constant


def covered(maps: tuple[LoopMap, ...], threads: int) -> Counter[tuple[int, ...]]:
    """How often each point of a band is run, counted over blocks, threads and steps, holes left out."""
    found: Counter[tuple[int, ...]] = Counter()
    blocks = [range(m.blocks().constant) if m.role is Role.GRID else range(1) for m in maps]
    steps = [range(m.points) if m.role is Role.GRID else range(-(-_extent(m) // m.radix)) for m in maps]
    for block in product(*blocks):
        for thread in range(threads):
            for step in product(*steps):
                point = tuple(_index(m, b, thread, s) for m, b, s in zip(maps, block, step, strict=True))
                if all(p < _extent(m) for m, p in zip(maps, point, strict=True)):
                    found[point] += 1
    return found


def _program(extents: list[int], inner: list[int], reduced: bool) -> str:
    """A grid band with `extents`, and below it a band with `inner` (a reduction if `reduced`)."""
    outer = [f"i{n}" for n in range(len(extents))]
    names = [f"j{n}" for n in range(len(inner))]
    shape = ", ".join(map(str, [*extents, *inner]))
    head = " ".join(f"par {e} |{i}| {{" for i, e in zip(outer, extents, strict=True))
    element = f"x[{', '.join([*outer, *names])}]"
    if not inner:
        body = f"y[{', '.join(outer)}] = {element}"
    else:
        meet = " reduce(s)" if reduced else ""
        loops = " ".join(f"par {e} |{j}|{meet} {{" for j, e in zip(names, inner, strict=True))
        write = f"s += {element}" if reduced else f"y[{', '.join([*outer, *names])}] = {element}"
        tail = f"y[{', '.join(outer)}] = s" if reduced else ""
        body = f"new s: i32\ns = 0\n{loops} {write}{' }' * len(inner)}\n{tail}"
    result = ", ".join(map(str, extents if reduced or not inner else [*extents, *inner]))
    return f"fn f(x: i32[{shape}]): i32[{result}] {{\nnew y: i32[{result}]\n{head}\n{body}\n{'}' * len(outer)}\nreturn y\n}}"


def _nests(seeds: range) -> Iterator[tuple[int, str, Nest]]:
    for seed in seeds:
        chooser = random.Random(seed)
        sizes = [chooser.choice([1, 2, 3, 5, 7, 31, 33]) for _ in range(chooser.randint(1, 3))]
        inner = [chooser.choice([1, 3, 8, 33, 70]) for _ in range(chooser.randint(0, 2))]
        function = parse(_program(sizes, inner, chooser.random() < 0.5), "band.te").functions[0]
        (par,) = [s for s in function.body if isinstance(s, ir.Par)]
        target = chooser.choice(TARGETS)
        nest = map_nest((par,), resolve(target), frozenset(function.sizes))
        yield seed, target, deal(nest, {}, frozenset(), 1 << 15)


def _bands(nest: Nest) -> Iterator[tuple[tuple[LoopMap, ...], int]]:
    """Each band with the number of threads that share it."""
    groups: dict[Role, list[LoopMap]] = {}
    for found in nest.loops.values():
        groups.setdefault(found.role, []).append(found)
    for role, maps in groups.items():
        yield tuple(maps), nest.threads if role is Role.GRID else nest.team


def _is_bijection(maps: tuple[LoopMap, ...], threads: int, idle: int = 1) -> bool:
    want = Counter({point: idle for point in product(*(range(_extent(m)) for m in maps))})
    return covered(maps, threads) == want


def test_each_iteration_is_run_exactly_once() -> None:
    kinds: Counter[tuple[str, Role]] = Counter()
    for seed, target, nest in _nests(range(30)):
        for maps, threads in _bands(nest):
            if len(list(product(*(range(_extent(m)) for m in maps)))) > 500:
                continue
            # A team that shares each grid iteration runs it together: all its threads have the one index.
            together = nest.team if maps[0].role is Role.GRID else 1
            assert _is_bijection(maps, threads, together), f"seed {seed}, {target}: {maps}"
            kinds.update((target, m.role) for m in maps)
    assert min(kinds[target, role] for target in TARGETS for role in Role) >= 3, kinds


WRONG: tuple[tuple[int, tuple[Digit, ...]], ...] = (
    (2, (Digit(2, 1), Digit(2, 2, 2))),
    (4, (Digit(2, 2), Digit(2, 2, 2))),
    (4, (Digit(3, 1), Digit(2, 2, 2))),
    (4, (Digit(2, 1), Digit(2, 2))),
    (4, (Digit(2, 1), Digit(2, 2, 4))),
)


@pytest.mark.parametrize("wrong", range(len(WRONG)))
def test_a_wrong_digit_is_noticed(wrong: int) -> None:
    loop = ir.Par(Sym("i"), expr(10), ())
    right = LoopMap(loop, Role.GRID, tile=4, digits=(Digit(2, 1), Digit(2, 2, 2)))
    assert _is_bijection((right,), 4)
    tile, digits = WRONG[wrong]
    assert not _is_bijection((replace(right, tile=tile, digits=digits),), 4)


def test_the_thread_of_an_iteration_is_the_one_whose_digit_it_has() -> None:
    """`thread()`, from an index to the thread, is the inverse of `share()`, from the thread to the index."""
    tried = 0
    for _, _, nest in _nests(range(80)):
        for maps, threads in _bands(nest):
            if maps[0].role is Role.GRID:
                continue
            for thread in range(threads):
                index = {m.loop.sym: m.share(expr(T)).evaluate({T: thread}) for m in maps}
                if any(index[m.loop.sym] >= _extent(m) for m in maps):
                    continue
                assert sum(m.thread().evaluate(index) for m in maps) == thread
                later = {m.loop.sym: index[m.loop.sym] + 5 * m.radix for m in maps}
                assert sum(m.thread().evaluate(later) for m in maps) == thread
                tried += 1
    assert tried > 500


def test_several_teams_of_a_block_have_their_own_iterations() -> None:
    for _, _, nest in _nests(range(80)):
        if nest.team > 1 and nest.threads > nest.team:
            slots = [nest.grid[-1].share(expr(T)).evaluate({T: thread}) for thread in range(nest.threads)]
            assert slots == [thread // nest.team for thread in range(nest.threads)]
            return
    raise AssertionError("no nest had several teams in a block")
