"""Random index expressions, each as a tree of plain tuples: an oracle that shares no code with `texpr.affine`."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import strategies as st

from texpr.affine.expr import Expr, expr, maximum, minimum, sym, xor

SWIZZLES = ("xor0", "xor1", "xor2", "xor3")
"""XOR of so many low bits."""

Tree = tuple  # ("int", n) | ("sym", name) | (operator, Tree, Tree)


def trees(names: str, depth: int = 4) -> st.SearchStrategy[Tree]:
    """Trees over symbols called by the letters of `names`; half of all divisors are positive constants."""
    leaf = st.one_of(
        st.tuples(st.just("int"), st.integers(-9, 9)),
        st.tuples(st.just("sym"), st.sampled_from(names)),
        st.tuples(st.just("sym"), st.sampled_from(names)),
    )
    divisor = st.tuples(st.just("int"), st.sampled_from([1, 2, 3, 4, 4, 6, 8, 12]))

    def grow(below: st.SearchStrategy[Tree]) -> st.SearchStrategy[Tree]:
        return st.one_of(
            st.tuples(st.sampled_from("+-*"), below, below),
            st.tuples(st.just("*"), below, divisor),
            st.tuples(st.sampled_from("/%"), below, divisor),
            st.tuples(st.sampled_from("/%"), below, below),
            st.tuples(st.sampled_from(["min", "max"]), below, below),
            st.tuples(st.sampled_from(SWIZZLES), below, below),
        )

    return st.recursive(leaf, grow, max_leaves=2**depth)


def build(tree: Tree) -> Expr:
    """The tree as an expression. ZeroDivisionError where it divides by the constant 0."""
    match tree:
        case ("int", value):
            return expr(value)
        case ("sym", name):
            return sym(name)
        case (operator, left, right):
            a, b = build(left), build(right)
            match operator:
                case "+":
                    return a + b
                case "-":
                    return a - b
                case "*":
                    return a * b
                case "/":
                    return a // b
                case "%":
                    return a % b
                case "min":
                    return minimum(a, b)
                case "max":
                    return maximum(a, b)
                case str(swizzle):
                    return xor(a, b, SWIZZLES.index(swizzle))
    raise AssertionError(tree)


def value_of(tree: Tree, point: Mapping[str, int]) -> int:
    """The tree's value in Python's integers. ZeroDivisionError where it divides by 0."""
    match tree:
        case ("int", value):
            return value
        case ("sym", name):
            return point[name]
        case (operator, left, right):
            a, b = value_of(left, point), value_of(right, point)
            match operator:
                case "+":
                    return a + b
                case "-":
                    return a - b
                case "*":
                    return a * b
                case "/":
                    return a // b
                case "%":
                    return a % b
                case "min":
                    return min(a, b)
                case "max":
                    return max(a, b)
                case str(swizzle):
                    size = 2 ** SWIZZLES.index(swizzle)
                    return a - a % size + ((a % size) ^ (b % size))
    raise AssertionError(tree)
