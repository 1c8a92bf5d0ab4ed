"""Programs to schedule: the gallery, random ones, and some with what these lack; with arguments to run each on."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tests.properties.generate import Generator

from references import EXAMPLES, Example
from texpr.driver import fix
from texpr.frontend import parse
from texpr.ir.program import Function
from texpr.support.record import Record

Arrays = Mapping[str, NDArray[Any]]


class Run(Record, dict=True):
    """Arguments, and sizes that they do not tell."""

    arrays: Arrays
    sizes: Mapping[str, int]


class Subject(Record, dict=True):
    """A program, and what to run it on. `ulp`, `floor`: how near its results must be (0: equal), as in `references`."""

    name: str
    text: str
    function: Function
    runs: tuple[Run, ...]
    ulp: int = 0
    floor: float = 0.0

    def fixed(self, run: Run) -> Subject:
        """The same with the sizes of one of its runs fixed at build."""
        function, _ = fix(self.function, run.sizes)
        return Subject(self.name, self.text, function, (Run(run.arrays, {}),), self.ulp, self.floor)


EXTRA = """
-- a triangle, summed in order
fn triangle(x: i32[n, n]): i32[n] {
    new y: i32[n]
    par n |i| {
        y[i] = 0
        seq i + 1 |j| { y[i] = 2 * y[i] + x[i, j] }
    }
    return y
}
-- a triangle of independent elements, with a copy of what is below it
fn below(x: i32[n, n], w: i32[n]): i32[n, n] {
    new y: i32[n, n]
    par n |i| { par n |j| { y[i, j] = 0 } }
    par n |i| { par i + 1 |j| { y[i, j] = x[j, i] + w[i] * w[j] } }
    return y
}
-- multiples of 32 everywhere
fn even(x: i32[n, m]): i32[m, n]
    where n % 32 == 0, m % 32 == 0
{
    new y: i32[m, n]
    par m |j| { par n |i| { y[j, i] = x[i, j] + i32(i % 32) } }
    return y
}
-- values named by `let`, and a test of data
fn chosen(x: i32[n, m], w: i32[m], inout t: i32[n]): i32[n] {
    new y: i32[n]
    par n |i| {
        new best: i32
        best = -100
        seq m |j| {
            let v = x[i, j] * w[j]
            if v > best and w[j] > 0 { best = v } else { t[i] += 1 }
        }
        y[i] = best
        if t[i] > 1 { y[i] += t[i] } else { t[i] = 7 }
    }
    return y
}
-- a sum of products over two loops that free its order
fn product(x: i32[n, k], w: i32[k, m]): i32[n, m] {
    new y: i32[n, m]
    par n |i| { par m |j| {
        new acc: i32
        acc = 0
        seq k |l| reduce(acc) { acc += x[i, l] * w[l, j] }
        y[i, j] = acc
    } }
    return y
}
-- iterations that meet in a row, at once or in order
fn columns(x: i32[n, m]): (i32[m], i32[m]) {
    new y: i32[m]
    new z: i32[m]
    par m |j| { y[j] = 0  z[j] = -1000 }
    par m |j| { par n |i| reduce(y) { y[j] += x[i, j] } }
    seq n |i| reduce(z) { par m |j| { z[j] max= x[i, j] } }
    return (y, z)
}
-- warps that run together, each over a row
fn warps(x: i32[n, 32]): i32[n, 32] {
    new y: i32[n, 32]
    par n |i| {
        new s: i32[32]
        fully par 32 |lane| { s[lane] = x[i, lane] * 3 }
        fully par 32 |lane| { y[i, lane] = s[31 - lane] + s[lane] }
    }
    return y
}
-- what was there is read and written, a step of time after the other
fn steps(inout a: i32[n, m], g: i32[m])
    where m >= 1
{
    seq 3 |t| {
        par n |i| { par m |j| { a[i, j] = a[i, j] + g[j] * i32(t) } }
        par n |i| { new s: i32  s = 0  seq m |j| reduce(s) { s += a[i, j] }  if s > 5 { a[i, 0] = s } }
    }
}
-- a window of neighbours, guarded at the rim
fn window(x: i32[n]): i32[n] {
    new y: i32[n]
    par n |i| {
        y[i] = 0
        seq 5 |d| { if i + d >= 2 and i + d - 2 < n { y[i] += (d + 1) * x[i + d - 2] } }
    }
    return y
}
-- a scalar that all iterations read, and a local for two nests
fn shifted(a: i32, x: i32[n]): i32[n] {
    new y: i32[n]
    new v: i32[n]
    new s: i32
    s = a * 2
    par n |i| { v[i] = x[i] + s }
    par n |i| { y[i] = v[n - 1 - i] * a - s }
    return y
}
-- a tile in a local, filled and read in another order
fn tiles(x: i32[n, 8]): i32[n, 8] {
    new y: i32[n, 8]
    par n |i| {
        new t: i32[8, 4]
        par 8 |j| { par 4 |k| { t[j, k] = x[i, j] * i32(k + 1) } }
        par 8 |j| {
            y[i, j] = 0
            seq 4 |k| { y[i, j] += t[7 - j, 3 - k] }
        }
    }
    return y
}
"""
"""Programs with what the gallery lacks. `where` of `even` is kept by the sizes below."""

_SIZES: Mapping[str, tuple[Mapping[str, int], ...]] = {
    "even": ({"n": 0, "m": 32}, {"n": 32, "m": 32}, {"n": 64, "m": 32}),
    "steps": ({"n": 0, "m": 2}, {"n": 1, "m": 1}, {"n": 7, "m": 5}),
    "warps": ({"n": 0}, {"n": 1}, {"n": 5}),
    "product": ({"n": 0, "m": 2, "k": 3}, {"n": 2, "m": 3, "k": 0}, {"n": 1, "m": 1, "k": 1}, {"n": 7, "m": 5, "k": 11}),
}
_ANY = ({"n": 0, "m": 3}, {"n": 1, "m": 1}, {"n": 7, "m": 5}, {"n": 13, "m": 11})


def _arrays(function: Function, sizes: Mapping[str, int]) -> dict[str, NDArray[Any]]:
    """Small integers for every parameter."""
    numbers = np.random.default_rng(sum(sizes.values()))
    known = {s: sizes[s.name] for s in function.sizes}
    return {
        p.name: np.asarray(numbers.integers(-3, 5, tuple(e.evaluate(known) for e in p.shape)), np.int32)
        for p in function.params
    }


def _plain(name: str, text: str, function: Function, wanted: tuple[Mapping[str, int], ...]) -> Subject:
    names = {s.name for s in function.sizes}
    chosen = [{k: v for k, v in sizes.items() if k in names} for sizes in wanted]
    return Subject(name, text, function, tuple(Run(_arrays(function, s), s) for s in chosen))


def _example(example: Example) -> Subject:
    consts, _ = example.split(example.small[-1])
    runs: list[Run] = []
    for sizes in example.small:
        mine, rest = example.split(sizes)
        if mine == consts and prod(rest.values()) <= 3000:
            runs.append(Run(example.make(np.random.default_rng(1), sizes), rest))
    text = example.path.read_text(encoding="utf-8")
    function = parse(text, example.path.name, consts)[example.function]
    return Subject(example.name, text, function, tuple(runs), 2 * example.ulp, example.floor)


def gallery() -> tuple[Subject, ...]:
    """The programs of `examples/`."""
    return tuple(map(_example, EXAMPLES))


def extra() -> tuple[Subject, ...]:
    """The programs of `EXTRA`."""
    parts = [f"--{part}" for part in EXTRA.split("\n--")[1:]]
    found = [(text, parse(text, "extra.te").functions[0]) for text in parts]
    return tuple(_plain(f.name, text, f, _SIZES.get(f.name, _ANY)) for text, f in found)


@cache
def aligned() -> tuple[Subject, ...]:
    """Programs whose arrays engines may copy, at sizes that rows of whole chunks have."""
    text = (Path(__file__).parent / "engine_subjects.te").read_text(encoding="utf-8")
    sizes = [{"m": 8, "k": 4, "n": 0, "p": 2}, {"m": 4, "k": 8, "n": 4, "p": 1}, {"m": 12, "k": 36, "n": 8, "p": 3}]
    return tuple(_plain(f.name, text, f, tuple(sizes)) for f in parse(text, "engine_subjects.te").functions)


@cache
def summed() -> tuple[Subject, ...]:
    """Programs of guarded and long sums, and of running values."""
    text = (Path(__file__).parent / "sum_subjects.te").read_text(encoding="utf-8")
    sizes = [{"n": 0, "m": 3}, {"n": 5, "m": 0}, {"n": 7, "m": 5}, {"n": 13, "m": 11}]
    return tuple(_plain(f.name, text, f, tuple(sizes)) for f in parse(text, "sum_subjects.te").functions)


def generated(seed: int) -> Subject:
    """A random program."""
    text = Generator(seed, "f").program()
    return _plain(f"random {seed}", text, parse(text, "random.te").functions[0], _ANY[:3])
