"""Answers as messages: offsets become positions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from lsprotocol import types as lsp

from texpr.editor.answers.completion import Choice, Choices
from texpr.editor.answers.hints import Hint
from texpr.editor.answers.hover import Hover
from texpr.editor.answers.outline import Fold, Part
from texpr.editor.answers.problems import Change, Problem
from texpr.editor.document import Document, Place

SOURCE = "texpr"

_PARTS: Mapping[str, lsp.SymbolKind] = {
    "function": lsp.SymbolKind.Function,
    "combiner": lsp.SymbolKind.Operator,
    "instruction": lsp.SymbolKind.Method,
    "schedule": lsp.SymbolKind.Module,
    "const": lsp.SymbolKind.Constant,
    "local": lsp.SymbolKind.Array,
    "registers": lsp.SymbolKind.Array,
    "label": lsp.SymbolKind.Key,
}
_CHOICES: Mapping[str, lsp.CompletionItemKind] = {
    "keyword": lsp.CompletionItemKind.Keyword,
    "pragma": lsp.CompletionItemKind.Keyword,
    "directive": lsp.CompletionItemKind.Method,
    "function": lsp.CompletionItemKind.Function,
    "combiner": lsp.CompletionItemKind.Function,
    "instruction": lsp.CompletionItemKind.Function,
    "type": lsp.CompletionItemKind.TypeParameter,
    "target": lsp.CompletionItemKind.EnumMember,
    "const": lsp.CompletionItemKind.Constant,
}


def position(document: Document, offset: int) -> lsp.Position:
    """An offset as a position."""
    return lsp.Position(*document.positions.position(offset))


def offset(document: Document, at: lsp.Position) -> int:
    """A position as an offset."""
    return document.positions.offset(at.line, at.character)


def whole_range(document: Document, place: Place) -> lsp.Range:
    """A place as a range."""
    return lsp.Range(position(document, place[0]), position(document, place[1]))


def location(document: Document, place: Place) -> lsp.Location:
    """A place with its document."""
    return lsp.Location(document.uri, whole_range(document, place))


def hint(document: Document, hint: Hint) -> lsp.InlayHint:
    """A hint behind a declaration."""
    return lsp.InlayHint(position(document, hint.at), hint.label, tooltip=hint.reason, padding_left=True)


def edit(document: Document, change: Change) -> lsp.TextEdit:
    """A change of a document."""
    return lsp.TextEdit(whole_range(document, (change.start, change.end)), change.text)


def workspace_edit(document: Document, changes: Iterable[Change]) -> lsp.WorkspaceEdit:
    """Changes of one document."""
    return lsp.WorkspaceEdit(changes={document.uri: [edit(document, change) for change in changes]})


def diagnostic(document: Document, problem: Problem) -> lsp.Diagnostic:
    """A finding. The help is a line of its message, and, with the change that it proposes, data."""
    lines = [problem.message, *problem.remarks, *([] if problem.help is None else [f"help: {problem.help}"])]
    related = [lsp.DiagnosticRelatedInformation(location(document, (start, end)), text) for start, end, text in problem.related]
    data: dict[str, object] = {"help": problem.help}
    if problem.change is not None:
        changed = edit(document, problem.change)
        start, end = changed.range.start, changed.range.end
        data["edit"] = {
            "range": {
                "start": {"line": start.line, "character": start.character},
                "end": {"line": end.line, "character": end.character},
            },
            "newText": changed.new_text,
        }
    return lsp.Diagnostic(
        whole_range(document, (problem.start, max(problem.end, problem.start))),
        "\n".join(lines),
        severity=lsp.DiagnosticSeverity.Error if problem.is_error else lsp.DiagnosticSeverity.Warning,
        code=problem.code,
        source=SOURCE,
        related_information=related or None,
        data=data,
    )


def actions(document: Document, found: Iterable[Problem], place: Place) -> Iterator[lsp.CodeAction]:
    """The changes that helps propose for findings that touch a place."""
    for problem in found:
        if problem.change is None or problem.help is None or problem.end < place[0] or problem.start > place[1]:
            continue
        yield lsp.CodeAction(
            problem.help,
            kind=lsp.CodeActionKind.QuickFix,
            diagnostics=[diagnostic(document, problem)],
            is_preferred=True,
            edit=workspace_edit(document, [problem.change]),
        )


def hover(document: Document, found: Hover) -> lsp.Hover:
    """What is known of a place."""
    return lsp.Hover(lsp.MarkupContent(lsp.MarkupKind.Markdown, found.markdown), whole_range(document, found.place))


def completion(document: Document, choices: Choices) -> lsp.CompletionList:
    """What could stand at a place, each as a change of what is written."""
    where = whole_range(document, choices.place)
    return lsp.CompletionList(False, [_choice(where, choice) for choice in choices.found])


def _choice(where: lsp.Range, choice: Choice) -> lsp.CompletionItem:
    return lsp.CompletionItem(
        choice.word,
        kind=_CHOICES.get(choice.kind, lsp.CompletionItemKind.Variable),
        detail=choice.detail or choice.kind,
        documentation=lsp.MarkupContent(lsp.MarkupKind.Markdown, choice.text) if choice.text else None,
        text_edit=lsp.TextEdit(where, choice.word),
    )


def symbol(document: Document, part: Part) -> lsp.DocumentSymbol:
    """A part of a document with its parts."""
    return lsp.DocumentSymbol(
        part.name,
        _PARTS.get(part.kind, lsp.SymbolKind.Variable),
        whole_range(document, part.whole),
        whole_range(document, part.named),
        detail=part.detail,
        children=[symbol(document, inner) for inner in part.parts],
    )


def fold(document: Document, found: Fold) -> lsp.FoldingRange:
    """Lines that can be folded; the line of a closing bracket stays."""
    start, end = position(document, found.start), position(document, found.end)
    kind = lsp.FoldingRangeKind.Comment if found.is_comment else lsp.FoldingRangeKind.Region
    last = end.line if found.is_comment else max(end.line - 1, start.line)
    return lsp.FoldingRange(start.line, last, kind=kind)
