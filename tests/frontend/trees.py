"""Random surface trees: everything that can be written, whether or not it makes sense."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from texpr.frontend import tree as t
from texpr.frontend.tokens import KEYWORDS

NAMES = st.sampled_from(
    ["x", "A", "n", "i", "i'1", "f32", "max", "in", "for", "reduce", "scan", "stride", "injective", "monotone", "meaning", "_1"]
)
IDENTS = NAMES.map(t.Ident)
INTEGERS = st.integers(0, 2**64 - 1)
FLOATS = st.floats(0.0, allow_infinity=False, allow_nan=False)
NUMBERS = st.one_of(INTEGERS, FLOATS).map(t.Number)
STRINGS = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=5)
_ARITHMETIC = ["or", "and", "==", "!=", "<", "<=", ">", ">=", "+", "-", "*", "/", "%", "**"]


def tuples(items: SearchStrategy[t.Exp], least: int = 0, most: int = 3) -> SearchStrategy[tuple[t.Exp, ...]]:
    """Tuples of `least` to `most` items."""
    return st.lists(items, min_size=least, max_size=most).map(tuple)


def _grow(exps: SearchStrategy[t.Exp]) -> SearchStrategy[t.Exp]:
    keys = st.lists(st.tuples(IDENTS, exps), max_size=2).map(tuple)
    return st.one_of(
        st.builds(t.Unary, st.sampled_from(["-", "not"]), exps),
        st.builds(t.Binary, st.sampled_from(_ARITHMETIC), exps, exps),
        st.builds(t.Call, IDENTS, tuples(exps), keys),
        st.builds(t.Subscript, exps, tuples(st.one_of(exps, slices(exps)))),
        tuples(exps, 2).map(t.Tuple),
    )


def slices(exps: SearchStrategy[t.Exp]) -> SearchStrategy[t.Slice]:
    """`lo : hi` and `lo : +length`, with parts missing."""
    parts = st.none() | exps
    return st.builds(t.Slice, parts, parts, st.none()) | st.builds(t.Slice, parts, st.none(), exps)


LEAVES: SearchStrategy[t.Exp] = st.one_of(
    NAMES.map(t.Name), NUMBERS, st.sampled_from(["inf", "nan", "true", "false"]).map(t.Constant)
)
EXPS: SearchStrategy[t.Exp] = st.recursive(LEAVES, _grow, max_leaves=12)
# What `return` and binds take as it is: a tuple would be several values.
SINGLE = EXPS.filter(lambda e: not isinstance(e, t.Tuple))
# A place that a statement can start with: its text begins with a name or a parenthesis.
PLACES = NAMES.map(t.Name) | st.builds(
    t.Subscript, NAMES.map(t.Name) | st.builds(t.Call, IDENTS, tuples(EXPS)), tuples(st.one_of(EXPS, slices(EXPS)))
)

WORDS = st.one_of(
    st.lists(st.sampled_from(["shared", "grid.y", "if.then", "seq", "x"]), min_size=1, max_size=2).map(" ".join),
    st.sampled_from(["128B", "1 warp", "warp 2", "2 2"]),
).map(t.Word)
_SIMPLE: SearchStrategy[t.DirectiveValue] = st.one_of(
    WORDS, STRINGS.map(t.Text), st.one_of(st.integers(-(2**63), 2**63), st.floats(-1e9, 1e9)).map(t.Number)
)


def _arguments(values: SearchStrategy[t.DirectiveValue]) -> SearchStrategy[tuple[t.Argument, ...]]:
    keys = st.none() | st.sampled_from(["at", "in", "stages", "x"])
    return st.lists(st.builds(t.Argument, keys, values), max_size=3).map(tuple)


def _compose(terms: SearchStrategy[t.Exp]) -> SearchStrategy[t.Exp]:
    return st.one_of(
        terms.map(lambda e: t.Unary("-", e)),
        st.builds(t.Binary, st.sampled_from(["+", "-", "*", "/", "%"]), terms, terms),
        st.builds(t.Call, IDENTS, tuples(terms)),
    )


TERMS = _compose(st.recursive(st.one_of(NAMES.map(t.Name), INTEGERS.map(t.Number)), _compose, max_leaves=6))
# A minus sign before a number belongs to the number.
ARITHMETIC = TERMS.filter(lambda e: not (isinstance(e, t.Unary) and isinstance(e.arg, t.Number)))
VALUES = st.recursive(_SIMPLE | ARITHMETIC, lambda values: _arguments(values).map(t.Group), max_leaves=5)
PRAGMAS = st.lists(st.builds(t.Directive, IDENTS, _arguments(VALUES)), max_size=2).map(tuple)
DIRECTIVES = st.builds(t.Directive, IDENTS, _arguments(VALUES), st.lists(IDENTS, max_size=2).map(tuple))
TYPES = st.builds(t.TypeExp, IDENTS, tuples(EXPS))


@st.composite
def binds(draw: st.DrawFn) -> t.Bind:
    """Binds and updates of one place or several."""
    op = draw(st.none() | st.sampled_from(["+", "-", "*", "max", "and", "or", "f"]).map(t.Ident))
    targets = draw(st.lists(PLACES, min_size=1, max_size=3).map(tuple))
    values = draw(st.lists(SINGLE, min_size=1, max_size=3).map(tuple))
    return t.Bind(targets, op, values)


@st.composite
def loops(draw: st.DrawFn, bodies: SearchStrategy[tuple[t.Statement, ...]]) -> t.Loop:
    """Loops with every part."""
    kind = draw(st.sampled_from(["par", "seq"]))
    fully = kind == "par" and draw(st.booleans())
    label = draw(st.none() | st.sampled_from(["rows", "if"]))
    reduce, scan = (draw(st.lists(IDENTS, max_size=2).map(tuple)) for _ in range(2))
    return t.Loop(kind, draw(EXPS), draw(IDENTS), draw(bodies), fully, label, reduce, draw(PRAGMAS), scan=scan)


def _blocks(statements: SearchStrategy[t.Statement]) -> SearchStrategy[t.Statement]:
    bodies = st.lists(statements, max_size=3).map(tuple)
    return st.one_of(
        loops(bodies),
        st.builds(t.StaticFor, IDENTS, EXPS, EXPS, bodies),
        st.builds(t.If, EXPS, bodies, bodies),
        st.builds(t.Instruct, IDENTS, tuples(EXPS), bodies, st.booleans()),
    )


FLAT: SearchStrategy[t.Statement] = st.one_of(
    st.builds(t.New, IDENTS, TYPES, st.none() | EXPS),
    st.builds(t.Reg, IDENTS, TYPES, st.none() | EXPS),
    st.builds(t.Reg, IDENTS, st.none(), EXPS),
    st.builds(t.Asm, st.sampled_from(["mma.sync", 'add {a}, "{b}";']), tuples(EXPS)),
    st.builds(t.Let, st.lists(IDENTS, min_size=1, max_size=3).map(tuple), EXPS),
    binds(),
    st.builds(t.Anchor, EXPS),
    st.builds(t.Call, IDENTS, tuples(EXPS)).map(t.CallStatement),
)
STATEMENTS = st.recursive(FLAT, _blocks, max_leaves=5)


@st.composite
def bodies(draw: st.DrawFn) -> tuple[t.Statement, ...]:
    """Bodies of functions: statements and perhaps a `return`."""
    statements = tuple(draw(st.lists(STATEMENTS, max_size=3)))
    values = draw(st.lists(SINGLE, max_size=2).map(tuple))
    return (*statements, t.Return(values)) if values else statements


PARAMS = st.lists(
    st.one_of(
        st.builds(t.Param, IDENTS, TYPES, st.booleans(), st.none() | tuples(EXPS), st.none() | INTEGERS.map(t.Number)),
        st.builds(t.ConstParam, IDENTS, IDENTS, st.none() | EXPS),
    ),
    max_size=3,
).map(tuple)
ASSUMES = st.one_of(
    st.builds(t.AssumeRange, IDENTS, EXPS, EXPS), st.builds(t.AssumeInjective, IDENTS), st.builds(t.AssumeMonotone, IDENTS)
)
RESULTS = st.builds(t.TypeExp, IDENTS, tuples(EXPS), st.none() | INTEGERS.map(t.Number))
FNS = st.builds(
    t.Fn, IDENTS, PARAMS, st.lists(RESULTS, max_size=2).map(tuple), bodies(),
    tuples(EXPS), st.lists(ASSUMES, max_size=2).map(tuple), PRAGMAS,
)  # fmt: skip
COMBINES = st.builds(t.Combine, IDENTS, PARAMS, TYPES, EXPS, bodies())
RAW = st.sampled_from(["(4, 8)", "(2@v, 1) : x", '"a;b" c', "∘ é"])
INSTRS = st.builds(
    t.Instr, IDENTS, PARAMS, bodies(),
    st.lists(st.tuples(IDENTS, RAW), max_size=2).map(tuple),
    st.lists(st.tuples(STRINGS, STRINGS), max_size=2).map(tuple),
    st.lists(RAW, max_size=2).map(tuple),
    st.lists(RAW.map(t.Ident), max_size=2).map(tuple),
)  # fmt: skip
SCHEDULES = st.builds(t.Schedule, IDENTS, st.none() | STRINGS, st.none() | IDENTS, st.lists(DIRECTIVES, max_size=3).map(tuple))
TREES = st.lists(st.one_of(FNS, COMBINES, INSTRS, SCHEDULES), max_size=2).map(tuple).map(t.Tree)

assert not KEYWORDS & {"in", "for", "reduce", "scan", "stride", "injective", "monotone", "meaning"}
