"""Odd schedules by chance, over every engine and word of `stage`: refused with what would help, or right in every order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
from numpy.typing import NDArray
from tests.lowering.test_columns import CONV, conv_arrays
from tests.lowering.test_gathered_rows import GATHER
from tests.lowering.test_gathered_rows import case as table
from tests.schedule.laid import Laid, binary, integers, laid, wrong

from texpr.ir import kernel as k
from texpr.support.diagnostic import CompilerBug, TexprError

Inputs = tuple[dict[str, NDArray[Any]], dict[str, int]]

SUM = """
fn sums(A: {type}[P, M, K] align({align})): {type}[K]
    where {where}
{{
    new y: {type}[K]
    par K |k| {{
        new s: {type} = {zero}
        seq P |p| reduce(s) {{ seq M |i| reduce(s) {{ s += A[p, i, k] }} }}
        y[k] = s
    }}
    return y
}}"""

COPY = """
fn copy(A: {type}[P, M, K] align({align})): {type}[P, M, K]
    where {where}
{{
    new C: {type}[P, M, K]
    par P |p| {{ par M |i| {{ par K |k| {{ C[p, i, k] = A[p, {row}, k] }} }} }}
    return C
}}"""

TYPES = {"f32": "float32", "f16": "float16", "i32": "int32", "u8": "uint8", "f64": "float64", "i64": "int64"}
SIZES = {"f32": 4, "f16": 2, "i32": 4, "u8": 1, "f64": 8, "i64": 8}


class Boxes:
    """A program over three dimensions, and splits, merges, orders, fills, swizzles, boxes, clusters and rings by chance."""

    target = "sm_90a"

    def __init__(self, seed: int):
        self._random = random = Random(seed)
        self._type = random.choice(list(TYPES))
        self._chunk = 16 // SIZES[self._type]
        self._words: list[str] = []
        self._loops: list[str] = []
        self._bulk: list[str] = []
        self._kind = random.choice(("load", "load", "sum", "store"))
        self._divides = random.choice((1, 1, 2, 4, 16))
        self._program()
        self._split()
        self._stage()

    @property
    def schedule(self) -> str:
        return "\n".join(self._words)

    def _program(self) -> None:
        random = self._random
        where = [f"K % {self._chunk} == 0" if random.random() < 0.95 else "K >= 0"]
        where += [f"M % {self._divides} == 0"] if self._divides > 1 else []
        row = random.choice(("M - 1 - i", "i / 2", "min(i + 1, M - 1)")) if random.random() < 0.15 else "i"
        self.text = (SUM if self._kind == "sum" else COPY).format(
            type=self._type,
            align=16 if random.random() < 0.97 else 8,
            where=", ".join(where),
            zero="0.0" if self._type[0] == "f" else "0",
            row=row,
        )

    def _split(self) -> None:
        random, names = self._random, ["p", "i", "k"]
        if random.random() < 0.4:
            names = ["m", "k"]
            self._words.append("merge(p, i) -> m")
        for name in names:
            if name != "k" and random.random() < 0.2:
                self._loops.append(name)
            else:
                self._box(name)
        random.shuffle(self._loops)
        if random.random() < 0.1:
            random.shuffle(self._bulk)
        self._words.append(f"reorder({', '.join((*self._loops, *self._bulk))})")

    def _box(self, name: str) -> None:
        random = self._random
        factor = self._chunk * random.choice((1, 2, 3, 4, 8)) if name == "k" else random.choice((1, 2, 3, 4, 5, 7, 8, 16))
        outer, box = f"{name}o", f"{name}b"
        self._words.append(f"split({name}, {factor}) -> ({outer}, {box})")
        self._loops.append(outer)
        if name != "k" and random.random() < 0.3:
            tile, phase = f"{name}t", f"{name}s"
            self._words.append(f"split({box}, {random.choice((1, 2, 3, 4, 8, 9, 16))}) -> ({tile}, {phase})")
            self._loops.append(phase)
            box = tile
        self._bulk.append(box)

    def _stage(self) -> None:
        random, at = self._random, self._loops[-1]
        more = [f"fill={random.choice(('zero', 'weak', 'nan'))}"] if self._kind != "store" and random.random() < 0.5 else []
        more += [f"swizzle={random.choice((32, 64, 128))}B"] if random.random() < 0.25 else []
        more += [f"box=({random.choice((2, 8, 15))}, 8, 16)"] if random.random() < 0.07 else []
        more += ["save_traffic=true"] if random.random() < 0.1 else []
        if self._kind != "sum" and random.random() < 0.25:
            first = self._loops[0]
            self._words += [f"bind({first}, grid.x)", f"cluster({first}, {random.choice((2, 3, 4))})"]
            more += [f"multicast={first}"] if self._kind == "load" and first != at else []
        buffer = "C" if self._kind == "store" else "A"
        self._words.append(f"stage({', '.join((buffer, f'at={at}', 'in=shared', 'via=tma', *more))}) -> T")
        if self._kind == "sum" and random.random() < 0.5:
            self._words.append(f"unguard({self._bulk[0]})")
        if random.random() < 0.25:
            self._words.append(f"pipeline({at}, stages={random.choice((2, 3))})")

    def inputs(self) -> Iterator[Inputs]:
        random = self._random
        for seed in range(2):
            rows = random.randint(0, 19) // self._divides * self._divides
            shape = (random.randint(0, 4), rows, self._chunk * random.randint(0, 6))
            numbers = integers(*shape, seed=seed) + (5 if self._type == "u8" else 0)
            yield {"A": numbers.astype(TYPES[self._type])}, dict(zip("PMK", shape, strict=True))


class Pixels:
    """The convolution, tiled at random; columns of pixels shared, moved, cut and iterations ahead."""

    target = "sm_90a"
    text = CONV

    def __init__(self, seed: int):
        random = Random(seed)
        pixels, filters, channels = random.choice((16, 24, 32, 40)), random.choice((8, 16)), random.choice((4, 8, 12, 16, 32))
        more = [random.choice(("fill=zero", "fill=weak", "fill=nan"))]
        more += [f"swizzle={channels * 4}B"] if channels in (8, 16, 32) and random.random() < 0.5 else []
        box = f"box=({random.choice((8, pixels // 2, pixels))}, {random.choice((4, 8, channels))})"
        more += [box] if random.random() < 0.3 else []
        blocks, along = random.choice((1, 2, 3, 4)), random.choice(("bf", "bf", "bf", "bm"))
        more += [f"multicast={along}"] if blocks > 1 else []
        tiles, steps = random.choice(("bm, bf", "bf, bm")), random.choice(("r, s, co", "r, s, co", "co, r, s"))
        outer, inner = tiles.split(", ")
        self.schedule = f"""
            merge(b, y) -> by  merge(by, x) -> m
            split(m, {pixels}) -> (bm, tm)  split(f, {filters}) -> (bf, tf)  split(c, {channels}) -> (co, ci)
            reorder({tiles}, {steps}, tm, tf, ci)
            bind({outer}, grid.y)  bind({inner}, grid.x)
            {f"cluster({along}, {blocks})" if blocks > 1 else ""}
            stage(X, at={steps.split(", ")[-1]}, in=shared, via=im2col, {", ".join(more)}) -> Xs
            bind(tm, block.y)  bind(tf, block.x)
            {random.choice(("", "", f"pipeline({steps.split(', ')[-1]}, stages=2)", "unguard(ci)"))}"""

    def inputs(self) -> Iterator[Inputs]:
        for images, channels, filters in ((2, 20, 17), (0, 4, 3)):
            yield conv_arrays(images, channels, filters)


class Rows:
    """Rows of a table by chance: as many, as wide, moved, iterations ahead."""

    target = "sm_100a"

    def __init__(self, seed: int):
        random = Random(seed)
        self._dtype = random.choice(("f32", "f16", "i32", "u8", "i64"))
        self.text = GATHER.replace("f32", self._dtype).replace("D % 4", f"D % {16 // SIZES[self._dtype]}")
        if self._dtype[0] != "f":
            self.text = self.text.replace("2.0 *", "2 *")
        count, width = random.randint(1, 20), random.choice((8, 16, 24, 48, 64, 100))
        more = [random.choice(("fill=zero", "fill=weak", "fill=nan"))]
        more += [f"swizzle={random.choice((32, 64, 128))}B"] if random.random() < 0.6 else []
        self.schedule = f"""
            split(i, {count}) -> (io, ii)  split(j, {width}) -> (jo, ji)
            reorder({random.choice(("io, jo", "jo, io"))}, ii, ji)
            stage(table, at={random.choice(("jo", "io"))}, in=shared, via=gather4, {", ".join(more)}) -> T"""

    def inputs(self) -> Iterator[Inputs]:
        for rows, names, width in ((9, 41, 64), (3, 0, 16), (40, 7, 112)):
            yield table(rows, names, width, TYPES[self._dtype])


Odd = Boxes | Pixels | Rows


def outcome(made: Odd, seed: int) -> str:
    """The code of a refusal that says why and what would help, or "right"."""
    try:
        found = laid(made.text, made.schedule, made.target)
    except TexprError as refusal:
        assert not isinstance(refusal, CompilerBug)
        first = refusal.diagnostics[0]
        assert first.message and first.help, (seed, first.code, first.message)
        return first.code
    assert copies(found), made.schedule
    for arrays, sizes in made.inputs():
        assert wrong(found, arrays, sizes, (None, seed % 7)) is None, (seed, made.text, made.schedule, sizes)
    return "right"


def copies(made: Laid) -> bool:
    return any(isinstance(s, k.CopyTensor | k.StoreTensor) for s in made.statements)


KINDS: dict[str, type[Odd]] = {"boxes": Boxes, "pixels": Pixels, "rows": Rows}


@pytest.mark.parametrize(("kind", "count", "right"), [("boxes", 24, 6), ("pixels", 5, 1), ("rows", 6, 2)])
def test_odd_schedules(kind: str, count: int, right: int) -> None:
    found = Counter(outcome(KINDS[kind](seed), seed) for seed in range(count))
    assert found["right"] >= right and found["right"] < count, found


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("part", range(4))
def test_many_odd_schedules(kind: str, part: int) -> None:
    seeds = range(1000 * part + 100, 1000 * part + 100 + {"boxes": 150, "pixels": 20, "rows": 30}[kind])
    found = Counter(outcome(KINDS[kind](seed), seed) for seed in seeds)
    assert found["right"] > len(seeds) // 6, found


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_nvcc_takes_what_is_right(kind: str) -> None:
    taken = 0
    for seed in range(500, 520):
        made = KINDS[kind](seed)
        if outcome(made, seed) == "right":
            binary(laid(made.text, made.schedule, made.target), made.target)
            taken += 1
    assert taken > 2
