"""The grammars for editors know every word of the language, and nothing that is none."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.frontend.corpus import ROOT

from texpr.editor import words
from texpr.frontend.tokens import KEYWORDS, tokenize
from texpr.support.span import Source

EDITORS = ROOT / "editors"
VSCODE = EDITORS / "vscode"
GRAMMAR = VSCODE / "syntaxes" / "te.tmLanguage.json"
SYNTAX = EDITORS / "vim" / "syntax" / "te.vim"
WANTED = {*KEYWORDS, *words.CONTEXTUAL, *words.TYPES}


def patterns(node: Any) -> Iterator[dict[str, Any]]:
    """Every pattern of a TextMate grammar, in order."""
    if isinstance(node, dict):
        if "match" in node or "begin" in node:
            yield node
        for part in node.values():
            yield from patterns(part)
    elif isinstance(node, list):
        for part in node:
            yield from patterns(part)


def data(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def of_vscode() -> set[str]:
    """The words that the TextMate grammar lists."""
    found: set[str] = set()
    for pattern in patterns(data(GRAMMAR)):
        listed = re.fullmatch(r"\\b\(([a-z0-9|]+)\)\\b", pattern.get("match", ""))
        found |= set(listed.group(1).split("|")) if listed else set()
    return found


def of_vim() -> set[str]:
    """The words that the syntax for Vim lists."""
    lines = re.findall(r"^syntax keyword \w+ (.*)$", SYNTAX.read_text(encoding="utf-8"), re.MULTILINE)
    return {word for line in lines for word in line.split()}


@pytest.mark.parametrize("listed", [of_vscode, of_vim])
def test_every_word_and_no_other(listed: Any) -> None:
    assert listed() == WANTED


def test_every_directive_and_no_other() -> None:
    (of_vim,) = re.findall(
        r"^syntax match teDirective \"\\<\\\((.*)\\\)\\ze\(\"$", SYNTAX.read_text(encoding="utf-8"), re.MULTILINE
    )
    (of_vscode,) = (each["match"] for each in patterns(data(GRAMMAR)) if each.get("name") == "support.function.directive.te")
    assert of_vim.split("\\|") == sorted(words.directives())
    assert of_vscode == rf"\b({'|'.join(sorted(words.directives()))})\b(?=\()"


def test_a_missing_word_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "WANTED", {*WANTED, "planted"})
    with pytest.raises(AssertionError):
        test_every_word_and_no_other(of_vim)


def test_names_of_the_grammar_are_linked() -> None:
    text = SYNTAX.read_text(encoding="utf-8")
    groups = set(re.findall(r"^syntax \w+ (te\w+)", text, re.MULTILINE))
    assert groups == set(re.findall(r"^highlight default link (te\w+)", text, re.MULTILINE))
    repository = data(GRAMMAR)["repository"]
    included = [pattern["include"][1:] for pattern in data(GRAMMAR)["patterns"]]
    assert sorted(included) == sorted(repository)


def kind_at(text: str, at: int) -> tuple[str, int]:
    """The scope that the TextMate grammar gives what starts at a place, and its end; the first pattern that fits."""
    grammar = data(GRAMMAR)
    for include in grammar["patterns"]:
        for pattern in patterns(grammar["repository"][include["include"][1:]]):
            if "begin" in pattern:
                if text.startswith('"', at):
                    return pattern["name"], re.compile(r'"(\\.|[^"\\\n])*("|$)', re.MULTILINE).match(text, at).end()  # type: ignore[union-attr]
                continue
            found = re.compile(pattern["match"], re.MULTILINE).match(text, at)
            if found is not None:
                name = pattern.get("name") or pattern["captures"]["1"]["name"]
                return name, found.end(1) if "name" not in pattern else found.end()
    return "", at + 1


EXPECTED = dict.fromkeys(("int", "float", "measure"), "constant.numeric") | {"string": "string", "label": "entity.name.label"}


@pytest.mark.parametrize("name", ["conv2d.te", "scheduled/attention.te", "hopper/matmul.te", "cholesky.te"])
def test_tokens_of_a_program_are_coloured(name: str) -> None:
    text = (ROOT / "examples" / name).read_text(encoding="utf-8")
    tokens = tokenize(Source(name, text))
    for kind, start, end in zip(tokens.kinds, tokens.starts, tokens.ends, strict=True):
        if kind in EXPECTED or kind in KEYWORDS:
            scope, found = kind_at(text, start)
            assert scope.startswith(EXPECTED.get(kind, ("keyword", "constant.language"))), (kind, text[start:end])
            assert found == end
    at = text.find("--")
    while at >= 0:
        assert kind_at(text, at) == ("comment.line.double-dash.te", text.index("\n", at))
        at = text.find("--", text.index("\n", at))


def test_what_the_extension_names_is_there() -> None:
    package = data(VSCODE / "package.json")
    parts = package["contributes"]
    paths = [package["main"], parts["languages"][0]["configuration"], parts["grammars"][0]["path"]]
    assert all((VSCODE / path).is_file() for path in paths)
    assert parts["grammars"][0]["scopeName"] == data(GRAMMAR)["scopeName"]
    assert data(VSCODE / "language-configuration.json")["comments"]["lineComment"] == "--"
    assert parts["configuration"]["properties"]["texpr.command"]["default"] == ["texpr", "lsp"]
