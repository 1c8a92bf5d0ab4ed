"""Copies by the tensor memory accelerator, element by element: the positions in shared memory and in the tensor.

An element of a box is a point over fresh symbols, one for each dimension of the box; so a copy is one event or two. The
positions follow from the fields of the map alone. PTX ISA, "Tensors" and "cp.async.bulk.tensor"; CUDA driver API, "Tensor Map".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import TypeAlias

from texpr.affine.expr import ONE, ZERO, Expr, Max, Monomial, Number, Sym, expr, number_of, term, without, xor
from texpr.affine.facts import Known
from texpr.affine.simplify import Simplifier
from texpr.ir import kernel as k
from texpr.ir.operation.tensor_map import combined_as, element_of
from texpr.ir.value import Cast, Index, Literal, Load, Op, Value
from texpr.isa.engine import CHUNK, LINE
from texpr.presburger.formula import FALSE, Eq, Formula, Ge, between, conj, disj, equal, negate
from texpr.support.record import Record, field, replace

ROUNDED = frozenset(("float32_ftz", "tfloat32", "tfloat32_ftz"))
"""Types of maps that do not copy numbers exactly (CUDA driver API, `CUtensorMapDataType`)."""


Copy: TypeAlias = k.CopyTensor | k.StoreTensor | k.CopyBulk
"""Copies by an engine."""


class Piece(Record):
    """Elements that a copy moves, over `loops` with `domain`, if `tests` of data have these results.

    `near` is in shared memory, `far` in global memory: None for a filled element.
    """

    loops: tuple[k.For, ...]
    domain: tuple[Formula, ...]
    near: Load
    far: Load | None
    tests: tuple[tuple[Value, bool], ...] = ()


def needed(stmt: Copy, kernel: k.Kernel, known: Known) -> Formula | None:
    """The conditions of a valid copy, even if none of its elements is in the tensor: otherwise the instruction is illegal, or
    differs from `pieces`. None if there are none. Raises ValueError."""
    if isinstance(stmt, k.CopyBulk):
        near, far = _ends(stmt, kernel)
        needs = (*aligned(near, CHUNK, known), *aligned(far, CHUNK, known), *_chunks(stmt, near, known))
        return conj(needs) if needs else None
    return _of_box(stmt, _map(stmt, kernel), kernel, known)


def _ends(stmt: k.CopyBulk, kernel: k.Kernel) -> tuple[Load, Load]:
    """The first elements of a run in shared and in global memory."""
    inward = any(array.buffer is stmt.target.buffer for array in kernel.arrays)
    return (stmt.target, stmt.source) if inward else (stmt.source, stmt.target)


def _map(stmt: k.CopyTensor | k.StoreTensor, kernel: k.Kernel) -> k.TensorMap:
    map = next((each for each in kernel.maps if each.name == stmt.map), None)
    if map is None or map.interleave:
        raise ValueError("a map of a kind that is not understood")
    return map


def pieces(stmt: Copy, kernel: k.Kernel, name: str, known: Known, dims: Sequence[Sym]) -> Iterator[Piece]:
    """The elements of a copy, given `known` facts; symbols are derived from `name`, and data are functions of `dims`.

    Raises ValueError for a copy that is not supported.
    """
    if isinstance(stmt, k.CopyBulk):
        near, far = _ends(stmt, kernel)
        if stmt.reduce is not None and combined_as(stmt.reduce, far.dtype) is None:
            raise ValueError(f"no elements of {far.dtype} are combined by {stmt.reduce}")
        most = None if stmt.exactly is None else Known({}).bounds(stmt.exactly)[1]
        if stmt.exactly is not None and (most is None or most > stmt.count):
            raise ValueError("a run of no known length")
        (at,), loops = _points((stmt.count,), name)
        domain = () if stmt.exactly is None else (Ge(stmt.exactly - 1 - at),)
        yield Piece(loops, domain, _near(near, at, loops), _along(far, at, stmt.count))
        return
    near, map = stmt.source if isinstance(stmt, k.StoreTensor) else stmt.target, _map(stmt, kernel)
    rows = [None] if not stmt.rows else range(len(stmt.rows))
    points, loops = _points(map.tile if not stmt.rows else map.tile[:1], name)
    plain = Simplifier(known)
    map = replace(map, sizes=tuple([plain(size) for size in map.sizes]))
    for row in rows:
        number, weight = ZERO if row is None else expr(row), 1
        for at, extent in zip(points[1:], map.tile[1:], strict=not stmt.rows):
            number, weight = number + at * weight, weight * extent
        place = _near(near, _tile(near, map, number, points[0]), loops, map.swizzle)
        for found, tests, data in _coordinates(stmt, map, points, row, number_of(f"{name}.row{row}", dims)):
            where = tuple(plain(e) for e in found) if map.corners else found
            inside = _inside(map, where, data)
            if not any(e.is_constant and e.constant < 0 for e in where):
                yield Piece(loops, inside, place, _element(map, where, data), tests)
            if isinstance(stmt, k.CopyTensor) and inside:
                yield Piece(loops, (negate(conj(inside)),), place, None, tests)


def filled(stmt: k.Stmt, kernel: k.Kernel, near: Load) -> Literal:
    """The value that a load writes for elements outside of the tensor."""
    map = next(each for each in kernel.maps if isinstance(stmt, k.CopyTensor) and each.name == stmt.map)
    zero: float = 0.0 if near.dtype.is_float else 0
    return Literal(float("nan") if map.fill == "nan" else zero, near.dtype)


class Sender(Record):
    """The senders of what a block receives, in coordinates of the block: `values` for coordinates in which they differ, over
    `loops` with `domain`. `needs`: the condition for this, None if there is none."""

    values: Mapping[Sym, Expr] = field(default_factory=dict[Sym, Expr])
    loops: tuple[k.For, ...] = ()
    domain: tuple[Formula, ...] = ()
    needs: Formula | None = None


def sender(stmt: Copy, kernel: k.Kernel, name: str) -> Sender:
    """The blocks of a cluster from which each receives a multicast box. Raises ValueError.

    A block's rank counts x first, then y, then z. Along a dimension the sender is the block itself, or one of several.
    """
    if not isinstance(stmt, k.CopyTensor):
        raise ValueError("a run, or a store, that is for several blocks")
    grid = {a.dim: a.sym for a in kernel.axes if a.level is k.Level.GRID}
    sizes = {grid[dim]: size for dim, size in zip("xyz", kernel.cluster, strict=True) if dim in grid}
    senders = [dict(zip(sizes, at, strict=True)) for at in product(*map(range, sizes.values()))]
    found: list[tuple[Mapping[Sym, int], Mapping[Sym, int]]] = []
    needs: Formula | None = None
    for at in senders:
        try:
            first = stmt.first.evaluate(at)
        except KeyError as unknown:
            raise ValueError(f"to which blocks a box goes depends on {unknown.args[0]}") from None
        for peer in stmt.peers:
            rank, to = first + peer, dict[Sym, int]()
            for sym, size in sizes.items():
                rank, to[sym] = divmod(rank, size)
            if rank:
                needs = FALSE  # a block outside of the cluster
            else:
                found.append((at, to))
    free = [sym for sym in sizes if any(at[sym] != to[sym] for at, to in found)]
    loops = tuple(k.For(Sym(f"{name}.{s}"), ZERO, expr(sizes[s]), (), ONE, "simd") for s in free)
    ends = {a.sym: a.extent for a in kernel.axes if a.level is k.Level.GRID}
    first = {
        s: ZERO if ends[s] is expr(sizes[s]) else expr(s) // sizes[s] * sizes[s] for s in free
    }  # the first block of the cluster
    values = {s: first[s] + of.sym for s, of in zip(free, loops, strict=True)}
    every = [(at, to) for at in senders for to in senders if all(at[s] == to[s] for s in sizes if s not in free)]
    if len(found) == len(every) and all(pair in found for pair in every):
        return Sender(values, loops, (), needs)
    own = {s: expr(s) % size for s, size in sizes.items()}
    begins = own | {s: expr(of.sym) for s, of in zip(free, loops, strict=True)}
    ways = (equal((*begins.values(), *own.values()), (*at.values(), *to.values())) for at, to in found)
    return Sender(values, loops, (disj(ways),), needs)


def _of_box(stmt: k.CopyTensor | k.StoreTensor, map: k.TensorMap, kernel: k.Kernel, known: Known) -> Formula | None:
    """The alignment of the tile, a map type that copies and combines exactly, and a valid first pixel and corner."""
    near = stmt.source if isinstance(stmt, k.StoreTensor) else stmt.target
    array = next(each for each in kernel.arrays if each.buffer is near.buffer)
    period = max(LINE, LINE * map.swizzle // CHUNK)
    if (
        array.align % period
        or element_of(map).name in ROUNDED
        or (isinstance(stmt, k.StoreTensor) and not _combines(stmt, map))
    ):
        return FALSE
    needs = (*aligned(near, LINE if stmt.rows else period, known), *_pixels(stmt, map), *_corner(stmt, map, known))
    return conj(needs) if needs else None


def _corner(stmt: k.CopyTensor | k.StoreTensor, map: k.TensorMap, known: Known) -> Iterator[Formula]:
    """The condition that a copy begins at a multiple of 16 bytes in the innermost dimension, and a store nowhere before the
    tensor; otherwise the instruction is illegal (see `texpr.tma.rules`)."""
    begin = stmt.at[0] * map.buffer.dtype.bytes
    if not known.multiple(begin, CHUNK):
        yield Eq(begin % CHUNK)
    if isinstance(stmt, k.StoreTensor):
        yield from (Ge(each) for each in stmt.at if not known.nonnegative(each))


def aligned(first: Load, by: int, known: Known) -> tuple[Formula, ...]:
    """The condition that an element is at a multiple of so many bytes; empty if that is known."""
    at = first.offset * first.dtype.bytes
    return () if known.multiple(at, by) else (Eq(at % by),)


def _chunks(stmt: k.CopyBulk, near: Load, known: Known) -> tuple[Formula, ...]:
    """The condition that a run of computed length is not empty, and a whole number of chunks."""
    if stmt.exactly is None:
        return ()
    size = stmt.exactly * near.dtype.bytes
    return (Ge(stmt.exactly - 1), *(() if known.multiple(size, CHUNK) else (Eq(size % CHUNK),)))


def _combines(stmt: k.StoreTensor, map: k.TensorMap) -> bool:
    """Whether the map's type combines elements as the buffer's type does."""
    return stmt.reduce is None or element_of(map).name == combined_as(stmt.reduce, map.buffer.dtype)


def _points(extents: Sequence[int], name: str) -> tuple[tuple[Expr, ...], tuple[k.For, ...]]:
    """The point of a box as symbols, with their ranges; all elements are moved at once."""
    syms = [Sym(f"{name}.{at}") if extent > 1 else None for at, extent in enumerate(extents)]
    each = zip(syms, extents, strict=True)
    loops = tuple(k.For(sym, ZERO, expr(extent), (), ONE, "simd") for sym, extent in each if sym is not None)
    return tuple(ZERO if sym is None else expr(sym) for sym in syms), loops


def _along(first: Load, at: Expr, count: int) -> Load:
    """The element `at` after `first`, in a run of `count` elements; a run of several whole rows continues in the next row.

    The start is unchanged, so subscripts remain those of its address: row 0, column 4 of rows of 4 is row 1, column 0.
    """
    index, dim = list(first.index), first.buffer.rank - 1
    while dim and first.buffer.strides is None and first.buffer.shape[dim].is_constant:
        extent = first.buffer.shape[dim].constant
        if count <= extent or count % extent:
            break
        at = index[dim] + at
        index[dim], at, count, dim = at % extent, at // extent, count // extent, dim - 1
    index[dim] += at
    return replace(first, index=tuple(index))


def _tile(near: Load, map: k.TensorMap, number: Expr, column: Expr) -> Expr:
    """The offset in a tile, in elements, of a row and a column, before chunks are permuted."""
    return number * (max(map.tile[0] * near.dtype.bytes, map.swizzle) // near.dtype.bytes) + column


def behind(first: Load, linear: Expr, known: Simplifier, swizzle: int = 0) -> Load:
    """The element `linear` behind `first`, as subscripts of its array, where chunks are moved by the address."""
    size, start = first.dtype.bytes, first.index
    if swizzle:
        period, chunk = LINE * swizzle // CHUNK, CHUNK // size
        low = first.offset % (period // size)
        if low is not ZERO:
            linear, start = first.offset + linear, tuple(ZERO for _ in start)
        moved = xor(linear // chunk, linear // (LINE // size), (swizzle // CHUNK).bit_length() - 1)
        linear = moved * chunk + linear % chunk
    strides = [1]
    for extent in reversed(first.buffer.shape[1:]):
        strides.insert(0, strides[0] * extent.constant)
    if first.buffer.strides is not None and [s.constant for s in first.buffer.strides] != strides:
        raise ValueError(f"{first.buffer.name} is not dense")
    parts = [linear // stride for stride in strides]
    inner = [part if not at else part % n.constant for at, (part, n) in enumerate(zip(parts, first.buffer.shape, strict=True))]
    return replace(first, index=tuple(known(s + e) for s, e in zip(start, inner, strict=True)))


def _near(first: Load, linear: Expr, loops: Sequence[k.For], swizzle: int = 0) -> Load:
    """The same of the points of a box, over `loops`."""
    return behind(first, linear, Simplifier(Known({loop.sym: (0, loop.hi.constant - 1) for loop in loops})), swizzle)


def _coordinates(
    stmt: k.CopyTensor | k.StoreTensor, map: k.TensorMap, points: Sequence[Expr], row: int | None, data: Number
) -> Iterator[tuple[tuple[Expr, ...], tuple[tuple[Value, bool], ...], tuple[tuple[Sym, Value], ...]]]:
    """The position in the tensor of the element at a point, case by case: coordinates, tests, and data-dependent
    coordinates."""
    if row is not None:
        (column,) = stmt.at
        yield from _named_row(stmt.rows[row], column + points[0], data, ())
    elif map.corners and isinstance(stmt, k.CopyTensor):
        yield _pixel(stmt, map, points), (), ()
    else:
        yield tuple(first + point * step for first, point, step in zip(stmt.at, points, map.steps, strict=True)), (), ()


def _named_row(
    value: Value, column: Expr, data: Number, tests: tuple[tuple[Value, bool], ...]
) -> Iterator[tuple[tuple[Expr, ...], tuple[tuple[Value, bool], ...], tuple[tuple[Sym, Value], ...]]]:
    """A row whose number is a value: selected by a test, constant, or data."""
    match value:
        case Op("select", (test, one, other)):
            yield from _named_row(one, column, number_of(f"{data.label}t", data.args), (*tests, (test, True)))
            yield from _named_row(other, column, number_of(f"{data.label}f", data.args), (*tests, (test, False)))
        case Literal(number):
            yield (column, expr(int(number))), tests, ()
        case Index(number):
            yield (column, number), tests, ()
        case Cast(Load() as wide, _) if wide.dtype.is_integer and value.dtype.is_integer:
            yield from _named_row(wide, column, data, tests)  # as subscripts of the program are, a row is below 2³¹
        case _:
            yield (column, expr(data)), tests, ((data, value),)


def _pixel(stmt: k.CopyTensor, map: k.TensorMap, points: Sequence[Expr]) -> tuple[Expr, ...]:
    """A channel of a pixel in im2col mode: pixels are counted through the bounding box, W first, then through the next
    images."""
    total, weight = points[1], ONE
    steps, sizes = map.steps[1:-1], [_positions(map, dim) for dim in range(len(map.corners))]
    for at, step, size, (lower, _) in zip(stmt.at[1:-1], steps, sizes, map.corners, strict=True):
        total, weight = total + (at - lower) // step * weight, weight * size
    total = total + stmt.at[-1] * weight
    found: list[Expr] = [stmt.at[0] + points[0]]
    for step, size, (lower, _), moved in zip(steps, sizes, map.corners, stmt.offsets, strict=True):
        found.append(lower + total % size * step + moved)
        total = total // size
    return (*found, total)


def _positions(map: k.TensorMap, dim: int) -> Expr:
    """The number of pixels in a row of the bounding box, along a spatial dimension."""
    (lower, upper), step = map.corners[dim], map.steps[dim + 1]
    return (map.sizes[dim + 1] - 1 + upper - lower) // step + 1


def _pixels(stmt: k.Stmt, map: k.TensorMap) -> tuple[Formula, ...]:
    """The condition that the first pixel is in the bounding box."""
    if not map.corners or not isinstance(stmt, k.CopyTensor):
        return ()
    parts: list[Formula] = []
    for dim, (at, (lower, _)) in enumerate(zip(stmt.at[1:-1], map.corners, strict=True)):
        step = map.steps[dim + 1]
        parts += [between(0, (at - lower) // step, _positions(map, dim)), Eq((at - lower) % step)]
    return tuple(parts)


def _inside(map: k.TensorMap, where: Sequence[Expr], data: Sequence[tuple[Sym, Value]]) -> tuple[Formula, ...]:
    """The engine's bounds test; a data-dependent row is in bounds, as subscripts of the program are."""
    known = {sym for sym, _ in data}
    return tuple(between(0, e, size) for e, size in zip(where, map.sizes, strict=True) if e.as_sym not in known)


def _element(map: k.TensorMap, where: Sequence[Expr], data: tuple[tuple[Sym, Value], ...]) -> Load:
    """The element of the buffer at coordinates of the tensor: its address is their sum by the map's strides.

    Each dimension of the tensor is along one of the buffer, or along several adjacent ones as if they were one.
    """
    buffer, size = map.buffer, map.buffer.dtype.bytes
    strides = buffer.strides or tuple(_product(buffer.shape[at + 1 :]) for at in range(buffer.rank))
    index = [ZERO] * buffer.rank
    parts = [(e, stride, extent) for e, stride, extent in zip(where, (expr(size), *map.strides), map.sizes, strict=True)]
    rest = map.offset
    for at, stride in enumerate(strides):  # the offset of the tensor in the buffer
        (monomial, coefficient) = stride.terms[0] if stride.terms else ((), stride.constant)
        here = _part(rest, monomial, coefficient)
        index[at], rest = index[at] + here, rest - here * stride
    for coordinate, stride, extent in parts:
        along = [d for d in range(buffer.rank) if buffer.shape[d] is not ONE or extent is ONE]
        ratios = {d: f for d in along if (f := _ratio(stride, strides[d] * size))}
        if not ratios and coordinate is ZERO:
            continue
        if not ratios:
            raise ValueError(f"no dimension of {buffer.name} has the stride {stride} of {map.name}")
        # a dimension of one element may have the stride of another
        at, factor = min(ratios.items(), key=lambda item: (item[1], buffer.shape[item[0]] is not extent))
        left = _size(extent)
        while factor == 1 and at > 0 and left is not buffer.shape[at]:
            outer = _quotient(left, buffer.shape[at])
            if outer is None or strides[at - 1] is not strides[at] * buffer.shape[at]:
                break
            index[at], coordinate = index[at] + coordinate % buffer.shape[at], coordinate // buffer.shape[at]
            at, left = at - 1, outer
        index[at] = index[at] + coordinate * factor
    if rest is not ZERO:
        raise ValueError(f"{map.name} begins at no element of {buffer.name}")
    return Load(buffer, tuple(index), data)


def _product(extents: Sequence[Expr]) -> Expr:
    total = ONE
    for extent in extents:
        total = total * extent
    return total


def _size(extent: Expr) -> Expr:
    """The size whose maximum with 1 is in a map."""
    atom = extent.as_atom
    others = [each for each in atom.args if each is not ONE] if isinstance(atom, Max) and ONE in atom.args else []
    return others[0] if len(others) == 1 else extent


def _ratio(stride: Expr, unit: Expr) -> int | None:
    """The constant quotient of a stride and a unit; None if it is not constant and positive."""
    found = _quotient(stride, unit)
    return found.constant if found is not None and found.is_constant and found.constant > 0 else None


def _quotient(product: Expr, factor: Expr) -> Expr | None:
    """The other factor of a product, None if none is found."""
    for monomial, coefficient in factor.terms or (((), factor.constant),):
        found = _part(product, monomial, coefficient)
        if factor * found is product:
            return found
    return None


def _part(whole: Expr, monomial: Monomial, coefficient: int) -> Expr:
    """The terms of a sum that a given term divides, divided by it."""
    total = ZERO
    for found, number in (*whole.terms, ((), whole.constant)):
        rest = without(found, monomial)
        if rest is not None and coefficient and number % coefficient == 0:
            total = total + term(rest, number // coefficient)
    return total
