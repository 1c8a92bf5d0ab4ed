"""Copies that graphs plan, emitted and run in the emulator: what the reference function does, byte by byte, at every level."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from math import prod
from random import Random

import numpy as np
import numpy.typing as npt
import pytest
from docs.figures import tma as figures
from tests.lowering.emulated import module
from tests.tma.emitted import Emitted, emitted, together
from tests.tma.test_correctness import STRONG_LOADS, WEAK_LOADS, copied

from texpr.affine.expr import Expr, Sym, expr, sym
from texpr.affine.facts import Fact, Known
from texpr.domain import DomainGraph
from texpr.domain.contiguity import Memory
from texpr.domain.correctness.holes import Strong
from texpr.domain.transforms.swizzle import Xor
from texpr.domain.visits import visits
from texpr.emulator import LOCKSTEP
from texpr.interp.dtypes import numpy_dtype
from texpr.ir.kernel import verify as kernel_verify
from texpr.ir.operation.tensor_map import element, judged
from texpr.ir.value.types import DTYPES, DType
from texpr.layout import E, Layout, LayoutError
from texpr.layout.inttuple import flatten
from texpr.runtime.memory import aligned_empty
from texpr.support.record import Record
from texpr.tma.bridge import coordinates_of, graph_of_coordinates
from texpr.tma.correctness import Lowering, Plain, fttc, lower_load, lower_store
from texpr.tma.execute import execute, shared_bytes
from texpr.tma.model import Copy, Refusal, plan
from texpr.tma.reference import Direction
from texpr.tma.rules import findings

Bytes = npt.NDArray[np.uint8]
TYPES = ("u8", "f8e4m3", "i8", "f16", "bf16", "i16", "f32", "tf32", "i32", "u32", "f64", "i64", "u64")


def aligned(source: npt.NDArray[np.generic]) -> Bytes:
    """The bytes of an array, at a multiple of 256."""
    flat = np.ascontiguousarray(source).reshape(-1).view(np.uint8)
    made = aligned_empty(np.dtype(np.uint8), flat.shape, 256)
    made[...] = flat
    return made


def numbers(count: int, dtype: DType, first: int = 1) -> Bytes:
    """`first`, `first` + 1, … as far as every type holds them exactly, and again."""
    return aligned((first + np.arange(count) % 15).astype(numpy_dtype(dtype)))


# FTTC, with S at run time.

PAIRS = [(1, 1), (4, 2), (4, 3), (4, 5), (5, 2), (6, 4), (7, 3), (7, 8), (8, 3), (9, 6), (3, 3), (12, 8)]
"""Boxes and element strides."""
N = Sym("N")


def column(box: int, step: int, size: Expr, most: int | None = None) -> Copy:
    """Rows of 4 elements of which boxes are taken, and every `step`-th of these."""
    graph = DomainGraph.of(("y", size), ("x", 4)).split("y", box, ("c", "b")).split("b", step, ("t", "s"))
    known = Known({N: (1, None)}, [] if most is None else [Fact(1, expr(N), most + 1)])
    found = plan(Memory.dense(graph.reorder("c", "s", "t", "x")), ["t", "x"], element(DTYPES["f32"]), known)
    assert isinstance(found, Copy), str(found)
    return found


def rows(copy: Copy, kernel: Emitted, text: str, size: int) -> npt.NDArray[np.float32]:
    """What lies in shared memory: (tile, row of the tile, 4)."""
    at = {N: size}
    shared = aligned(np.full(shared_bytes(copy, at), 0xCD, np.uint8))
    tensor = aligned(1 + np.arange(4 * size, dtype=np.float32))
    assert kernel.run(module(text), tensor, shared, at) == []
    return shared.view(np.float32).reshape(-1, prod(kernel.kernel.maps[0].tile) // 4, 4)


def test_fttc_in_emitted_kernels() -> None:
    """A tile that is part items, part holes with data is there, at a size, exactly where Theorem 6 says so."""
    copies = [column(box, step, sym("N")) for box, step in PAIRS]
    kernels = [emitted(c, Plain(), Direction.LOAD, f"fttc{at}", DTYPES["f32"], [N]) for at, c in enumerate(copies)]
    text = together(kernels)
    for (box, step), copy, kernel in zip(PAIRS, copies, kernels, strict=True):
        for size in (1, 2, box - 1, box, box + 1, 2 * box, 2 * box + 1, 3 * box - 1):
            if size < 1:
                continue
            tiles = rows(copy, kernel, text, size)
            items = visits(copy.graph, {N: size}).visited.reshape(tiles.shape)
            bad = (~items & (tiles != 0)).any(axis=(1, 2)) & items.any(axis=(1, 2))
            assert bad.any() == fttc(size, box, step), (box, step, size)


def test_strong_lowerings_in_emitted_kernels() -> None:
    """Where there is one, for all sizes or for those of one box, every hole is zero and every item there, at each size."""
    found: list[tuple[int, int, int | None, Copy, Emitted]] = []
    for box, step in PAIRS:
        for most in (None, box):
            copy = column(box, step, sym("N"), most)
            lowering = lower_load(copy, Strong(0))
            possible = not (step < box and box % step) or most is not None
            assert isinstance(lowering, Refusal) is not possible
            if not isinstance(lowering, Refusal):
                name = f"strong{len(found)}"
                found.append((box, step, most, copy, emitted(copy, lowering, Direction.LOAD, name, DTYPES["f32"], [N])))
    text = together([each[-1] for each in found])
    for box, step, most, copy, kernel in found:
        for size in sorted({1, 2, max(box - 1, 1), box, *(() if most else (box + 1, 2 * box + 1, 3 * box - 1))}):
            tiles = rows(copy, kernel, text, min(size, most or size))
            items = visits(copy.graph, {N: min(size, most or size)})
            holes = ~items.visited.reshape(tiles.shape)
            assert (tiles[holes] == 0).all(), (box, step, most, size)
            assert (tiles[~holes] == (1 + items.logical[0] * 4 + items.logical[1]).reshape(tiles.shape)[~holes]).all()


# The arrays of the figures, in kernels: 64-bit items, of which a row of each box is whole chunks of 16 bytes.


def test_figures_in_emitted_kernels() -> None:
    """Number by number, in every order: what an unpredicated load leaves, and a strong one."""
    wanted: list[tuple[Copy, Lowering, list[str]]] = []
    for table, is_strong in ((WEAK_LOADS, False), (STRONG_LOADS, True)):
        for graph, bulk, text in table.values():
            copy = copied(graph, bulk, "int64")
            lowering = lower_load(copy, Strong(0)) if is_strong else Plain()
            assert not isinstance(lowering, Refusal)
            wanted.append((copy, lowering, text.split()))
    figure_4 = copied(figures.STRONG_TOO, "I9", "int64")
    items = visits(figure_4.graph)
    numbered = np.where(items.visited, items.logical[0] * 6 + items.logical[1], -1)
    wanted.append((figure_4, Plain(), ["Z" if each < 0 else str(each) for each in numbered.reshape(-1)]))
    kernels = [emitted(copy, how, Direction.LOAD, f"figure{at}", DTYPES["i64"]) for at, (copy, how, _) in enumerate(wanted)]
    text = together(kernels)
    for (copy, _, want), kernel in zip(wanted, kernels, strict=True):
        count = prod(d.extent.constant for d in copy.graph.logical)
        tensor = aligned(1 + np.arange(count, dtype=np.int64))
        for order in (None, LOCKSTEP, 0):
            shared = aligned(np.full(shared_bytes(copy, {}), 0xCD, np.uint8))
            assert kernel.run(module(text), tensor, shared, seed=order) == []
            got = [str(value - 1) if value else "Z" for value in shared.view(np.int64).tolist()]
            assert got == want, kernel.kernel.name


@pytest.mark.parametrize("step", [1, 3])
def test_figure_1_in_an_emitted_kernel(step: int) -> None:
    """Tensor (12, 16), pitch 14, box (6, 4) at (8, 4): columns 12 and 13 are zero although memory has numbers there."""
    graph = DomainGraph.of(("y", 16), ("x", 12)).split("y", 4, ("c", "b")).split("x", 6, ("d", "a"))
    bulk, loops = ["b", "a"], ["c", "d"]
    if step > 1:
        graph, bulk, loops = graph.split("b", step, ("t", "s")), ["t", "a"], ["c", "s", "d"]
    found = plan(Memory(graph.reorder(*loops, *bulk), (expr(14), expr(1))), bulk, element(DTYPES["i64"]))
    assert isinstance(found, Copy), str(found)
    kernel = emitted(found, Plain(), Direction.LOAD, f"one{step}", DTYPES["i64"], coordinates=(expr(8), expr(4)))
    tensor = aligned(1 + np.arange(16 * 14, dtype=np.int64))
    shared = aligned(np.full(shared_bytes(found, {}), 0xCD, np.uint8))
    assert kernel.run(module(together([kernel])), tensor, shared) == []
    tiles = shared.view(np.int64).reshape(-1, len(range(0, 4, step)), 6)
    want = [[1 + 14 * y + x if x < 12 else 0 for x in range(8, 14)] for y in range(4, 8, step)]
    assert all(tile.tolist() == want for tile in tiles)


# Random copies.


class RandomCopy(Record, dict=True):
    """A random graph over a tensor of `dtype`, the leaves that the hardware runs, and the elements that the tensor spans."""

    dtype: DType
    memory: Memory
    bulk: tuple[str, ...]
    extent: int


def random_copy(seed: int) -> RandomCopy:
    """Rank 1 to 5, odd sizes, rows at multiples of 16 bytes; boxes, strided and swizzled ones; loops that leave holes."""
    random = Random(seed)
    rank = 1 + seed % 5
    dtype = DTYPES[TYPES[seed % len(TYPES)]]
    chunk = 16 // dtype.bytes
    span = random.choice((0, 0, 32, 64, 128))
    width = span // dtype.bytes or chunk * random.choice((1, 1, 2, 3))
    sizes = [*(random.randint(1, 7) for _ in range(rank - 1)), random.randint(1, 2 * width + 3)]
    if random.random() < 0.5:  # then rows can be stored
        sizes[-1] = -(-sizes[-1] // chunk) * chunk
    strides = [1]
    for at in range(rank - 1, 0, -1):
        least = strides[0] * (sizes[at] if at < rank - 1 else -(-sizes[at] // chunk) * chunk)
        strides.insert(0, least + random.choice((0, 0, 1)) * chunk)
    graph = DomainGraph.of(*((f"x{at}", n) for at, n in enumerate(sizes)))
    loops: list[str] = []
    bulk: list[str] = []
    for at, size in enumerate(sizes):
        own, box = f"x{at}", width if at == rank - 1 else random.randint(1, min(size + 1, 4))
        if span and at < rank - 1:
            box = 8 if at == rank - 2 else 1
        if random.random() < 0.2:
            left = random.randint(0, 2) * (chunk if at == rank - 1 else 1)
            graph, own = graph.resize(own, left, random.randint(0, 2), f"r{at}"), f"r{at}"
        graph, inner = graph.split(own, box, (f"c{at}", f"b{at}")), f"b{at}"
        if random.random() < 0.25 and 1 < box < 8 and at < rank - 1:
            graph, inner = graph.split(inner, random.randint(2, 5), (f"t{at}", f"s{at}")), f"t{at}"
            loops.append(f"s{at}")
        bulk.append(inner)
        loops.insert(0, f"c{at}")
    for _ in range(random.choice((0, 1, 2))):
        graph = _looped(graph, random, loops)
    if span and rank > 1:
        graph = _moved(graph, bulk, span, chunk)
    random.shuffle(loops)
    memory = Memory(graph.reorder(*loops, *bulk), tuple(map(expr, strides)))
    return RandomCopy(dtype, memory, tuple(bulk), 1 + sum((n - 1) * s for n, s in zip(sizes, strides, strict=True)))


def _looped(graph: DomainGraph, random: Random, loops: list[str]) -> DomainGraph:
    """A loop over coordinates cut in two, or two of them merged."""
    name = random.choice(loops)
    loops.remove(name)
    if random.random() < 0.3 and loops:
        other = loops.pop(random.randrange(len(loops)))
        loops.append(f"{name}m")
        return graph.merge(name, other, f"{name}m")
    loops += [f"{name}o", f"{name}i"]
    return graph.split(name, random.randint(1, 3), (f"{name}o", f"{name}i"))


def _moved(graph: DomainGraph, bulk: list[str], span: int, chunk: int) -> DomainGraph:
    """Chunks moved by the line, as the hardware does: 8 rows are whole patterns."""
    row, lines = bulk[-2], 128 // span
    graph = graph.split(bulk[-1], chunk, ("ch", "ln"))
    if lines > 1:
        graph, row = graph.split(row, lines, ("li", "wi")), "li"
    bits = (span // 16).bit_length() - 1
    graph = graph.swizzle(row, "ch", Xor(bits), ("ls", "cs"))
    bulk[-2:] = ["ls", *(["wi"] if lines > 1 else []), "cs", "ln"]
    return graph


class Case(Record, dict=True):
    """One copy, lowered and emitted."""

    seed: int
    made: RandomCopy
    copy: Copy
    lowering: Lowering
    direction: Direction
    kernel: Emitted


def _layout_coordinates(copy: Copy) -> tuple[Expr, ...] | None:
    """The arithmetic tuple of the layout with basis strides, in the loops' indices, if that is the tensor's."""
    if {d.tested for d in copy.dimensions} != set(copy.graph.logical):
        return None
    try:
        tensor = coordinates_of(copy.graph)
    except LayoutError:
        return None
    index = tuple(0 if leaf in copy.bulk else expr(leaf.sym) for leaf in copy.graph.leaves)
    (mode,) = index if len(index) == 1 else (index,)
    found = flatten(tensor(mode))
    place = {d: at for at, d in enumerate(copy.graph.logical)}
    return tuple(expr(found[place[d.tested]]) for d in copy.dimensions)


def _before_the_tensor(copy: Copy) -> bool:
    """Whether a box may begin where no store may."""
    use = copy.use(expr(0), expr(0), stores=True)
    return any(each.rule.name == "store coordinate" for each in findings(use, copy.inside).unmet)


def cases(seeds: range, seen: Counter[str]) -> Iterator[Case]:
    for seed in seeds:
        made = random_copy(seed)
        points = prod(leaf.extent.constant for leaf in made.memory.graph.leaves)
        copy = plan(made.memory, made.bulk, element(made.dtype))
        if not isinstance(copy, Copy) or not 0 < points <= 20000:
            seen["no copy"] += 1
            continue
        strong, stored = lower_load(copy, Strong(0)), lower_store(copy)
        wanted: list[tuple[str, Direction, Lowering]] = [("weak", Direction.LOAD, Plain())]
        if not isinstance(strong, Refusal) and strong != Plain():
            wanted.append(("redirected", Direction.LOAD, strong))
        if not isinstance(stored, Refusal) and not stored.obligations and not _before_the_tensor(copy):
            wanted.append(("store", Direction.STORE, stored.lowering))
        for what, direction, lowering in wanted:
            kernel = emitted(copy, lowering, direction, f"r{seed}_{what}", made.dtype)
            if judged(kernel.kernel.maps[0]).violated:
                seen["against the rules"] += 1
                break
            kernel_verify.verify(kernel.plan)
            seen[what] += 1
            seen[f"rank {len(copy.dimensions)}"] += 1
            seen[f"span {copy.tile.swizzle.span}"] += 1
            seen[made.dtype.name] += 1
            yield Case(seed, made, copy, lowering, direction, kernel)
            coordinates = _layout_coordinates(copy) if what != "redirected" else None
            if coordinates is not None:  # the other road to them
                seen["by a layout"] += 1
                kernel = emitted(copy, lowering, direction, f"r{seed}_{what}_layout", made.dtype, coordinates=coordinates)
                yield Case(seed, made, copy, lowering, direction, kernel)


def before(case: Case) -> tuple[Bytes, Bytes]:
    """The tensor, and the allocation, before the copy."""
    tensor = numbers(case.made.extent, case.made.dtype)
    shared = aligned(np.full(shared_bytes(case.copy, {}), 0x11, np.uint8))
    if case.direction is Direction.STORE:
        shared = numbers(shared.size // case.made.dtype.bytes, case.made.dtype, 2)
    return tensor, shared


def ran(case: Case, text: str, order: int | None = None) -> tuple[Bytes, Bytes]:
    """The tensor and the allocation afterwards."""
    tensor, shared = before(case)
    assert case.kernel.run(module(text), tensor, shared, seed=order) == [], case.seed
    return tensor, shared


def expected(case: Case) -> tuple[Bytes, Bytes]:
    """The same by the reference function."""
    tensor, shared = before(case)
    execute(case.copy, case.lowering, case.direction, tensor, shared)
    return tensor, shared


def check_random(seeds: range) -> Counter[str]:
    seen: Counter[str] = Counter()
    found = list(cases(seeds, seen))
    text = together([each.kernel for each in found])
    for each in found:
        for got, want in zip(ran(each, text), expected(each), strict=True):
            assert np.array_equal(got, want), each.seed
    return seen


def test_random_copies() -> None:
    seen = check_random(range(26))
    kinds = (
        "weak",
        "store",
        "redirected",
        "by a layout",
        "span 32",
        "span 64",
        "span 128",
        *(f"rank {n}" for n in range(1, 6)),
    )
    assert min(seen[kind] for kind in (*kinds, *TYPES)) >= 1, seen


@pytest.mark.long
def test_many_random_copies() -> None:
    seen: Counter[str] = Counter()
    for first in range(1000, 1400, 50):
        seen += check_random(range(first, first + 50))
    assert seen["weak"] + seen["store"] + seen["redirected"] >= 500, seen


# Layouts made by hand, and the splits that they are.


def by_hand(seed: int) -> tuple[Copy, Copy]:
    """A box and its coordinates as a layout with basis strides, and as splits: both planned."""
    random = Random(seed)
    rank = random.randint(1, 4)
    boxes = [*(random.randint(2, 4) for _ in range(rank - 1)), 4 * random.randint(1, 3)]  # of 1 there are two readings
    counts = [random.randint(1, 3) for _ in range(rank)]
    modes = [(counts[at], E(at) * boxes[at]) for at in range(rank)]
    order = random.sample(range(rank), rank)
    modes = [*(modes[at] for at in order), *((boxes[at], E(at)) for at in range(rank))]
    layout = Layout(tuple(size for size, _ in modes), tuple(step for _, step in modes))
    sizes = [c * b for c, b in zip(counts, boxes, strict=True)]
    strides = (*(expr(4 * (at + 1) + prod(sizes[at + 1 :]) * 4) for at in range(rank - 1)), expr(1))
    made = graph_of_coordinates(layout)
    bulk = [leaf.sym.name for leaf in made.leaves[rank:]]
    graph = DomainGraph.of(*((f"x{at}", n) for at, n in enumerate(sizes)))
    for at, box in enumerate(boxes):
        graph = graph.split(f"x{at}", box, (f"c{at}", f"b{at}"))
    graph = graph.reorder(*(f"c{at}" for at in order), *(f"b{at}" for at in range(rank)))
    kind = element(DTYPES["f32"])
    found = plan(Memory(made, strides), bulk, kind), plan(Memory(graph, strides), [f"b{at}" for at in range(rank)], kind)
    assert isinstance(found[0], Copy) and isinstance(found[1], Copy)
    return found[0], found[1]


def test_layouts_made_by_hand_are_the_splits() -> None:
    """The same map, the same tile, and in each iteration the same coordinates."""
    for seed in range(60):
        one, other = by_hand(seed)
        fields = ("size", "stride", "box", "element_stride")
        assert [[getattr(d, f) for f in fields] for d in one.dimensions] == [
            [getattr(d, f) for f in fields] for d in other.dimensions
        ]
        assert one.tile.swizzle == other.tile.swizzle and one.tile.holes == other.tile.holes
        loops = [[leaf for leaf in copy.graph.leaves if leaf not in copy.bulk] for copy in (one, other)]
        assert [leaf.extent for leaf in loops[0]] == [leaf.extent for leaf in loops[1]]
        for index in np.ndindex(*(leaf.extent.constant for leaf in loops[0])):
            at = [dict(zip((leaf.sym for leaf in each), map(int, index), strict=True)) for each in loops]
            assert [e.evaluate(at[0]) for e in one.coordinates] == [e.evaluate(at[1]) for e in other.coordinates]
            assert one.tile.place.evaluate(at[0]) == other.tile.place.evaluate(at[1])
