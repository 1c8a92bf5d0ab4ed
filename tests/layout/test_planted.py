"""Errors planted in the operations: each is seen by a law at some small layout."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import pytest
from tests.layout import laws
from tests.layout.oracle import answer, layouts

import texpr.layout.algebra.coalesce as coalescing
import texpr.layout.algebra.complement as complementing
import texpr.layout.algebra.compose as composing
import texpr.layout.algebra.divide as dividing
import texpr.layout.algebra.inverse as inverting
import texpr.layout.algebra.product as multiplying
import texpr.layout.algebra.recast as recasting
from texpr.layout import Layout
from texpr.layout.layout import Mode
from texpr.layout.proof import Prover
from texpr.layout.swizzle import Swizzle


def violations() -> Iterator[str]:
    """The operations that break their law somewhere."""
    ones = list(layouts(6, 2, (0, 1, 2, 3, 4), least=2))
    firsts = [Layout(shape, stride) for shape in ((4, 2), (2, 4), 6, 8, (3, 2)) for stride in ((1, 100), (100, 1), (1, 4))
              if isinstance(shape, tuple)] + [Layout(6), Layout(8, 3)]  # fmt: skip
    alone: list[tuple[str, Callable[..., Layout], Callable[..., bool]]] = [
        ("coalesce", coalescing.coalesce, laws.coalesces),
        ("right inverse", inverting.right_inverse, laws.inverts_right),
        ("left inverse", inverting.left_inverse, laws.inverts_left),
        ("nullspace", inverting.nullspace, laws.nullifies),
    ]
    for (name, operation, law), a in product(alone, ones):
        if not _obeys(law, operation, a):
            yield name
    paired: list[tuple[str, Callable[..., Layout], Callable[..., bool], list[Any], list[Any]]] = [
        ("composition", composing.composition, laws.composes, firsts, ones),
        ("divide", dividing.logical_divide, laws.divides, firsts, ones),
        ("product", multiplying.logical_product, laws.multiplies, ones, [Layout(2), Layout((2, 2), (2, 1)), Layout(3, 2)]),
        ("complement", complementing.complement, laws.complements, ones, [8, 10, 12]),
        ("upcast", recasting.upcast, laws.widens, ones, [2, 3, 4]),
    ]
    for name, operation, law, left, right in paired:
        for a, b in product(left, right):
            if not _obeys(law, operation, a, b):
                yield name


def _obeys(law: Callable[..., bool], operation: Callable[..., Layout], *args: Any) -> bool:
    """Whether the answer is right, or there is none."""
    try:
        found = answer(operation, *args)
        return found is None or law(*args, found)
    except (IndexError, ZeroDivisionError):  # an answer that leads out of the layout
        return False


def test_nothing_is_wrong_as_it_stands() -> None:
    assert not set(violations())


def always(self: Prover, *args: Any) -> bool:
    return True


def _merged_by_size(modes: Any) -> tuple[Mode, ...]:
    """Merges where the strides are equal, as if the first mode had size 1."""
    found: list[Mode] = []
    for mode in modes:
        if found and found[-1].stride == mode.stride:
            found[-1] = Mode(found[-1].size * mode.size, mode.stride)
        else:
            found.append(mode)
    return tuple(found)


PLANTED: dict[str, tuple[Any, str, Any, str]] = {
    "whatever divides": (Prover, "divides", always, "composition"),
    "whatever fits": (Prover, "at_most", always, "composition"),
    "carries pass": (composing._Digits, "check", always, "composition"),
    "a tile that repeats passes": (Prover, "equal", always, "divide"),
    "a complement rounds up": (Prover, "divides", lambda self, d, value: value >= d, "complement"),
    "modes merge by stride": (coalescing, "merged", _merged_by_size, "coalesce"),
    "a step is forgotten": (composing, "scaled", lambda stride, step: stride, "composition"),
    "copies stand side by side": (multiplying, "complement", lambda layout, room, known: Layout(room, 1), "product"),
    "gaps are overlooked": (inverting, "_is_next", lambda mode, last, left, prover: True, "left inverse"),
    "values that are left are overlooked": (Prover, "equal", lambda self, a, b: a >= b, "right inverse"),
    "uneven groups pass": (recasting, "_share", lambda size, step, n, prover: n // max(step, 1), "upcast"),
}


@pytest.mark.parametrize("error", PLANTED)
def test_a_planted_error_is_seen(error: str, monkeypatch: pytest.MonkeyPatch) -> None:
    owner, attribute, wrong, seen = PLANTED[error]
    monkeypatch.setattr(owner, attribute, wrong)
    assert any(name == seen for name in violations())


def test_a_swizzle_whose_bits_overlap_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Crossed with bits that are themselves changed, it is no involution."""
    monkeypatch.setattr(Swizzle, "__call__", lambda self, x: x ^ x >> 1)
    swizzle = Swizzle(3, 0, 3)
    assert any(swizzle(swizzle(x)) != x for x in range(swizzle.block))
