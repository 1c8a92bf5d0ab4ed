"""Random programs of the language that are legal by construction, most of them, and what makes them worth running.

A program has sizes `n` and `m`, inputs `x: i32[n, m]`, `y: i32[n]`, `w: i32[m]`, and results of the same types. Each statement
of its body is a nest: `par`s outside, then `seq`s, inner `par`s, locals, guards, reductions, updates in place. A target's
subscripts hold the index of every `par` around it (that is what makes them independent), straight or reversed; reads are
anything affine, guarded by `select` where they may leave the array.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from texpr.support.record import Mutable, Record, field

SIZES = ("n", "m")


class Facts(Mutable, dict=True):
    """What a generated program has in it."""

    depth: int = 0
    guards: int = 0
    reductions: int = 0
    locals: int = 0
    sequential: int = 0
    inner_pars: int = 0
    statements: int = 0
    reads_of_written: int = 0


class Array(Record, dict=True):
    name: str
    shape: tuple[str, ...]
    writable: bool = True
    level: int = 0


class Index(Record, dict=True):
    name: str
    extent: str
    parallel: bool


class Generator(Mutable, dict=True):
    """One program from one seed; with `spoil`, one of its nests is wrong in that way."""

    seed: int
    name: str = "f"
    spoil: str = ""
    facts: Facts = field(default_factory=Facts)

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.count = 0
        self.written: set[str] = set()
        self.targets: dict[str, str] = {}

    def program(self) -> str:
        """The text of a program with one function `f`."""
        results = [Array("p", ("n", "m")), Array("q", ("n",)), Array("r", ("m",))]
        inputs = [Array("x", ("n", "m"), False), Array("y", ("n",), False), Array("w", ("m",), False)]
        arrays = [*inputs, *results]
        lines = [f"new {a.name}: i32[{', '.join(a.shape)}]" for a in results]
        for a in results:
            lines += self._fill(a)
        for _ in range(self.random.randint(1, 3)):
            lines += self._top(arrays)
        body = "\n".join(f"    {line}" for line in lines)
        return (
            f"fn {self.name}(x: i32[n, m], y: i32[n], w: i32[m]): (i32[n, m], i32[n], i32[m]) {{\n"
            f"{body}\n    return (p, q, r)\n}}\n"
        )

    def _fill(self, array: Array) -> Iterator[str]:
        names = [self._fresh("i") for _ in array.shape]
        head = " ".join(f"par {e} |{i}| {{" for e, i in zip(array.shape, names, strict=True))
        source = {"p": "x", "q": "y", "r": "w"}[array.name]
        subscript = ", ".join(names)
        yield f"{head} {array.name}[{subscript}] = {source}[{subscript}]" + " }" * len(names)

    def _fresh(self, base: str) -> str:
        self.count += 1
        return f"{base}{self.count}"

    def _top(self, arrays: list[Array]) -> Iterator[str]:
        kind = self.random.random()
        if kind < 0.15:
            yield from self._whole_reduction(arrays)
            return
        if kind < 0.3:
            self.facts.sequential += 1
            index = Index(self._fresh("t"), str(self.random.randint(1, 3)), False)
            yield f"seq {index.extent} |{index.name}| {{"
            for _ in range(self.random.randint(1, 2)):
                yield from self._indent(self._nest(arrays, (index,), 1))
            yield "}"
            return
        yield from self._nest(arrays, (), 0)

    def _indent(self, lines: Iterator[str]) -> Iterator[str]:
        for line in lines:
            yield f"    {line}"

    def _whole_reduction(self, arrays: list[Array]) -> Iterator[str]:
        """A sum over everything, at the top of the program."""
        self.facts.reductions += 1
        name = self._fresh("s")
        yield f"new {name}: i32"
        yield f"{name} = 0"
        loops = self.random.choice([("n",), ("m",), ("n", "m")])
        indices = tuple(Index(self._fresh("i"), e, True) for e in loops)
        head = " ".join(f"par {i.extent} |{i.name}| reduce({name}) {{" for i in indices)
        update = self.random.choice(["+=", "max=", "min="])
        yield f"{head} {name} {update} {self._value(arrays, indices, 2)}" + " }" * len(indices)
        index = Index(self._fresh("i"), "n", True)
        yield f"par n |{index.name}| {{ q[{index.name}] += {name} }}"

    def _nest(self, arrays: list[Array], around: tuple[Index, ...], depth: int) -> Iterator[str]:
        """A `par` band with a body in it."""
        outer = [Index(self._fresh("i"), e, True) for e in self.random.choice([("n",), ("m",), ("n", "m"), ("m", "n")])]
        indices = (*around, *outer)
        self.facts.depth = max(self.facts.depth, len(indices))
        fitting = [a for a in arrays if a.writable and self._fits(a, outer)]
        chosen = self.random.sample(fitting, min(len(fitting), self.random.randint(1, 2)))
        self.targets = {a.name: self._own(a, outer) for a in chosen}
        if self.spoil:
            self._spoil(outer)
        arrays = [a for a in arrays if a.name not in self.targets]
        for level, index in enumerate(outer):
            yield "    " * level + f"par {index.extent} |{index.name}| {{"
        pad = "    " * len(outer)
        for line in self._body(arrays, indices, depth + 1):
            yield pad + line
        for level in reversed(range(len(outer))):
            yield "    " * level + "}"

    def _body(self, arrays: list[Array], indices: tuple[Index, ...], depth: int) -> Iterator[str]:
        local: list[Array] = []
        if self.random.random() < 0.75:
            self.facts.locals += 1
            shape = self.random.choice([(), (), ("5",), ("40",), ("m",), ("3", "4")])
            made = Array(self._fresh("v"), shape, level=len(indices))
            yield f"new {made.name}: i32" + (f"[{', '.join(shape)}]" if shape else "")
            yield from self._start(made, [*arrays, *local], indices)
            local.append(made)
        for _ in range(self.random.randint(1, 3)):
            yield from self._statement(arrays, local, indices, depth)
        if local and self.random.random() < 0.8:
            yield from self._bind(arrays, local, indices, force_local_read=True)

    def _start(self, made: Array, arrays: list[Array], indices: tuple[Index, ...]) -> Iterator[str]:
        if not made.shape:
            yield f"{made.name} = {self._value(arrays, indices, 1)}"
            return
        own = [Index(self._fresh("d"), e, True) for e in made.shape]
        word = self.random.choice(["par", "par", "seq"])
        head = " ".join(f"{word} {i.extent} |{i.name}| {{" for i in own)
        subscript = ", ".join(i.name for i in own)
        yield f"{head} {made.name}[{subscript}] = {self._value(arrays, (*indices, *own), 1)}" + " }" * len(own)

    def _statement(self, arrays: list[Array], local: list[Array], indices: tuple[Index, ...], depth: int) -> Iterator[str]:
        kind = self.random.random()
        scalars = [a for a in local if not a.shape]
        vectors = [a for a in local if a.shape]
        if kind < 0.2 and depth < 4:
            self.facts.sequential += 1
            extent = self.random.choice(["2", "3", "m", *(f"{i.name} % 3 + 1" for i in indices[-1:])])
            index = Index(self._fresh("k"), extent, False)
            yield f"seq {extent} |{index.name}| {{"
            yield from self._indent(self._statement(arrays, local, (*indices, index), depth + 1))
            yield "}"
        elif kind < 0.4 and scalars:
            self.facts.reductions += 1
            scalar = self.random.choice(scalars)
            index = Index(self._fresh("e"), self.random.choice(["n", "m", "6"]), True)
            yield f"par {index.extent} |{index.name}| reduce({scalar.name}) {{"
            update = self.random.choice(["+=", "max=", "min="])
            others = [a for a in [*arrays, *local] if a is not scalar]
            yield f"    {scalar.name} {update} {self._value(others, (*indices, index), 2)}"
            yield "}"
        elif kind < 0.7 and vectors:
            yield from self._inner_par(arrays, local, self.random.choice(vectors), indices)
        elif kind < 0.8:
            self.facts.guards += 1
            yield f"if {self._condition(indices)} {{"
            yield from self._indent(self._bind(arrays, local, indices))
            yield "}"
        else:
            yield from self._bind(arrays, local, indices)

    def _inner_par(self, arrays: list[Array], local: list[Array], vector: Array, indices: tuple[Index, ...]) -> Iterator[str]:
        """A `par` over a local array, reading others, or itself at the same place."""
        self.facts.inner_pars += 1
        own = tuple(Index(self._fresh("e"), e, True) for e in vector.shape)
        others = [a for a in [*arrays, *local] if a is not vector]
        head = " ".join(f"par {i.extent} |{i.name}| {{" for i in own)
        subscript = ", ".join(i.name for i in own)
        if self.random.random() < 0.5:
            subscript = ", ".join(f"{i.extent} - 1 - {i.name}" for i in own)
        update = self.random.choice(["=", "+=", "max="])
        yield f"{head} {vector.name}[{subscript}] {update} {self._value(others, (*indices, *own), 2)}" + " }" * len(own)

    def _bind(
        self, arrays: list[Array], local: list[Array], indices: tuple[Index, ...], force_local_read: bool = False
    ) -> Iterator[str]:
        """A bind of a result at the place of this iteration, or of a local scalar."""
        self.facts.statements += 1
        scalars = [a for a in local if not a.shape]
        if scalars and (not self.targets or self.random.random() < 0.3) and not force_local_read:
            name = self.random.choice(scalars).name
            yield f"{name} = {self._value([*arrays, *local], indices, 2)}"
            return
        if not self.targets:
            return
        target = self.random.choice(sorted(self.targets))
        update = self.random.choice(["=", "=", "+=", "max=", "-="])
        value = self._value([*arrays, *local], indices, 2)
        if force_local_read:
            value = f"{value} + {self._read(self.random.choice(local), indices)}"
        if self.random.random() < 0.3:
            again = self.random.choice(sorted(self.targets))
            value = f"{value} - {again}[{self.targets[again]}]"
        self.facts.reads_of_written += any(f"{name}[" in value for name in self.written)
        self.written.add(target)
        yield f"{target}[{self.targets[target]}] {update} {value}"

    def _fits(self, array: Array, pars: list[Index]) -> bool:
        """Whether the array has a dimension for the index of each `par` around, and no other."""
        return sorted(array.shape) == sorted(index.extent for index in pars)

    def _own(self, array: Array, pars: list[Index]) -> str:
        """Subscripts that hold every parallel index, straight or reversed."""
        by_extent = {i.extent: i.name for i in pars}
        names = [(by_extent[extent], extent) for extent in array.shape]
        return ", ".join(self.random.choice([name, name, f"{extent} - 1 - {name}"]) for name, extent in names)

    def _spoil(self, outer: list[Index]) -> None:
        """One subscript of one target made wrong, once: "race" (two iterations meet) or "bounds" (one steps out)."""
        name = self.random.choice(sorted(self.targets))
        index = self.random.choice(outer)
        wrong = {"race": f"{index.name} / 2", "bounds": f"{index.name} + 1"}[self.spoil]
        before = self.targets[name]
        self.targets[name] = ", ".join(wrong if index.name in part else part for part in before.split(", "))
        self.spoil = ""

    def _condition(self, indices: tuple[Index, ...]) -> str:
        index = self.random.choice(indices).name
        return self.random.choice(
            [f"{index} > 0", f"{index} < 3", f"{index} % 2 == 0", f"2 * {index} < n", f"{index} != 1 and {index} < m"]
        )

    def _value(self, arrays: list[Array], indices: tuple[Index, ...], depth: int) -> str:
        kind = self.random.random()
        if depth == 0 or kind < 0.25:
            return self._read(self.random.choice(arrays), indices) if arrays else "1"
        if kind < 0.35:
            return str(self.random.randint(-3, 7))
        if kind < 0.45:
            return f"i32({self.random.choice(indices).name})"
        if kind < 0.55:
            self.facts.guards += 1
            one, other = (self._value(arrays, indices, depth - 1) for _ in range(2))
            return f"select({self._condition(indices)}, {one}, {other})"
        operator = self.random.choice(["+", "-", "*", "max", "min"])
        one, other = (self._value(arrays, indices, depth - 1) for _ in range(2))
        if operator in ("max", "min"):
            return f"{operator}({one}, {other})"
        return f"({one} {operator} {other})"

    def _read(self, array: Array, indices: tuple[Index, ...]) -> str:
        """An element, anywhere that the text can show to be inside."""
        if not array.shape:
            return array.name
        guards: list[str] = []
        subscripts: list[str] = []
        for extent in array.shape:
            subscript, guard = self._subscript(extent, indices)
            subscripts.append(subscript)
            if guard:
                guards.append(guard)
        element = f"{array.name}[{', '.join(subscripts)}]"
        if not guards:
            return element
        self.facts.guards += 1
        return f"select({' and '.join(guards)}, {element}, {self.random.randint(0, 3)})"

    def _subscript(self, extent: str, indices: tuple[Index, ...]) -> tuple[str, str]:
        same = [i for i in indices if i.extent == extent]
        if same and self.random.random() < 0.6:
            name = self.random.choice(same).name
            return self.random.choice([(name, ""), (name, ""), (f"{extent} - 1 - {name}", ""), (f"{name} / 2", "")])
        name = self.random.choice(indices).name
        shift = self.random.choice(["", " + 1", " - 1", " * 2"])
        subscript = f"{name}{shift}"
        return subscript, f"{subscript} >= 0 and {subscript} < {extent}"
