"""What each operation means, as a statement on lists of values: true of a right answer and of nothing else that matters."""

from __future__ import annotations

from tests.layout.oracle import leaves, numbers, values

from texpr.layout import Layout


def size(layout: Layout) -> int:
    return len(values(layout))


def refines(fine: object, coarse: object) -> bool:
    """Whether a tree of sizes is another one with leaves cut in pieces of as many elements."""
    if not isinstance(coarse, tuple):
        count = 1
        for leaf in leaves(fine):
            count *= leaf
        return count == coarse
    return isinstance(fine, tuple) and len(fine) == len(coarse) and all(map(refines, fine, coarse))


def coalesces(a: Layout, r: Layout) -> bool:
    """The same function, in no more leaves; flat; and none that could be merged."""
    sizes, steps = leaves(r.shape), leaves(r.stride)
    flat = not isinstance(r.shape, tuple) or len(sizes) == len(r.shape)
    tight = len(sizes) == 1 or (1 not in sizes and all(steps[k + 1] != steps[k] * sizes[k] for k in range(len(sizes) - 1)))
    return values(r) == values(a) and len(sizes) <= len(leaves(a.shape)) and flat and tight


def composes(a: Layout, b: Layout, r: Layout) -> bool:
    """R(c) = A(B(c)), in a shape that refines that of B."""
    table = values(a)
    return refines(r.shape, b.shape) and values(r) == [table[x] for x in numbers(b)]


def complements(a: Layout, cotarget: int, c: Layout) -> bool:
    """Every number below the cotarget is a value of A and one of C, in one way; those of C rise."""
    of_a, of_c = sorted(set(numbers(a))), numbers(c)
    sums = sorted(x + y for x in of_a for y in of_c)
    return sums == list(range(cotarget)) and of_c == sorted(set(of_c))


def inverts_right(a: Layout, r: Layout) -> bool:
    """A(R(x)) = x up to the greatest value of A."""
    table = numbers(a)
    return [table[x] for x in numbers(r)] == list(range(max(table) + 1))


def inverts_left(a: Layout, l: Layout) -> bool:  # noqa: E741
    """L(A(i)) = i."""
    table = numbers(l)
    return [table[x] for x in numbers(a)] == list(range(size(a)))


def nullifies(a: Layout, n: Layout) -> bool:
    """N is injective, and leads to the value 0 alone; to all coordinates of it, where the rest of A is injective."""
    table, found = numbers(a), numbers(n)
    zeros = [i for i, value in enumerate(table) if value == 0]
    injective = len(set(table)) * len(found) == len(table)
    return len(set(found)) == len(found) and set(found) <= set(zeros) and (not injective or sorted(found) == zeros)


def divides(a: Layout, b: Layout, r: Layout) -> bool:
    """Tiles of B in mode 0, every element once; tile j is tile 0 moved along A by a number that rises with j."""
    tile, whole = numbers(b), values(a)
    if len(values(r)) != len(whole) or not isinstance(r.shape, tuple) or len(r.shape) != 2:
        return False
    rows = [values(r)[at : at + len(tile)] for at in range(0, len(whole), len(tile))]
    rest = starts_in(tile, len(whole))
    return rows == [[whole[x + y] for x in tile] for y in rest]


def starts_in(tile: list[int], count: int) -> list[int]:
    """The least starts of copies of a tile that cover everything once, found one after the other."""
    left = set(range(count))
    found: list[int] = []
    while left:
        start = min(left)
        taken = {start + x for x in tile}
        if not taken <= left:
            return []
        found.append(start)
        left -= taken
    return found


def multiplies(a: Layout, b: Layout, r: Layout) -> bool:
    """Copy j of A stands at the B(j)-th of the places at which copies fit, these taken greedily."""
    block, order = numbers(a), numbers(b)
    starts = _starts(sorted(set(block)), max(order) + 1)
    found = numbers(r)
    if len(found) != len(block) * len(order):
        return False
    copies = [found[at : at + len(block)] for at in range(0, len(found), len(block))]
    return copies == [[starts[x] + y for y in block] for x in order]


def _starts(block: list[int], count: int) -> list[int]:
    taken: set[int] = set()
    found: list[int] = []
    start = 0
    while len(found) < count:
        if taken.isdisjoint(start + x for x in block):
            found.append(start)
            taken.update(start + x for x in block)
        start += 1
    return found


def widens(a: Layout, n: int, u: Layout) -> bool:
    """The values of A are n · v, …, n · v + n − 1 for the values v of U, as often."""
    return sorted(numbers(a)) == sorted(n * v + k for v in numbers(u) for k in range(n))


def is_layout(sequence: list[int]) -> bool:
    """Whether some layout has these values in order (the first is 0)."""
    if len(sequence) == 1:
        return True
    step = sequence[1]
    for size in range(len(sequence), 1, -1):
        if len(sequence) % size == 0:
            outer = sequence[::size]
            fits = all(x == step * (i % size) + outer[i // size] for i, x in enumerate(sequence))
            if fits and is_layout(outer):
                return True
    return False
