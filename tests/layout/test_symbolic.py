"""With symbolic sizes: what is proved gives, at every sampled size, what the operation means there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import product
from random import Random
from typing import Any

import pytest
from tests.layout import laws
from tests.layout.oracle import answer, numbers, values

from texpr.affine.expr import Expr, Sym, sym
from texpr.affine.facts import Fact, Known, multiple_of
from texpr.layout import Basis, E, Layout
from texpr.layout.algebra.coalesce import coalesce
from texpr.layout.algebra.complement import complement
from texpr.layout.algebra.compose import composition
from texpr.layout.algebra.cosize import cosize
from texpr.layout.algebra.divide import logical_divide, zipped_divide
from texpr.layout.algebra.inverse import left_inverse, right_inverse
from texpr.layout.algebra.product import logical_product, ordered_layout, tile_to_shape
from texpr.layout.algebra.recast import recast, upcast
from texpr.layout.coordinates import natural
from texpr.layout.inttuple import Int, tidy, times
from texpr.layout.text import parse_layout
from texpr.layout.thread_value import thread_value

N, M, K = sym("n"), sym("m"), sym("p")
KNOWN = Known({}, [multiple_of(N, 8), multiple_of(M, 4), Fact(0, K - N, None), multiple_of(K, 16)])
"""8 divides n, 4 divides m, 16 divides p ≥ n."""

POSITIVE = KNOWN.also([Fact(1, N, None), Fact(1, M, None)])
"""For where n is no size, but a stride alone."""


def sizes() -> Iterator[dict[Sym, int]]:
    for n, m, k in product((8, 16, 24, 40), (4, 8, 12), (48, 64)):
        yield {Sym("n"): n, Sym("m"): m, Sym("p"): k}


def at(tree: Any, given: dict[Sym, int]) -> Any:
    """A tree, a layout or a number at these sizes."""
    match tree:
        case Layout():
            return Layout(at(tree.shape, given), at(tree.stride, given))
        case tuple():
            return tuple(at(part, given) for part in tree)
        case Basis():
            return Basis(at(tree.coefficient, given), tree.path)
        case Expr():
            return tree.evaluate(given)
        case _:
            return tree


P = parse_layout

LAWS: list[tuple[Callable[..., Layout], tuple[Any, ...], Callable[..., bool]]] = [
    (lambda a: coalesce(a), (P("((n,m),2):((1,n),n*m)"),), laws.coalesces),
    (lambda a, b: composition(a, b, KNOWN), (P("(n,m):(m,1)"), P("(n/8,m):(8,n)")), laws.composes),
    (lambda a, b: composition(a, b, KNOWN), (P("(n,m):(m,1)"), P("(4,2):(2,n)")), laws.composes),
    (lambda a, b: composition(a, b, KNOWN), (P("(n,m):(1,p)"), P("(8,m/2):(1,2*n)")), laws.composes),
    (lambda a, b: composition(a, b, KNOWN), (P("(n,m):(1,p)"), P("n*m:1")), laws.composes),
    (lambda a, n: complement(a, n, POSITIVE), (P("(8,m):(1,n)"), tidy(N * M)), laws.complements),
    (lambda a, b: logical_divide(a, b, KNOWN), (P("n*m:1"), P("8:1")), laws.divides),
    (lambda a, b: logical_divide(a, b, KNOWN), (P("(n,m):(m,1)"), P("(4,2):(1,n)")), laws.divides),
    (lambda a, b: logical_divide(a, b, KNOWN), (P("(n,m):(m,1)"), P("n:1")), laws.divides),
    (lambda a, b: logical_product(a, b, KNOWN), (P("(n,m):(m,1)"), P("(2,3):(3,1)")), laws.multiplies),
    (lambda a, b: logical_product(a, b, KNOWN), (P("8:1"), P("n:1")), laws.multiplies),
    (lambda a: right_inverse(a, KNOWN), (P("(n,m):(m,1)"),), laws.inverts_right),
    (lambda a: right_inverse(a, KNOWN), (P("(n,(4,m)):(4*m,(1,4))"),), laws.inverts_right),
    (lambda a: left_inverse(a, KNOWN), (P("(n,m):(1,p)"),), laws.inverts_left),
    (lambda a: left_inverse(a, KNOWN), (P("(m,n/8):(2,p*m)"),), laws.inverts_left),
    (lambda a, n: upcast(a, n, KNOWN), (P("(n,m):(1,p)"), 8), laws.widens),
    (lambda a, n: upcast(a, n, KNOWN), (P("(m,(2,n)):(2,(1,p*m))"), 4), laws.widens),
]


@pytest.mark.parametrize(("operation", "args", "law"), LAWS)
def test_laws_hold_at_every_sampled_size(
    operation: Callable[..., Layout], args: tuple[Any, ...], law: Callable[..., bool]
) -> None:
    found = operation(*args)
    for given in sizes():
        assert law(*(at(arg, given) for arg in args), at(found, given)), given


def test_sizes_follow() -> None:
    for given in sizes():
        for text in ("(n,m):(m,1)", "(n,m):(1,p)", "(n,(2,m)):(0,(-p,3))"):
            whole = P(text)
            assert at(cosize(whole, POSITIVE), given) == cosize(at(whole, given))
            assert at(whole.size, given) == at(whole, given).size


def test_tiles_of_a_symbolic_matrix() -> None:
    tiles = zipped_divide(Layout((N, M), (E(0), E(1))), (8, 4), KNOWN)
    assert str(tiles) == "((8,4),((n / 8),(m / 4))):((1@0,1@1),(8@0,4@1))"
    for given in sizes():
        whole = at(tiles, given)
        places = {whole(c) for c in range(whole.size)}
        assert places == set(product(range(given[Sym("n")]), range(given[Sym("m")])))


def test_a_symbolic_coordinate() -> None:
    """Of any layout, symbolic or not, in any form."""
    i, j = Sym("i"), Sym("j")
    for given in sizes():
        for text in ("(n,m):(m,1)", "((2,n/2),(m,3)):((7,p),(1,100))"):
            whole = P(text)
            fixed = at(whole, given)
            one, two = whole(i), whole((i, j))
            assert isinstance(one, Expr) and isinstance(two, Expr)
            table = numbers(fixed)
            for c in range(0, fixed.size, 7):
                assert one.evaluate({**given, i: c}) == table[c]
                x, y = natural(c, (fixed[0].size, fixed[1].size))  # type: ignore[misc]
                assert two.evaluate({**given, i: x, j: y}) == fixed(c)


def test_blocks_and_threads() -> None:
    block = Layout((8, 4), (4, 1))
    r = tile_to_shape(block, (N, M), (1, 0), KNOWN)
    for given in sizes():
        fixed = tile_to_shape(block, (given[Sym("n")], given[Sym("m")]), (1, 0))
        assert values(at(r, given)) == values(fixed)
    counts: tuple[Int, ...] = (N, M)
    assert ordered_layout(counts, (1, 0)) == Layout((N, M), (M, 1))
    tile, tv = thread_value(Layout((N, 4), (4, 1)), Layout((2, 2)), KNOWN)
    for given in sizes():
        shape, fixed = thread_value(Layout((given[Sym("n")], 4), (4, 1)), Layout((2, 2)))
        assert at(tile, given) == shape
        assert values(at(tv, given)) == values(fixed)


def test_recast_of_a_pitch() -> None:
    assert str(recast(P("(n,m):(1,p)"), 16, 128, KNOWN)) == "((n / 8),m):(1,(p / 8))"
    assert str(recast(P("(n,m):(1,p)"), 16, 8, KNOWN)) == "(2 * n,m):(1,2 * p)"


def symbolic_layout(random: Random) -> Layout:
    """Compact in some order, now and then with a gap; sizes are numbers, n, 2 m, …."""
    sizes = [random.choice((2, 3, 4, N, M, tidy(N * 2), tidy(M * 4))) for _ in range(random.randint(1, 3))]
    steps: list[Int] = [0] * len(sizes)
    filled: Int = 1
    for at in random.sample(range(len(sizes)), len(sizes)):
        steps[at] = filled
        filled = times(times(filled, sizes[at]), random.choice((1, 1, 1, 2, M)))
    return Layout(tuple(sizes), tuple(steps))


def symbolic_tile(random: Random, a: Layout) -> Layout:
    """Of its radices, some cut."""
    chosen: list[tuple[Int, Int]] = []
    weight: Int = 1
    for mode in a.flat:
        cut = random.choice((1, 2, mode.size))
        chosen.append((cut, times(weight, random.choice((1, 2))) if cut == 2 else weight))
        weight = times(weight, mode.size)
    random.shuffle(chosen)
    return Layout(tuple(s for s, _ in chosen), tuple(d for _, d in chosen))


def check_random(seeds: range, *, even: bool) -> Counter[str]:
    """How often each operation is answered; whatever is answered is right at all sizes that are admitted."""
    known = Known({}, [multiple_of(N, 2), multiple_of(M, 2)] if even else [])
    given = [{Sym("n"): n, Sym("m"): m} for n, m in product((2, 4) if even else (1, 2, 3), repeat=2)]
    answered: Counter[str] = Counter()
    for seed in seeds:
        random = Random(seed)
        a = symbolic_layout(random)
        b = symbolic_tile(random, a)
        for operation, args, law in (
            (composition, (a, b), laws.composes),
            (logical_divide, (a, b), laws.divides),
            (complement, (a, tidy(N * M * random.choice((4, 24)))), laws.complements),
            (right_inverse, (a,), laws.inverts_right),
            (left_inverse, (a,), laws.inverts_left),
            (upcast, (a, 2), laws.widens),
            (logical_product, (a, Layout(random.choice((2, M)))), laws.multiplies),
        ):
            found = answer(operation, *args, known)
            if found is not None:
                answered[operation.__name__] += 1
                for sizes_ in given:
                    assert law(*(at(arg, sizes_) for arg in args), at(found, sizes_)), (seed, operation, sizes_)
    return answered


@pytest.mark.parametrize("even", [False, True], ids=["any size", "even sizes"])
def test_random_symbolic_layouts(even: bool) -> None:
    answered = check_random(range(24), even=even)
    assert len(answered) == 7, answered


@pytest.mark.long
@pytest.mark.parametrize("even", [False, True], ids=["any size", "even sizes"])
def test_many_random_symbolic_layouts(even: bool) -> None:
    answered = check_random(range(100, 500), even=even)
    assert len(answered) == 7 and all(count > 20 for count in answered.values()), answered
