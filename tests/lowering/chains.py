"""Random programs of a block: locals of odd sizes and types that one step writes and later ones read, in loops and branches."""

from __future__ import annotations

import random

import numpy as np

from texpr.support.record import Mutable, field

TYPES = ("i32", "i64", "i16")


class _Writer(Mutable, dict=True):
    random: random.Random
    deepest: int = 2
    lines: list[str] = field(default_factory=list[str])
    count: int = 0

    def name(self, stem: str) -> str:
        self.count += 1
        return f"{stem}{self.count}"

    def steps(self, seen: list[tuple[str, int, str]], number: int, depth: int) -> None:
        """A few steps that read some of `seen` and make more; what a loop makes is gone behind it."""
        for _ in range(number):
            kind = self.random.random()
            if depth < self.deepest and kind < 0.2:
                self.lines.append(f"seq {self.random.choice(['2', '3', 'm'])} |{self.name('s')}| {{")
                self.steps(list(seen), self.random.randint(2, 3), depth + 1)
                self.lines.append("}")
            elif depth < self.deepest and kind < 0.3:
                self.lines.append("if m > 2 {")
                self.steps(list(seen), self.random.randint(1, 3), depth + 1)
                self.lines.append("}")
            else:
                self.step(seen)
        self.store(seen)

    def step(self, seen: list[tuple[str, int, str]]) -> None:
        """A local of a size of its own, made of one or two of the latest, read askew."""
        size, dtype, j = self.random.choice([33, 64, 100, 128, 161]), self.random.choice(TYPES), self.name("j")
        made = self.name("v")
        self.lines.append(f"new {made}: {dtype}[{size}]")
        self.lines.append(f"par {size} |{j}| {{ {made}[{j}] = {self.value(seen, j, dtype)} }}")
        if self.random.random() < 0.2:
            j = self.name("j")
            self.lines.append(f"par {size} |{j}| {{ {made}[{size} - 1 - {j}] += {self.value(seen, j, dtype)} }}")
        seen.append((made, size, dtype))

    def store(self, seen: list[tuple[str, int, str]]) -> None:
        j = self.name("j")
        self.lines.append(f"par 64 |{j}| {{ y[i, {j}] += {self.value(seen, j, 'i64')} }}")

    def value(self, seen: list[tuple[str, int, str]], j: str, dtype: str) -> str:
        terms = [f"{dtype}(x[i, ({j} + {self.random.randint(0, 9)}) % 64])"]
        for name, size, _ in self.random.sample(seen[-3:], min(len(seen), self.random.randint(1, 2))):
            at = self.random.choice([f"({j} + {self.random.randint(1, 90)}) % {size}", f"({size} - 1 - {j} % {size})"])
            terms.append(f"{dtype}({name}[{at}] % 13)")
        return " + ".join(terms)


def chain(seed: int) -> str:
    """The function `f` of one program."""
    writer = _Writer(random.Random(seed))
    writer.steps([], writer.random.randint(4, 7), 0)
    body = "\n".join(writer.lines)
    return f"fn f(x: i32[n, 64], inout y: i64[n, 64], count: i32[m]) where m > 0 {{\npar n |i| {{\n{body}\n}}\n}}"


def data(seed: int) -> dict[str, np.ndarray]:
    """Arguments of it."""
    numbers = np.random.default_rng(seed)
    x = numbers.integers(0, 9, (2, 64)).astype(np.int32)
    return {"x": x, "y": np.zeros((2, 64), np.int64), "count": np.zeros(1 + seed % 3, np.int32)}
