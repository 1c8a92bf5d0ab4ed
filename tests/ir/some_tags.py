"""Tags of all kinds, over all kinds of numbers."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator

from hypothesis import strategies as st

from texpr.affine.expr import Expr, Sym, expr, maximum, minimum, number_of, sym, xor
from texpr.ir.program import Combiner
from texpr.ir.program.updates import UPDATES
from texpr.ir.proof.tags import (
    ELEMENTS,
    TURNS,
    End,
    Hole,
    Instance,
    Joined,
    Moved,
    Numbered,
    Parcel,
    Statement,
    Step,
    Tag,
    Tags,
    Turn,
)
from texpr.ir.value import Literal, Ref
from texpr.ir.value.types import F32

NAMES = (
    "n", "i", "i'1", "j'12", "box0.1", "box12.i'2.0", "A.0.phase", "x_1", "λ", "min", "max", "xor",
    "element", "turn", "at", "groups", "where", "event", "signal", "before", "bytes", "box", "partly",
)  # fmt: skip
"""As loops, sizes and boxes may be called; words of the text among them."""

FAR = Combiner("add", Sym("a"), Sym("b"), F32, Literal(0.0, F32), Ref(Sym("a"), F32))
"""A user's, which is called as what is none of a user's."""

Some = st.SearchStrategy


def numbers() -> Some[Expr]:
    """Index expressions: huge ones, quotients by what is not 0, swizzles, and numbers that data say."""
    plain = st.sampled_from([*map(Sym, NAMES), *ELEMENTS, *TURNS]).map(expr)
    whole = (st.integers(-9, 9) | st.integers(-(10**40), 10**40)).map(expr)

    def more(below: Some[Expr]) -> Some[Expr]:
        two = st.tuples(below, below)
        divisor = st.integers(1, 10**20).map(expr) | st.integers(-7, -1).map(expr) | plain
        data = st.tuples(st.sampled_from(["n", "let'1", "x#12"]), st.lists(below, max_size=3))
        return st.one_of(
            two.map(lambda p: p[0] + p[1]),
            two.map(lambda p: p[0] - p[1]),
            st.tuples(below, plain | whole).map(lambda p: p[0] * p[1]),
            st.tuples(below, divisor).map(lambda p: p[0] // p[1]),
            st.tuples(below, divisor).map(lambda p: p[0] % p[1]),
            two.map(lambda p: minimum(*p)),
            st.lists(below, min_size=1, max_size=3).map(lambda some: maximum(*some)),
            st.tuples(below, below, st.integers(0, 7)).map(lambda p: xor(*p)),
            data.map(lambda p: expr(number_of(*p))),
        )

    return st.recursive(plain | whole, more, max_leaves=8)


def several(most: int = 3) -> Some[tuple[Expr, ...]]:
    """Some index expressions."""
    return st.lists(numbers(), max_size=most).map(tuple)


def statements(among: int) -> Some[Statement]:
    """That an event does a statement."""
    return st.builds(Statement, st.integers(0, among - 1), several(), several(), st.booleans())


def instances(among: int) -> Some[Instance]:
    """Signals or steps."""
    return st.builds(Instance, st.integers(0, among - 1), several(), several(2))


def tuples(of: Some[Instance]) -> Some[tuple[Instance, ...]]:
    """Some of them."""
    return st.lists(of, max_size=2).map(tuple)


def tags_of(numbered: Numbered) -> Some[Tags]:
    """Tags of as many events and signals."""
    actions, steps, signals = (len(each) for each in (numbered.statements, numbered.steps, numbered.signals))
    action = st.integers(0, actions - 1)
    update = st.sampled_from([*UPDATES, *numbered.combiners.values()])
    tag: Some[Tag | None] = st.one_of(
        st.none(),
        statements(actions),
        st.builds(Moved, action, several(), st.sampled_from([-1, 1]), several(), several()),
        st.builds(Hole, action, several()),
        st.builds(Step, several()),
        st.builds(Joined, update, st.lists(statements(actions), max_size=2).map(tuple), several()),
    )
    end = st.builds(End, instances(steps), tuples(instances(steps)))
    parcel = st.builds(Parcel, tuples(instances(signals)), several(2), numbers())
    seen = tuples(instances(max(steps, signals)))
    turn = st.builds(
        Turn, tuples(instances(signals)), seen, st.lists(parcel, max_size=2).map(tuple), several()
    )  # fmt: skip
    events, turns = len(numbered.events), len(numbered.signals)
    return st.builds(
        Tags,
        st.lists(tag, min_size=events, max_size=events).map(tuple),
        st.lists(st.lists(end, max_size=2).map(tuple), min_size=events, max_size=events).map(tuple),
        st.lists(turn, min_size=turns, max_size=turns).map(tuple),
    )


NUMBERED = Numbered(
    "f", ("y[i], line 1",) * 4, ("y[i]",) * 3, ("commit", "wait 0"), ("mbarrier wait full[0]",) * 3, {"add": FAR}
)
"""Enough to name."""

WORDS: tuple[Callable[[str], str], ...] = (
    lambda word: "", lambda word: f"{word} {word}", lambda word: "0", lambda word: "7777777", lambda word: "element 3",
    lambda word: "n⟨i⟩", lambda word: "[", lambda word: "]", lambda word: "event", lambda word: "i / 0", lambda word: "- -",
    lambda word: str(sym("k") % 4), lambda word: "xor(i, 3, 99999999999)", lambda word: "9" * 5000, lambda word: "ends",
)  # fmt: skip
"""What may stand in place of a word."""


def altered(text: str, rng: random.Random) -> Iterator[str]:
    """The text with one word, or line, changed, lost, or exchanged with another, or cut off."""
    words = re.split(r"(\s+|(?<=\W)|(?=\W))", text)
    lines = text.splitlines(keepends=True)
    at, to = (rng.randrange(len(words)) for _ in range(2))
    yield "".join((*words[:at], rng.choice(WORDS)(words[at]), *words[at + 1 :]))
    words[at], words[to] = words[to], words[at]
    yield "".join(words)
    at, to = (rng.randrange(len(lines)) for _ in range(2))
    yield "".join((*lines[:at], *lines[at + 1 :]))
    lines[at], lines[to] = lines[to], lines[at]
    yield "".join(lines)
    yield text[: rng.randrange(len(text))]
