"""Graphs as code: interpreted, and compiled for a CPU, each logical element is counted once."""

from __future__ import annotations

import numpy as np
import pytest
from tests.domain.code import counting
from tests.domain.generate import Recipe, Size, Step, recipe
from tests.lowering import native

from texpr.domain.predicates.needed import predicates
from texpr.interp import run as interpret
from texpr.ir.program import Function
from texpr.isa.registry import resolve
from texpr.lowering.lower import lower


def program(made: Recipe, name: str) -> Function:
    graph = made.graph()
    sizes = sorted({size.name for _, size in made.logical if not size.is_fixed})
    return counting(name, graph, predicates(graph, made.known()).kept, sizes)


def expected(made: Recipe, sizes: dict[str, int]) -> np.ndarray:
    """What a walk of every logical index gives."""
    extents = made.extents(sizes)
    counts = np.zeros([extents[name] for name, _ in made.logical], np.int32)
    for at in made.walk(sizes):
        counts[tuple(at[name] for name, _ in made.logical)] += 1
    return counts


def check(recipes: list[Recipe]) -> None:
    functions = [program(made, f"f{k}") for k, made in enumerate(recipes)]
    plans = [lower(function, resolve("cpu"))[0] for function in functions]
    loaded = native.library(plans)
    for made, function, plan in zip(recipes, functions, plans, strict=True):
        for sizes in made.sizes():
            want = expected(made, sizes)
            given = {"counts": np.zeros_like(want)}
            np.testing.assert_array_equal(interpret(function, given, sizes)["counts"], want, f"{function.name}{sizes}")
            np.testing.assert_array_equal(
                native.call(loaded, function, plan, given, sizes)["counts"], want, f"{function.name}{sizes}"
            )


def test_code_of_random_graphs_counts_each_element_once() -> None:
    check([recipe(seed) for seed in range(8)])


def test_code_of_graphs_of_nothing_divides_by_nothing() -> None:
    """Room is made around what is empty at some sizes, so that the loops run, and every divisor is a size that may be 0."""
    logical = (("x", Size("X", (0, 3))), ("y", Size("Y", (0, 2))))
    merged = (
        Step("merge", ("x", "y"), ("m",)),
        Step("resize", ("m",), ("r",), (2, 3)),
        Step("split", ("r",), ("o", "i"), (4,)),
    )
    shifted = (
        Step("shift", ("x", "y"), ("p", "q")),
        Step("resize", ("q",), ("r",), (1, 1)),
        Step("resize", ("p",), ("s",), (1, 0)),
    )
    outer = (Step("outer", ("y",), ("o", "i"), (3,)), Step("resize", ("i",), ("r",), (0, 2)), Step("merge", ("r", "x"), ("m",)))
    check([Recipe(logical, steps) for steps in (merged, shifted, outer)])


@pytest.mark.long
def test_code_of_many_random_graphs_counts_each_element_once() -> None:
    check([recipe(seed) for seed in range(100, 180)])
