"""Trees of integers: shapes, coordinates and arithmetic tuples.

    tree = Int | (tree, …)        Int = int | Expr

A leaf that is a constant is always an `int`, so that equal trees compare equal. The words are those of CuTe (NVIDIA CUTLASS).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import reduce
from itertools import zip_longest
from typing import TypeAlias

from texpr.affine.expr import Expr, IntoExpr, expr
from texpr.layout.error import LayoutError

Int: TypeAlias = int | Expr
"""An integer, or an expression of sizes; an `Expr` here is never a constant."""

IntTree: TypeAlias = "Int | tuple[IntTree, ...]"
IntoIntTree: TypeAlias = "IntoExpr | tuple[IntoIntTree, ...]"


def tidy(value: IntoExpr) -> Int:
    """`value` as `int` if it is constant, as an expression otherwise."""
    if isinstance(value, int):
        return value
    value = expr(value)
    return value.constant if value.is_constant else value


def tidy_tree(tree: IntoIntTree) -> IntTree:
    """`tidy` at each leaf."""
    return tuple(map(tidy_tree, tree)) if isinstance(tree, tuple) else tidy(tree)


def plus(a: Int, b: Int) -> Int:
    """a + b."""
    return a + b if isinstance(a, int) and isinstance(b, int) else tidy(expr(a) + b)


def minus(a: Int, b: Int) -> Int:
    """a − b."""
    return a - b if isinstance(a, int) and isinstance(b, int) else tidy(expr(a) - b)


def times(a: Int, b: Int) -> Int:
    """a · b."""
    return a * b if isinstance(a, int) and isinstance(b, int) else tidy(expr(a) * b)


def quotient(a: Int, b: Int) -> Int:
    """⌊a / b⌋."""
    return a // b if isinstance(a, int) and isinstance(b, int) else tidy(expr(a) // b)


def remainder(a: Int, b: Int) -> Int:
    """a − b · ⌊a / b⌋."""
    return a % b if isinstance(a, int) and isinstance(b, int) else tidy(expr(a) % b)


def leaves(tree: IntTree) -> Iterator[Int]:
    """The leaves, from left to right."""
    if isinstance(tree, tuple):
        for part in tree:
            yield from leaves(part)
    else:
        yield tree


def flatten(tree: IntTree) -> tuple[Int, ...]:
    """The leaves as a tuple."""
    return tuple(leaves(tree))


def product(tree: IntTree) -> Int:
    """The product of all leaves; 1 for an empty tuple."""
    return reduce(times, leaves(tree), 1)


def depth(tree: IntTree) -> int:
    """The nesting depth of tuples; 0 for a leaf."""
    return 1 + max(map(depth, tree), default=0) if isinstance(tree, tuple) else 0


def rank(tree: IntTree) -> int:
    """The number of modes; 1 for a leaf."""
    return len(tree) if isinstance(tree, tuple) else 1


def congruent(a: IntTree, b: IntTree) -> bool:
    """Whether both have the same nesting."""
    return weakly_congruent(a, b) and weakly_congruent(b, a)


def weakly_congruent(a: IntTree, b: IntTree) -> bool:
    """Whether the nesting of `b` refines that of `a`: a leaf of `a` may stand for any tree."""
    if not isinstance(a, tuple):
        return True
    return isinstance(b, tuple) and len(a) == len(b) and all(map(weakly_congruent, a, b))


def elementwise(operation: Callable[[Int, Int], Int], a: IntTree, b: IntTree) -> IntTree:
    """`operation` leaf by leaf. Raises LayoutError where the trees are not congruent."""
    if isinstance(a, tuple) and isinstance(b, tuple) and len(a) == len(b):
        return tuple(elementwise(operation, x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, tuple) or isinstance(b, tuple):
        raise LayoutError("elementwise", f"{tree_text(a)} and {tree_text(b)} are not congruent")
    return operation(a, b)


def arithmetic_sum(a: IntTree, b: IntTree) -> IntTree:
    """The sum of two arithmetic tuples, entry by entry; a missing entry on the right, or a 0 for a tuple, counts as 0."""
    if isinstance(a, tuple) and isinstance(b, tuple):
        return tuple(arithmetic_sum(x, y) for x, y in zip_longest(a, b, fillvalue=0))
    if isinstance(a, tuple) or isinstance(b, tuple):
        if a == 0 or b == 0:
            return b if a == 0 else a
        raise LayoutError("sum", f"{tree_text(a)} and {tree_text(b)} are a number and a tuple")
    return plus(a, b)


def tree_text(tree: IntTree) -> str:
    """In CuTe's notation: `((2,4),8)`; a tuple of one keeps its comma, `(4,)`."""
    if isinstance(tree, tuple):
        return f"({','.join(map(tree_text, tree))}{',' if len(tree) == 1 else ''})"
    return str(tree)
