"""What mappings cost, by trying: every bijection of few iterations, every digit permutation and box of many.

Nothing of the compiler is used. A program is the addresses of its accesses as arrays over its iterations. The cost of a warp is
what the text of `docs/theory/mapping.md` says: 4 for a sector, 3 for a line, 1 for a request.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache
from itertools import combinations, product
from math import prod

import numpy as np
from numpy.typing import NDArray

from texpr.support.record import Record

Ints = NDArray[np.int64]


class Subject(Record, dict=True):
    """A program for the solver and for the oracle. `accesses`: addresses in bytes over all iterations, each with how often.

    `text`: the program; its `par`s have the extents `shape`, in this order.
    """

    name: str
    text: str
    shape: tuple[int, ...]
    accesses: tuple[tuple[Ints, int], ...]


class Machine(Record, dict=True):
    lanes: int = 32
    sector: int = 32
    line: int = 128


def warp_cost(addresses: list[Ints], times: list[int], machine: Machine) -> tuple[int, int, int]:
    """Sectors, lines and requests of a warp whose lanes make accesses at `addresses`."""
    sectors = sum(len({int(a) // machine.sector for a in each}) * n for each, n in zip(addresses, times, strict=True))
    lines = sum(len({int(a) // machine.line for a in each}) * n for each, n in zip(addresses, times, strict=True))
    return sectors, lines, sum(times)


def weighted(cost: tuple[int, int, int]) -> int:
    return 4 * cost[0] + 3 * cost[1] + cost[2]


def total(subject: Subject, warps: list[list[int]], machine: Machine) -> tuple[int, int, int]:
    """The cost of warps that run these iterations, numbered in the order of the program's loops."""
    flat = [(a.reshape(-1), n) for a, n in subject.accesses]
    found = [0, 0, 0]
    for warp in warps:
        if warp:
            cost = warp_cost([a[warp] for a, _ in flat], [n for _, n in flat], machine)
            found = [x + y for x, y in zip(found, cost, strict=True)]
    return found[0], found[1], found[2]


def best_of_all(subject: Subject, machine: Machine, by_sectors: bool = False) -> int:
    """The least cost over every way to part the iterations into full warps (and one that is not, if they do not divide)."""
    flat = [(a.reshape(-1), n) for a, n in subject.accesses]
    count = flat[0][0].size

    @lru_cache(None)
    def of(warp: tuple[int, ...]) -> int:
        cost = warp_cost([a[list(warp)] for a, _ in flat], [n for _, n in flat], machine)
        return cost[0] if by_sectors else weighted(cost)

    rest = count % machine.lanes
    starts = combinations(range(count), rest) if rest else [()]
    everything = (1 << count) - 1

    @lru_cache(None)
    def least(left: int) -> int:
        if not left:
            return 0
        items = [n for n in range(count) if left >> n & 1]
        first, others = items[0], items[1:]
        found: int | None = None
        for more in combinations(others, machine.lanes - 1):
            warp = (first, *more)
            cost = of(warp) + least(left & ~sum(1 << n for n in warp))
            found = cost if found is None else min(found, cost)
        assert found is not None
        return found

    return min((of(tuple(part)) if part else 0) + least(everything & ~sum(1 << n for n in part)) for part in starts)


def by_bits(subject: Subject, machine: Machine) -> int:
    """The least cost over every choice of bits of the indices as lanes; all extents are powers of two."""
    widths = [int(n).bit_length() - 1 for n in subject.shape]
    bits = sum(widths)
    lanes = machine.lanes.bit_length() - 1
    best: int | None = None
    arrays = [(a.reshape((2,) * bits), n) for a, n in subject.accesses]
    for chosen in combinations(range(bits), lanes):
        order = (*(b for b in range(bits) if b not in chosen), *chosen)
        cost = 0
        for array, times in arrays:
            rows = array.transpose(order).reshape(-1, machine.lanes)
            cost += times * (4 * distinct(rows // machine.sector) + 3 * distinct(rows // machine.line) + len(rows))
        best = cost if best is None else min(best, cost)
    assert best is not None
    return best


def distinct(rows: Ints) -> int:
    """How many numbers each row has, summed over rows."""
    ordered = np.sort(rows, axis=1)
    return int((np.diff(ordered, axis=1) != 0).sum()) + len(rows)


def boxes(lanes: int, rank: int) -> Iterator[tuple[int, ...]]:
    """Every box of so many lanes, powers of two along each loop."""
    for box in product(*([2**n for n in range(lanes.bit_length())],) * rank):
        if prod(box) == lanes:
            yield box


def by_boxes(subject: Subject, machine: Machine) -> int:
    """The least cost over every box of lanes, guarded where it is ragged."""
    return min(weighted(of_box(subject, box, machine)) for box in boxes(machine.lanes, len(subject.shape)))


def of_box(subject: Subject, box: tuple[int, ...], machine: Machine) -> tuple[int, int, int]:
    """The cost of one box of lanes, dealt out over all iterations."""
    numbers = np.arange(prod(subject.shape)).reshape(subject.shape)
    places = product(*(range(0, n, b) for n, b in zip(subject.shape, box, strict=True)))
    warps = [numbers[tuple(slice(p, p + b) for p, b in zip(place, box, strict=True))].reshape(-1) for place in places]
    return total(subject, [list(map(int, w)) for w in warps], machine)


def of_digits(subject: Subject, digits: tuple[tuple[int, int], ...], machine: Machine) -> tuple[int, int, int]:
    """The cost of digits (loop, radix) of the thread number, fastest first, warps numbered through a block."""
    tile = [1] * len(subject.shape)
    threads: list[tuple[int, ...]] = []
    for loop, radix in digits:
        tile[loop] *= radix
    for number in range(prod(radix for _, radix in digits)):
        at, weight = [0] * len(subject.shape), [1] * len(subject.shape)
        for loop, radix in digits:
            at[loop] += number % radix * weight[loop]
            weight[loop] *= radix
            number //= radix
        threads.append(tuple(at))
    numbers = np.arange(prod(subject.shape)).reshape(subject.shape)
    warps: list[list[int]] = []
    for place in product(*(range(0, n, t) for n, t in zip(subject.shape, tile, strict=True))):
        points = [tuple(p + a for p, a in zip(place, at, strict=True)) for at in threads]
        for first in range(0, len(points), machine.lanes):
            warp = points[first : first + machine.lanes]
            warps.append([int(numbers[p]) for p in warp if all(i < n for i, n in zip(p, subject.shape, strict=True))])
    return total(subject, warps, machine)


QUOTIENT, REMAINDER, AFTER, OPEN = 4, 5, 2, 24
"""Instructions of a division by a number that is no power of two, a remainder, one after the division, and by a size."""


def instructions(values: list[ast.expr]) -> int:
    """What it takes to evaluate these, each part of them once: text of C, read as Python."""
    parts = {ast.dump(node): node for value in values for node in ast.walk(value) if isinstance(node, ast.BinOp | ast.Call)}
    sides = {key: _sides(node) for key, node in parts.items()}
    divided = {(ast.dump(a), ast.dump(b)) for kind, a, b in sides.values() if kind == "/"}
    total = 0
    for kind, one, other in sides.values():
        number = next((n.value for n in (other, one) if isinstance(n, ast.Constant)), None)
        if kind in "+-*" or (isinstance(number, int) and not number & (number - 1)):
            total += 1
        elif kind == "/":
            total += OPEN if number is None else QUOTIENT
        else:
            pair = (ast.dump(one), ast.dump(other)) in divided
            total += AFTER if pair else OPEN if number is None else REMAINDER
    return total


def _sides(node: ast.BinOp | ast.Call) -> tuple[str, ast.expr, ast.expr]:
    if isinstance(node, ast.Call):
        assert isinstance(node.func, ast.Name)
        return "/" if node.func.id == "floor" else "%", node.args[0], node.args[1]
    kinds: dict[type[ast.operator], str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.FloorDiv: "/", ast.Mod: "%"}
    return kinds[type(node.op)], node.left, node.right


# Programs.

BYTES = {"f64": 8, "f32": 4, "bf16": 2, "f16": 2, "u8": 1, "f8e4m3": 1, "f8e5m2": 1}


def array(shape: tuple[int, ...], dtype: str) -> Ints:
    """The addresses of a dense array's elements."""
    return np.arange(prod(shape), dtype=np.int64).reshape(shape) * BYTES[dtype]


def permute(order: tuple[int, ...], shape: tuple[int, ...], dtype: str = "f32") -> Subject:
    """`B` has the axes of `A` in another order, and is walked in its own."""
    made = tuple(shape[n] for n in order)
    source = ", ".join(f"i{n}" for n in range(len(shape)))
    target = ", ".join(f"i{n}" for n in order)
    loops = " ".join(f"par {shape[n]} |i{n}| {{" for n in order)
    a, b = (f"{dtype}[{', '.join(map(str, s))}]" for s in (shape, made))
    text = f"fn f(A: {a}): {b} {{ new B: {b} {loops} B[{target}] = A[{source}] {'}' * len(shape)} return B }}"
    read = array(shape, dtype).transpose(order)
    return Subject(f"permute {order} {dtype}", text, made, ((read, 1), (array(made, dtype), 1)))


def convolution(h: int, w: int, r: int, c: int, f: int, dtype: str = "f32") -> Subject:
    """Windows of r × r of an image of `c` channels, times `f` filters; the first product of each sum stands for all."""
    p, q = h - r + 1, w - r + 1
    text = f"""fn f(X: {dtype}[{h}, {w}, {c}], K: {dtype}[{r}, {r}, {c}, {f}]): {dtype}[{p}, {q}, {f}] {{
        new Y: {dtype}[{p}, {q}, {f}]
        par {p} |p| {{ par {q} |q| {{ par {f} |f| {{
            new s: {dtype} = 0.0
            seq {r} |r| {{ seq {r} |t| {{ seq {c} |c| {{ s += X[p + r, q + t, c] * K[r, t, c, f] }} }} }}
            Y[p, q, f] = s
        }} }} }}
        return Y
    }}"""
    image, kernel = array((h, w, c), dtype), array((r, r, c, f), dtype)
    reads: list[tuple[Ints, int]] = []
    for at, over, channel in product(range(r), range(r), range(c)):
        window = image[at : at + p, over : over + q, channel]
        reads.append((np.repeat(window[:, :, None], f, 2), 1))
        reads.append((np.broadcast_to(kernel[at, over, channel], (p, q, f)), 1))
    return Subject(f"convolution {r} {dtype}", text, (p, q, f), (*reads, (array((p, q, f), dtype), 1)))


def narrow(rows: int, columns: int, dtype: str = "f32") -> Subject:
    """A copy of rows that are short, as many as come."""
    return permute((0, 1), (rows, columns), dtype)


def gathered(rows: int, width: int, seed: int, dtype: str = "f32") -> Subject:
    """Rows of a table, `width` neighbours each, that another array names: far from one another, as the solver takes them."""
    chosen = np.random.default_rng(seed).permutation(4 * rows)[:rows] * 4096
    t = f"{dtype}[{4 * rows}, 4096, {width}]"
    text = f"""fn f(T: {t}, I: i32[{rows}]): {dtype}[{rows}, {width}] assume I in 0..{4 * rows} {{
        new y: {dtype}[{rows}, {width}]
        par {rows} |i| {{ par {width} |j| {{ y[i, j] = T[I[i], 0, j] }} }}
        return y
    }}"""
    read = (chosen[:, None] * width + np.arange(width)) * BYTES[dtype]
    names = np.repeat(array((rows,), "f32")[:, None], width, 1)
    return Subject(f"gather {width} {dtype}", text, (rows, width), ((names, 1), (read, 1), (array((rows, width), dtype), 1)))


def matmul(kind: str, m: int, n: int, k: int, dtype: str = "f32") -> Subject:
    """`C = A B`, either factor transposed where `kind` says T; the first product of each sum stands for all."""
    a, b = ((m, k) if kind[0] == "n" else (k, m)), ((k, n) if kind[1] == "n" else (n, k))
    left, right = ("A[i, k]" if kind[0] == "n" else "A[k, i]"), ("B[k, j]" if kind[1] == "n" else "B[j, k]")
    text = f"""fn f(A: {dtype}[{a[0]}, {a[1]}], B: {dtype}[{b[0]}, {b[1]}]): {dtype}[{m}, {n}] {{
        new C: {dtype}[{m}, {n}]
        par {m} |i| {{ par {n} |j| {{
            new s: {dtype} = 0.0
            seq {k} |k| {{ s += {left} * {right} }}
            C[i, j] = s
        }} }}
        return C
    }}"""
    reads: list[tuple[Ints, int]] = []
    for at in range(k):
        row = array(a, dtype)[:, at] if kind[0] == "n" else array(a, dtype)[at, :]
        column = array(b, dtype)[at, :] if kind[1] == "n" else array(b, dtype)[:, at]
        reads += [(np.repeat(row[:, None], n, 1), 1), (np.repeat(column[None, :], m, 0), 1)]
    return Subject(f"matmul {kind} {dtype}", text, (m, n), (*reads, (array((m, n), dtype), 1)))


def im2col(h: int, w: int, r: int, dtype: str = "f32") -> Subject:
    """Each window of r × r of an image as a row."""
    p, q = h - r + 1, w - r + 1
    y = f"{dtype}[{p}, {q}, {r}, {r}]"
    text = f"""fn f(x: {dtype}[{h}, {w}]): {y} {{
        new y: {y}
        par {p} |p| {{ par {q} |q| {{ par {r} |r| {{ par {r} |s| {{ y[p, q, r, s] = x[p + r, q + s] }} }} }} }}
        return y
    }}"""
    image = array((h, w), dtype)
    pp, qq, rr, ss = np.ix_(*(np.arange(n) for n in (p, q, r, r)))
    return Subject(f"im2col {r} {dtype}", text, (p, q, r, r), ((image[pp + rr, qq + ss], 1), (array((p, q, r, r), dtype), 1)))


def strided(n: int, step: int, dtype: str = "f32") -> Subject:
    """Every so many elements, gathered."""
    text = (
        f"fn f(x: {dtype}[{n * step}]): {dtype}[{n}] {{ new y: {dtype}[{n}] par {n} |i| {{ y[i] = x[i * {step}] }} return y }}"
    )
    return Subject(f"strided {step} {dtype}", text, (n,), ((array((n * step,), dtype)[::step], 1), (array((n,), dtype), 1)))


def blocked(rows: int, block: int, dtype: str = "f32") -> Subject:
    """Blocks of a row each, as they lie one after the other: `y[b, i, j] = x[i, b, j]`."""
    return permute((1, 0, 2), (rows, rows, block), dtype)


def bias(m: int, n: int, dtype: str = "f32") -> Subject:
    """A row added to each row."""
    x = f"{dtype}[{m}, {n}]"
    text = f"""fn f(x: {x}, b: {dtype}[{n}]): {x} {{
        new y: {x}
        par {m} |i| {{ par {n} |j| {{ y[i, j] = x[i, j] + b[j] }} }}
        return y
    }}"""
    row = np.repeat(array((n,), dtype)[None, :], m, 0)
    return Subject(f"bias {dtype}", text, (m, n), ((array((m, n), dtype), 1), (row, 1), (array((m, n), dtype), 1)))


def stencil(h: int, w: int, dtype: str = "f32") -> Subject:
    """The sum of four neighbours."""
    p, q = h - 2, w - 2
    text = f"""fn f(x: {dtype}[{h}, {w}]): {dtype}[{p}, {q}] {{
        new y: {dtype}[{p}, {q}]
        par {p} |i| {{ par {q} |j| {{ y[i, j] = x[i, j + 1] + x[i + 2, j + 1] + x[i + 1, j] + x[i + 1, j + 2] }} }}
        return y
    }}"""
    x = array((h, w), dtype)
    reads = (x[:-2, 1:-1], x[2:, 1:-1], x[1:-1, :-2], x[1:-1, 2:])
    return Subject(f"stencil {dtype}", text, (p, q), (*((r, 1) for r in reads), (array((p, q), dtype), 1)))
