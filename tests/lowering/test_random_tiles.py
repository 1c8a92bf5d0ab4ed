"""Random copies from schedules: rank 1 to 5, odd sizes, every type, loads and stores, holes of every kind.

Three that share no code agree: the program's meaning by the interpreter, the emitted kernel in the emulator, and for every box
of every iteration the reference function `texpr.tma.tma`, with the bytes that its barrier is told.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import islice
from math import prod
from random import Random
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.schedule.laid import Laid, laid, wrong

from texpr.affine.expr import Sym
from texpr.backends.cuda import print_kernels
from texpr.domain import DomainGraph
from texpr.domain.contiguity import Memory
from texpr.interp.dtypes import numpy_dtype
from texpr.ir import kernel as k
from texpr.ir import program as ir
from texpr.ir.operation.tensor_map import element
from texpr.ir.program.marked import mark
from texpr.ir.program.marks import Tensor
from texpr.ir.value import Index, Load, Op, Value
from texpr.ir.value.types import DTYPES, DType
from texpr.support.diagnostic import TexprError
from texpr.support.record import Record, replace
from texpr.tma.elements import Fill
from texpr.tma.model import Copy, plan
from texpr.tma.reference import Address, Direction, Mode, tma
from texpr.tma.swizzle import Swizzle

TYPES = ("f32", "u8", "f16", "i64", "bf16", "i32", "f8e5m2", "u16", "f64", "i8", "u32", "tf32", "i16", "u64")


class Case(Record, dict=True):
    """A program, its schedule, and what it is run on; `cuts` of the innermost loops, by dimension."""

    seed: int
    text: str
    schedule: str
    arrays: Mapping[str, NDArray[Any]]
    sizes: Mapping[str, int]
    cuts: tuple[int, ...]
    dtype: DType


def numbers(random: Random, shape: tuple[int, ...], dtype: DType) -> NDArray[Any]:
    """Whole numbers from 1 to 7, none of them the fill."""
    data = np.array([random.randint(1, 7) for _ in range(prod(shape))], np.int64).reshape(shape)
    return data.astype(numpy_dtype(dtype))


def random_case(seed: int) -> Case:
    """A copy of a tensor, by tiles that are staged on the way in, on the way out, or both."""
    random = Random(seed)
    rank, dtype = 1 + seed % 5, DTYPES[TYPES[seed % len(TYPES)]]
    chunk = 16 // dtype.bytes
    indices, names = "ijklm"[:rank], "ABCDE"[:rank]
    extents = [random.choice((0, 1, 2, 3, 5, 7)) if random.random() < 0.9 else 11 for _ in range(rank - 1)]
    extents.append(chunk * random.randint(1, 5))
    open_ = [random.random() < 0.6 for _ in range(rank)]
    shape = ", ".join(n if is_open else str(e) for n, e, is_open in zip(names, extents, open_, strict=True))
    span = random.choice((0, 0, 32, 64, 128)) if rank > 1 else 0
    tile = [random.choice((1, 2, 4)) for _ in range(rank - 1)]
    if span:
        tile = [*(1 for _ in range(rank - 2)), random.choice((8, 16))]
    tile.append(span // dtype.bytes or max(chunk, 128 // dtype.bytes) * random.choice((1, 1, 2)))
    cuts, order, inner = _cuts(random, indices, tile)
    loops = " ".join(f"par {s.strip()} |{i}| {{" for i, s in zip(indices, shape.split(","), strict=True))
    at = ", ".join(indices)
    where = f"where {names[-1]} % {chunk} == 0" if open_[-1] else ""
    name = f"case{seed}"
    text = f"""
fn {name}(x: {dtype}[{shape}] align(16)): {dtype}[{shape}] {where} {{
    new y: {dtype}[{shape}]
    {loops} y[{at}] = x[{at}] {"}" * rank}
    return y
}}"""
    bound = [f"bind({n}, grid.{axis})" for n, axis in zip(order, random.sample("xyz", 3), strict=False)]
    bound = [*bound[: random.randint(1, len(bound))], f"bind({inner[-1]}, block.x)"]
    words = f", swizzle={span}B" if span else ""
    fill = random.choice(("", ", fill=zero", ", fill=weak", ", save_traffic=true"))
    way = random.choice(("in", "out", "both"))
    staged = [] if way == "out" else [f"stage(x, at={order[-1]}, in=shared, via=tma{words}{fill}) -> xs"]
    staged += [] if way == "in" else [f"stage(y, at={order[-1]}, in=shared, via=tma{words}) -> ys"]
    schedule = "\n".join([*cuts, f"reorder({', '.join((*order, *inner))})", *bound, *staged])
    sizes = {n: e for n, e, is_open in zip(names, extents, open_, strict=True) if is_open}
    return Case(seed, text, schedule, {"x": numbers(random, tuple(extents), dtype)}, sizes, tuple(tile), dtype)


def _cuts(random: Random, indices: str, tile: list[int]) -> tuple[list[str], list[str], list[str]]:
    """Splits of every loop, some of them such that there are holes; the loops outside of tiles, and inside."""
    cuts, order, inner = list[str](), list[str](), list[str]()
    for i, size in zip(indices, tile, strict=True):
        cuts.append(f"split({i}, {size}) -> (b{i}, t{i})")
        inner.append(f"t{i}")
        if random.random() < 0.35:
            cuts.append(f"split(b{i}, {random.randint(2, 3)}) -> (o{i}, q{i})")
            order.append(f"o{i}")
            if random.random() < 0.5:
                cuts.append(f"split(q{i}, {random.randint(2, 4)}) -> (p{i}, r{i})")
                order += [f"p{i}", f"r{i}"]
            else:
                order.append(f"q{i}")
        else:
            order.append(f"b{i}")
    return cuts, order, inner


# The reference function.


def _true(value: Value, at: Mapping[Sym, int]) -> bool:
    assert isinstance(value, Op)
    if value.name == "and":
        return all(_true(each, at) for each in value.args)
    left, right = (each.expr.evaluate(at) if isinstance(each, Index) else 0 for each in value.args)
    return {"lt": left < right, "le": left <= right, "ge": left >= right, "gt": left > right}[value.name]


class Staged(Record, dict=True):
    """The loops of one copy, with those around it."""

    around: tuple[ir.Loop, ...]
    loops: tuple[ir.Loop, ...]
    body: tuple[ir.Stmt, ...]

    @property
    def fills(self) -> bool:
        """Whether zero is written where nothing is copied."""
        return any(isinstance(s, ir.If) and s.orelse for s in ir.walk(self.body))

    def iterations(self, sizes: Mapping[Sym, int]) -> Iterator[dict[Sym, int]]:
        """Values of the loops around."""
        yield from _values(self.around, dict(sizes))

    def elements(self, at: Mapping[Sym, int]) -> Iterator[tuple[Load, Load | None, dict[Sym, int]]]:
        """What each element of the tile is in one iteration: the target, its source, and None for the fill."""
        for here in _values(self.loops, dict(at)):
            body = self.body
            while isinstance(test := body[0] if body else None, ir.If):
                body = test.then if _true(test.condition, here) else test.orelse
            for bind in body:
                assert isinstance(bind, ir.Bind)
                (value,) = bind.values
                yield bind.targets[0], value if isinstance(value, Load) else None, here


def _values(loops: tuple[ir.Loop, ...], at: dict[Sym, int]) -> Iterator[dict[Sym, int]]:
    if not loops:
        yield at
        return
    for value in range(loops[0].extent.evaluate(at)):
        yield from _values(loops[1:], {**at, loops[0].sym: value})


def copies(body: tuple[ir.Stmt, ...], around: tuple[ir.Loop, ...] = ()) -> Iterator[Staged]:
    for stmt in body:
        if isinstance(stmt, ir.Par | ir.Seq) and mark(stmt, Tensor):
            loops, inner = [stmt], stmt.body
            while isinstance(inner[0], ir.Par):
                loops.append(inner[0])
                inner = inner[0].body
            yield Staged(around, tuple(loops), inner)
            continue
        deeper = (*around, stmt) if isinstance(stmt, ir.Par | ir.Seq) else around
        for block in ir.blocks(stmt):
            yield from copies(block, deeper)


def flat(load: Load, at: Mapping[Sym, int]) -> int:
    found = 0
    for e, size in zip(load.index, load.buffer.shape, strict=True):
        found = found * size.evaluate(at) + e.evaluate(at)
    return found


def check_reference(case: Case, made: Laid) -> tuple[int, int]:
    """Each tile by the reference function is what the program says it is, and all of a step's bytes are expected.

    How many elements were looked at, and how many tiles were brought by splits made by hand, too.
    """
    sizes = {Sym(n): v for n, v in case.sizes.items()}
    (kernel,) = k.kernels(made.plan.steps)
    checked = by_hand = 0
    for staged in copies(made.function.body):
        target = next(s for s in ir.walk(staged.body) if isinstance(s, ir.Bind)).targets[0]
        if not any(isinstance(s, k.CopyTensor) and s.target.buffer.name == target.buffer.name for s in k.walk(kernel.body)):
            continue  # a store
        (expect,) = {s.bytes for s in made.statements if isinstance(s, k.BarrierExpect)}
        maps = {m.name: m for m in kernel.maps}
        for at in islice(staged.iterations(sizes), 60):
            room = np.full(prod(e.constant for e in target.buffer.shape) * case.dtype.bytes, 0xA5, np.uint8)
            issued = list(_started(kernel.body, at))
            assert sum(maps[s.map].bytes for s in issued) in ((expect,) if staged.fills else (expect, 0))
            for each in issued:
                _load(each, maps[each.map], case, at, room)
            corner = next(staged.elements(at), None)
            hand = None if corner is None or not issued else _by_hand(case, corner)
            if hand is not None:
                assert np.array_equal(room, hand), (case.seed, at)
                by_hand += 1
            tile = room.view(numpy_dtype(case.dtype))
            for to, source, here in staged.elements(at):
                want = 0 if source is None else case.arrays["x"].reshape(-1)[flat(source, here)]
                assert tile[flat(to, here)] == want, (case.seed, at)
                checked += 1
    return checked, by_hand


def _by_hand(case: Case, corner: tuple[Load, Load | None, dict[Sym, int]]) -> NDArray[np.uint8] | None:
    """The tile by splits made by hand, whose roles are inferred: what another map, of what is known here, brings there."""
    _, source, here = corner
    shape = case.arrays["x"].shape
    if source is None or "swizzle" in case.schedule or 0 in shape:
        return None
    names = [f"d{n}" for n in range(len(shape))]
    graph = DomainGraph.of(*zip(names, shape, strict=True))
    for name, size in zip(names, case.cuts, strict=True):
        graph = graph.split(name, size, (f"c{name}", f"b{name}"))
    graph = graph.reorder(*(f"c{n}" for n in names), *(f"b{n}" for n in names))
    copy = plan(Memory.dense(graph), [f"b{n}" for n in names], element(case.dtype))
    assert isinstance(copy, Copy), str(copy)
    at = {Sym(f"c{n}"): e.evaluate(here) // cut for n, e, cut in zip(names, source.index, case.cuts, strict=True)}
    room = np.zeros(prod(case.cuts) * case.dtype.bytes, np.uint8)
    tma(
        [e.evaluate(at) for e in copy.coordinates],
        Address(room),
        ga=Address(case.arrays["x"].reshape(-1).view(np.uint8)),
        gs=[d.size.evaluate(at) for d in copy.dimensions],
        bs=[d.box.constant for d in copy.dimensions],
        gr=[d.stride.evaluate(at) for d in copy.dimensions],
        er=[d.element_stride.constant for d in copy.dimensions],
        op=Direction.LOAD,
        mode=Mode(element(case.dtype)),
    )
    return room


def _started(body: tuple[k.Stmt, ...], at: Mapping[Sym, int]) -> Iterator[k.CopyTensor]:
    """The copies that the first thread starts in an iteration."""
    for stmt in body:
        match stmt:
            case k.CopyTensor():
                yield stmt
            case k.If(Op("eq")):
                yield from _started(stmt.then, at)
            case k.If() if any(isinstance(s, k.CopyTensor) for s in k.walk((stmt,))):
                yield from _started(stmt.then if _true(stmt.condition, at) else stmt.orelse, at)
            case k.For():
                yield from _started(stmt.body, at)
            case _:
                pass


def _load(copy: k.CopyTensor, map: k.TensorMap, case: Case, at: Mapping[Sym, int], room: NDArray[np.uint8]) -> None:
    """One copy of an iteration, at its coordinates."""
    kind = element(map.buffer.dtype)
    tma(
        [e.evaluate(at) for e in copy.at],
        Address(room, copy.target.offset.evaluate(at) * case.dtype.bytes),
        ga=Address(case.arrays["x"].reshape(-1).view(np.uint8), map.offset.evaluate(at) * case.dtype.bytes),
        gs=[e.evaluate(at) for e in map.sizes],
        bs=list(map.box),
        gr=[1, *(e.evaluate(at) // case.dtype.bytes for e in map.strides)],
        er=list(map.steps),
        op=Direction.LOAD,
        mode=Mode(kind, Swizzle(map.swizzle), Fill.ZERO),
    )


def check_cases(seeds: range, orders: tuple[int | None, ...] = (None, 0)) -> Counter[str]:
    seen: Counter[str] = Counter()
    found: list[tuple[Case, Laid]] = []
    for seed in seeds:
        case = random_case(seed)
        try:
            found.append((case, laid(case.text, case.schedule)))
        except TexprError as reason:
            seen["refused"] += 1
            seen[f"refused: {reason.diagnostics[0].message}"] += 1
    longest = max(found, key=lambda each: len(each[0].schedule.splitlines()))[1].plan  # its lines are shown beside all kernels
    text = print_kernels(replace(longest, steps=tuple(step for _, each in found for step in each.plan.steps)))
    for case, made in found:
        assert wrong(made, case.arrays, case.sizes, orders, text) is None, (case.text, case.schedule, case.sizes)
        elements, by_hand = check_reference(case, made)
        seen["elements"] += elements
        seen["by hand"] += by_hand
        seen["kernels"] += 1
        seen[f"rank {case.arrays['x'].ndim}"] += 1
    return seen


def test_random_tiles() -> None:
    """Every rank and type, sizes of 0 and of what no tile divides, at run time and fixed: none is refused."""
    seen = check_cases(range(15))
    assert seen["refused"] == 0 and seen["kernels"] == 15, seen
    assert min(seen[f"rank {n}"] for n in range(1, 6)) == 3 and seen["elements"] > 1000, seen
    assert seen["by hand"] > 10, seen


def test_stores_into_what_has_no_elements() -> None:
    """An extent is the number 0, and loops were cut twice: where a box would begin there is no reason to refuse it."""
    seen = Counter[str]()
    for seed in (108, 204, 354):
        assert 0 in random_case(seed).arrays["x"].shape
        seen += check_cases(range(seed, seed + 1))
    assert seen["refused"] == 0 and seen["kernels"] == 3, seen


@pytest.mark.long
def test_many_random_tiles() -> None:
    seen: Counter[str] = Counter()
    for first in range(1000, 1520, 40):
        seen += check_cases(range(first, first + 40), (None, 0, 1))
    assert seen["refused"] == 0 and seen["kernels"] >= 500, seen
