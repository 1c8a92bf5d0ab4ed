"""Chains of views mean what NumPy's do; reshape, transpose, slices and pad in any order, read by the interpreter."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

from texpr.frontend import parse
from texpr.interp import run

Array = np.ndarray[Any, np.dtype[np.int32]]


def text_of(shape: tuple[int, ...]) -> str:
    """A shape, as arguments."""
    return ", ".join(map(str, shape))


class Chain:
    """A random chain of views: the expression in the language, and the array that it shows."""

    def __init__(self, seed: int, array: Array):
        self.random = Random(seed)
        self.array = array
        self.text = "A"
        self.lines: list[str] = []

    def step(self) -> None:
        """One more view around what there is; sometimes it is named by a `let`."""
        self.random.choice([self.slice, self.slice, self.transpose, self.reshape, self.pad])()
        if self.random.random() < 0.3:
            name = f"v{len(self.lines)}"
            self.lines.append(f"let {name} = {self.text}")
            self.text = name

    def slice(self) -> None:
        """A range, or an index that drops the dimension, in each dimension."""
        r = self.random
        parts: list[str] = []
        cuts: list[slice | int] = []
        for extent in self.array.shape:
            lo = r.randint(0, extent - 1)
            hi = r.randint(lo + 1, extent)
            kinds = [
                (f"{lo}", lo), (":", slice(None)), (f"{lo} :", slice(lo, None)), (f": {hi}", slice(None, hi)),
                (f"{lo} : {hi}", slice(lo, hi)), (f"{lo} : +{hi - lo}", slice(lo, hi)), (f": +{hi}", slice(None, hi)),
            ]  # fmt: skip
            part, cut = r.choice(kinds[1:] if len(parts) == 0 else kinds)
            parts.append(part)
            cuts.append(cut)
        self.text += f"[{', '.join(parts)}]"
        self.array = self.array[tuple(cuts)]

    def transpose(self) -> None:
        """All dimensions turned around, or in an order."""
        order = list(range(self.array.ndim))
        self.random.shuffle(order)
        if self.random.random() < 0.3:
            self.text, self.array = f"transpose({self.text})", self.array.transpose()
        else:
            self.text = f"transpose({self.text}, {text_of(tuple(order))})"
            self.array = self.array.transpose(order)

    def reshape(self) -> None:
        """Another shape with as many elements, ones included."""
        r = self.random
        rest, shape = self.array.size, list[int]()
        while rest > 1 and len(shape) < 3:
            shape.append(r.choice([d for d in range(1, rest + 1) if rest % d == 0]))
            rest //= shape[-1]
        shape.append(rest)
        self.text = f"reshape({self.text}, {text_of(tuple(shape))})"
        self.array = self.array.reshape(shape)

    def pad(self) -> None:
        """Some more elements on each side."""
        lo = [self.random.randint(0, 2) for _ in self.array.shape]
        hi = [self.random.randint(0, 2) for _ in self.array.shape]
        if self.array.size > 300:
            return
        widths = [f"({text_of(tuple(w))})" if len(w) > 1 else str(w[0]) for w in (lo, hi)]
        self.text = f"pad({self.text}, {widths[0]}, {widths[1]}, -7)"
        self.array = np.pad(self.array, list(zip(lo, hi, strict=True)), constant_values=-7)


def check(seed: int, steps: int) -> None:
    """The program that copies the view gives the array that NumPy shows."""
    random = Random(seed)
    shape = tuple(random.randint(1, 6) for _ in range(random.randint(1, 3)))
    array: Array = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
    chain = Chain(seed, array)
    for _ in range(steps):
        chain.step()
    names = [f"i{k}" for k in range(chain.array.ndim)]
    heads = " ".join(f"par {extent} |{name}| {{" for name, extent in zip(names, chain.array.shape, strict=True))
    index = ", ".join(names)
    program = f"""
        fn copy(A: i32[{text_of(shape)}]): i32[{text_of(chain.array.shape)}] {{
            {" ".join(chain.lines)}
            new y: i32[{text_of(chain.array.shape)}]
            {heads} y[{index}] = {chain.text}[{index}] {"}" * chain.array.ndim}
            return y
        }}"""
    found = run(parse(program)["copy"], {"A": array}, {})["y"]
    np.testing.assert_array_equal(np.asarray(found), chain.array, err_msg=program)


def test_chains() -> None:
    for seed in range(40):
        check(seed, 1 + seed % 4)


@pytest.mark.long
def test_many_chains() -> None:
    for seed in range(40, 1000):
        check(seed, 1 + seed % 6)


def test_symbolic_reshape() -> None:
    """Extents that are sizes: split, merged, and regrouped where a `where` says that they agree."""
    program = """
        fn f(A: i32[M, K], x: i32[M * K]): i32[M, K] where K % 4 == 0, M % 2 == 0 {
            let flat = reshape(A, M * K)
            let tiles = reshape(A, M / 2, 2, K / 4, 4)
            let other = reshape(x, (M / 2, 2 * K))
            new y: i32[M, K]
            par M |i| { par K |k| {
                y[i, k] = flat[i * K + k] + 1000 * tiles[i / 2, i % 2, k / 4, k % 4] + 1000000 * other[i / 2, i % 2 * K + k]
            } }
            return y
        }"""
    A = np.arange(6 * 8, dtype=np.int32).reshape(6, 8)
    found = run(parse(program)["f"], {"A": A, "x": A.reshape(-1) + 1}, {})["y"]
    np.testing.assert_array_equal(np.asarray(found), A * 1001 + (A + 1) * 1000000)


def test_writes_through_views() -> None:
    program = """
        fn f(inout A: i32[M, N], inout B: i32[M, N]) where N % 2 == 0 {
            let T = transpose(A)
            let pairs = reshape(B, M * (N / 2), 2)
            par N |j| { let column = T[j, :] par M |i| { column[i] = 10 * i + j } }
            par M * (N / 2) |p| { pairs[p, 1] = p }
        }"""
    A, B = np.zeros((3, 4), np.int32), np.zeros((3, 4), np.int32)
    found = run(parse(program)["f"], {"A": A, "B": B}, {})
    np.testing.assert_array_equal(found["A"], 10 * np.arange(3)[:, None] + np.arange(4))
    wanted = np.zeros((6, 2), np.int32)
    wanted[:, 1] = np.arange(6)
    np.testing.assert_array_equal(found["B"], wanted.reshape(3, 4))


def test_a_view_that_is_reshaped_again_is_reshaped_once() -> None:
    """However often: its index does not grow, and back in its own shape it is what it was."""
    text = "fn f(x: i32[a, b, c]): i32[a, b, c] {\n    new y: i32[a, b, c]\n    let r0 = x\n"
    for at in range(40):
        text += f"    let r{at + 1} = reshape(r{at}, {('(c, b, a)', '(b, a * c)', '(a, b, c)')[at % 3]})\n"
    text += "    par c, b, a |i, j, k| { y[k, j, i] = r40[i, j, k] }\n    return y\n}\n"
    (function,) = parse(text).functions
    x = np.arange(2 * 3 * 5, dtype=np.int32).reshape(2, 3, 5)
    np.testing.assert_array_equal(run(function, {"x": x})["y"], x.reshape(5, 3, 2).transpose())
