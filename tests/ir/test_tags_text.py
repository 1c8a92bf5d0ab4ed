"""Tags as text and back."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.ir.some_tags import FAR, NUMBERED, altered, numbers, tags_of

from texpr.affine.expr import Expr, Sym, expr, number_of, sym
from texpr.ir.proof.tags import ELEMENTS, TURNS, Joined, Numbered, Parcel, Statement, Step, Tags, Turn
from texpr.ir.proof.tags_parse import parse_tags
from texpr.ir.proof.tags_text import tags_text
from texpr.support.diagnostic import TexprError

ONE = Numbered("f", ("y[i], line 3",), ("y[i], line 2",))


def again(tags: Tags, numbered: Numbered = NUMBERED) -> Tags:
    return parse_tags(tags_text(tags, numbered), numbered)


def one(value: Expr) -> Tags:
    return Tags((Statement(0, (value,)),), ((),))


def told(text: str, numbered: Numbered = ONE) -> str:
    """What is wrong with a text, with the line."""
    with pytest.raises(TexprError) as caught:
        parse_tags(text, numbered)
    (found,) = caught.value.diagnostics
    assert found.code == "E0581" and found.span is not None
    return f"{found.span.line}: {found.message}"


@settings(max_examples=40, deadline=None)
@given(tags_of(NUMBERED))
def test_parse_after_print_is_identity(tags: Tags) -> None:
    assert again(tags) == tags


@pytest.mark.long
@settings(max_examples=400, deadline=None)
@given(tags_of(NUMBERED))
def test_parse_after_print_is_identity_of_many(tags: Tags) -> None:
    assert again(tags) == tags


@settings(max_examples=300, deadline=None)
@given(numbers())
def test_numbers_survive(value: Expr) -> None:
    (found,) = again(one(value), ONE).events
    assert isinstance(found, Statement) and found.indices[0] is value


def test_a_name_of_data_is_no_plain_name() -> None:
    """`n⟨i⟩` is what `n` is of i, whatever else there may be that is written so."""
    data = expr(number_of("n", (sym("i"),)))
    (found,) = again(one(data), ONE).events
    assert isinstance(found, Statement) and found.indices[0].syms() == {Sym("i"), *data.syms()}
    assert again(one(expr(Sym("element"))), ONE) != again(one(expr(ELEMENTS[0])), ONE)


def test_a_users_update_is_told_from_others_of_its_name() -> None:
    numbered = Numbered("f", ("y", "y"), ("y",), combiners={"add": FAR})
    tags = Tags((Joined("add"), Joined(FAR)), ((), ()))
    assert "joins add " in tags_text(tags, numbered) and "joins combiner add " in tags_text(tags, numbered)
    assert again(tags, numbered) == tags


def test_a_line_tells_what_it_is_of() -> None:
    numbered = Numbered(
        "f", ("y[i], line 3", "top_own, line 4"), ("y[i], line 2",), (), ("mbarrier wait full[0] parity 0, line 5",)
    )
    turn = Turn(parcels=(Parcel((), (sym("n"),), 16 * expr(TURNS[0])),))
    tags = Tags((Statement(0, (sym("i"), sym("j") // 4), (sym("i"),), True), Step((expr(ELEMENTS[1]),))), ((), ()), (turn,))
    text = """\
tags f events 2 statements 1 steps 0 signals 1
-- statement 0: y[i], line 2
{
    event 0 does 0 [i, (j / 4)] at [i] partly  -- y[i], line 3
    event 1 step at [element 1]  -- top_own, line 4
    signal 0  -- mbarrier wait full[0] parity 0, line 5
        parcel box [n] bytes 16 * turn 0
}
"""
    assert tags_text(tags, numbered) == text and parse_tags(text, numbered) == tags


HEAD = "tags f events 1 statements 1 steps 0 signals 0 {\n"

WRONG = [
    ("", "1: the text ends too early"),
    ("tags g {", "1: expected tags of `f`"),
    ("tags f {", "1: expected `events`, found `{`"),
    (HEAD.replace("events 1", "events 2"), "1: the tags are of another plan: this one has 1 events"),
    (HEAD.replace("signals 0", "signals 9"), "1: the tags are of another plan: this one has 0 signals"),
    (HEAD, "2: the text ends too early"),
    (HEAD + "}", "2: expected `event`, found `}`"),
    (HEAD + "event 1\n}", "2: expected event 0"),
    (HEAD + "event 0 does 1 [] }", "2: there are 1 statements only, from 0 on"),
    (HEAD + "event 0 does -1 [] }", "2: there are 1 statements only, from 0 on"),
    (HEAD + "event 0\nlands 0 [] }", "3: there are 0 steps or signals only, from 0 on"),
    (HEAD + "event 0 does 0 [i / (2 - 2)] }", "2: expected what is not 0"),
    (HEAD + "event 0 does 0 [i % 0] }", "2: expected what is not 0"),
    (HEAD + "event 0 does 0 [xor(i, j, 65)] }", "2: expected how many bits are swizzled"),
    (HEAD + f"event 0 does 0 [{'9' * 2000}] }}", "2: expected a number of fewer digits"),
    (HEAD + f"event 0 does 0 [{'(' * 9000}i{')' * 9000}] }}", "2: what stands here is nested too deeply"),
    (HEAD + f"event 0 does 0 [{'- ' * 9000}i] }}", "2: what stands here is nested too deeply"),
    (HEAD + "event 0 moves 0 [i] beside element [] }", "2: expected `before` or `behind`, found `beside`"),
    (HEAD + "event 0 joins plus }", "2: no update is called `plus`"),
    (HEAD + "event 0 joins combiner far }", "2: there is no combiner `far`"),
    (HEAD + "event 0 does 0 [element 8] }", "2: expected `]`, found `8`"),
    (HEAD + "event 0 does 0 [] } }", "2: expected the end of the text, found `}`"),
    (HEAD + "event 0 does 0 [i●] }", "2: no token starts with `●`"),
]


@pytest.mark.parametrize(("text", "message"), WRONG, ids=[str(at) for at in range(len(WRONG))])
def test_wrong_text_is_refused_where_it_is_wrong(text: str, message: str) -> None:
    assert told(text) == message


@pytest.mark.parametrize(
    "mark", ["i●", "i○", "i◁", "i▷", "i◇", "⟪i / 4⟫", "⌊i / 4⌋", "‹i›", "⟨i⟩", "i◦1", "□0", "place 0", "i′"]
)
def test_names_that_the_verifier_makes_cannot_be_said(mark: str) -> None:
    """A tag that speaks of them could take a question's unknown for one of its own numbers."""
    told(f"{HEAD}event 0 does 0 [{mark}] }}")


def only_others_or_refused(tags: Tags, rng: random.Random) -> None:
    """What is altered in a text is other tags, or is refused with its place."""
    text = tags_text(tags, NUMBERED)
    for other in altered(text, rng):
        try:
            found = parse_tags(other, NUMBERED)
        except TexprError as why:
            assert [d.code for d in why.diagnostics] == ["E0581"] and why.diagnostics[0].span is not None
        else:
            assert again(found) == found


@settings(max_examples=20, deadline=None)
@given(tags_of(NUMBERED), st.randoms(use_true_random=False))
def test_whatever_is_altered_is_other_tags_or_refused_with_its_place(tags: Tags, rng: random.Random) -> None:
    only_others_or_refused(tags, rng)


@pytest.mark.long
@settings(max_examples=200, deadline=None)
@given(tags_of(NUMBERED), st.randoms(use_true_random=False))
def test_whatever_is_altered_of_many_is_other_tags_or_refused(tags: Tags, rng: random.Random) -> None:
    only_others_or_refused(tags, rng)
