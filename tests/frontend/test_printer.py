"""What is printed reads back as the same tree."""

from __future__ import annotations

import re

import pytest
from hypothesis import HealthCheck, given, settings
from tests.frontend import trees
from tests.frontend.corpus import SCHEDULES, right
from tests.frontend.grammar import accepts

from texpr.frontend import parse_text
from texpr.frontend import tree as t
from texpr.frontend.printer import print_expression, print_tree

# The grammar takes `in` at the end of a line and a parenthesis on the next for a call; so for its other words.
BLIND = re.compile(r"\b(in|for|reduce|stride|meaning|injective|monotone)\n\s*\(")
TEXTS = right() | {"schedules": SCHEDULES}


@pytest.mark.parametrize("name", TEXTS)
def test_programs(name: str) -> None:
    tree = parse_text(TEXTS[name])
    printed = print_tree(tree)
    assert parse_text(printed) == tree
    assert print_tree(parse_text(printed)) == printed


def expression(text: str) -> t.Exp:
    """The expression that `text` is."""
    (item,) = parse_text(f"fn f() {{ anchor {text} }}").items
    assert isinstance(item, t.Fn)
    (anchor,) = item.body
    assert isinstance(anchor, t.Anchor)
    return anchor.value


@settings(max_examples=100, suppress_health_check=list(HealthCheck))
@given(trees.EXPS)
def test_random_expressions(e: t.Exp) -> None:
    assert expression(print_expression(e)) == e


def check_tree(tree: t.Tree) -> None:
    """The printed tree reads back, and is in the grammar."""
    printed = print_tree(tree)
    assert parse_text(printed) == tree
    assert BLIND.search(printed) or accepts(printed)


@settings(max_examples=25, suppress_health_check=list(HealthCheck))
@given(trees.TREES)
def test_random_trees(tree: t.Tree) -> None:
    check_tree(tree)


@pytest.mark.long
@settings(max_examples=400, suppress_health_check=list(HealthCheck))
@given(trees.TREES)
def test_many_random_trees(tree: t.Tree) -> None:
    check_tree(tree)


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("a + (b + c)", "a + (b + c)"),
        ("((a + b)) + c", "a + b + c"),
        ("-(a ** b)", "-a ** b"),
        ("(-a) ** -b", "(-a) ** -b"),
        ("2 ** (3 ** 2)", "2 ** 3 ** 2"),
        ("(2 ** 3) ** 2", "(2 ** 3) ** 2"),
        ("-(-a)", "- -a"),
        ("a - (-b)", "a - -b"),
        ("not (a and b) or not c == d", "not (a and b) or not c == d"),
        ("(not a) == b", "(not a) == b"),
        ("(a < b) == (c < d)", "(a < b) == (c < d)"),
        ("(a + b)[i, : , :3, 2:, 1:+n]", "(a + b)[i, :, : 3, 2 :, 1 : +n]"),
        ("f(a,b=2,)", "f(a, b=2)"),
        ("0x10 + 1e3", "16 + 1000.0"),
    ],
)
def test_parentheses(text: str, printed: str) -> None:
    assert print_expression(expression(text)) == printed


def test_precedence() -> None:
    def n(name: str) -> t.Name:
        return t.Name(name)

    def b(op: str, left: t.Exp, right: t.Exp) -> t.Binary:
        return t.Binary(op, left, right)

    assert expression("a or b and c") == b("or", n("a"), b("and", n("b"), n("c")))
    assert expression("not a == b") == t.Unary("not", b("==", n("a"), n("b")))
    assert expression("a < b + c * d") == b("<", n("a"), b("+", n("b"), b("*", n("c"), n("d"))))
    assert expression("a - b - c") == b("-", b("-", n("a"), n("b")), n("c"))
    assert expression("a / b * c % d") == b("%", b("*", b("/", n("a"), n("b")), n("c")), n("d"))
    assert expression("-a * b") == b("*", t.Unary("-", n("a")), n("b"))
    assert expression("-a ** b") == t.Unary("-", b("**", n("a"), n("b")))
    assert expression("a ** b ** c") == b("**", n("a"), b("**", n("b"), n("c")))
    assert expression("-a[i]") == t.Unary("-", t.Subscript(n("a"), (n("i"),)))


def test_spans_do_not_count() -> None:
    assert expression("a+b") == expression("a   + b")
    assert expression("a + b") != expression("a - b")
