"""The language server as an editor meets it: another process, spoken to by messages."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest
from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcException
from tests.editor.client import DOCUMENT, PATIENCE, ROOT, SUM, URI, Client, converse

from texpr.editor.server.aside import Aside

ATTENTION = (ROOT / "examples" / "scheduled" / "attention.te").read_text(encoding="utf-8")
ASTRAL = "fn f(x: f32[n]): f32[n] {\n    new y: f32[n]\n    par n |i| { y[i] = x[i] }  -- 𝔽𝔽𝔽\n    return y\n}\n"


def at(text: str, part: str, number: int = 0) -> lsp.Position:
    """The position of a part of a text, in units of UTF-16."""
    start = -1
    for _ in range(number + 1):
        start = text.index(part, start + 1)
    line = text.count("\n", 0, start)
    before = text[text.rfind("\n", 0, start) + 1 : start]
    return lsp.Position(line, len(before.encode("utf-16-le")) // 2)


def taken(text: str, place: lsp.Range) -> str:
    """The part of a text in a range, in units of UTF-16."""
    lines = text.split("\n")
    assert place.start.line == place.end.line
    line = lines[place.start.line].encode("utf-16-le")
    return line[2 * place.start.character : 2 * place.end.character].decode("utf-16-le")


def applied(text: str, edits: list[lsp.TextEdit]) -> str:
    """A text after edits."""

    def offset(position: lsp.Position) -> int:
        lines = text.split("\n")
        before = lines[position.line].encode("utf-16-le")[: 2 * position.character].decode("utf-16-le")
        return sum(len(line) + 1 for line in lines[: position.line]) + len(before)

    for edit in sorted(edits, key=lambda edit: offset(edit.range.start), reverse=True):
        text = text[: offset(edit.range.start)] + edit.new_text + text[offset(edit.range.end) :]
    return text


def test_what_is_wrong_is_told_and_goes_away() -> None:
    async def talk(client: Client) -> None:
        assert (await client.open(SUM)).diagnostics == ()
        wrong = SUM.replace("x[i]", "x[i + 1]")
        (found,) = (await client.change(wrong)).diagnostics
        assert (found.code, found.severity, found.source) == ("E0401", lsp.DiagnosticSeverity.Error, "texpr")
        assert taken(wrong, found.range) == "x[i + 1]"
        assert "out of bounds" in found.message
        assert found.related_information is not None
        assert taken(wrong, found.related_information[0].location.range) == "x"
        assert found.related_information[0].location.uri == URI
        broken = SUM.replace("total = 0.0", "total = ")
        (found, *_) = (await client.change(broken)).diagnostics
        assert found.code == "E0102"
        assert (await client.change(SUM)).diagnostics == ()

    converse(talk)


def test_positions_count_utf16() -> None:
    async def talk(client: Client) -> None:
        text = SUM.replace("= 0.0  -- 𝔽𝔽", "= 0.0").replace("x: f32", "x: --𝔽𝔽\n f32").replace("x[i]", "y[i]")
        (found,) = (await client.open(text)).diagnostics
        assert taken(text, found.range) == "y"
        line = "fn f(x: f32[n]) { } -- 𝔽"
        text = f"{line}\nfn g() {{ anchor 𝔽 }}\n"
        (found,) = (await client.change(text)).diagnostics
        assert (found.code, taken(text, found.range)) == ("E0101", "𝔽")
        assert (found.range.start.character, found.range.end.character) == (16, 18)

    converse(talk)


@pytest.mark.parametrize(
    ("kind", "columns"),
    [
        (lsp.PositionEncodingKind.Utf8, (16, 20)),
        (lsp.PositionEncodingKind.Utf32, (16, 17)),
        (lsp.PositionEncodingKind.Utf16, (16, 18)),
    ],
)
def test_a_client_may_count_otherwise(kind: lsp.PositionEncodingKind, columns: tuple[int, int]) -> None:
    async def talk(client: Client) -> None:
        (found,) = (await client.open("fn g() { anchor 𝔽 }\n")).diagnostics
        assert (found.range.start.character, found.range.end.character) == columns

    converse(talk, [kind])


def test_a_help_that_was_tried_is_an_action() -> None:
    async def talk(client: Client) -> None:
        for wrong, right in (
            (SUM.replace("x[i]", "x[ii]"), None),
            (SUM.replace("+= x[i]", "+= toal"), SUM.replace("+= x[i]", "+= total")),
            (SUM.replace(" reduce(total)", ""), SUM),
            (SUM.replace("0.0", "0."), SUM),
        ):
            found = (await client.open(wrong)).diagnostics if client.version == 0 else (await client.change(wrong)).diagnostics
            assert found
            asked = lsp.CodeActionParams(DOCUMENT, found[0].range, lsp.CodeActionContext(found))
            actions = await client.text_document_code_action_async(asked)
            made = [action.edit.changes[URI] for action in actions or () if isinstance(action, lsp.CodeAction) and action.edit]
            if right is None:
                assert len(made) <= 1
                continue
            assert actions is not None
            assert applied(wrong, made[0]) == right
            assert isinstance(actions[0], lsp.CodeAction)
            assert actions[0].title == found[0].data["help"]
            assert found[0].data["edit"]["newText"] == made[0][0].new_text
            elsewhere = lsp.Range(lsp.Position(6, 0), lsp.Position(6, 0))
            none = lsp.CodeActionParams(DOCUMENT, elsewhere, lsp.CodeActionContext(found))
            assert not await client.text_document_code_action_async(none)
            other = lsp.CodeActionContext(found, only=[lsp.CodeActionKind.Refactor])
            assert not await client.text_document_code_action_async(lsp.CodeActionParams(DOCUMENT, found[0].range, other))

    converse(talk)


def test_a_promise_is_added_before_the_body() -> None:
    text = "fn f(x: f32[n]): f32[1] {\n    new y: f32[1]\n    par 1 |i| { y[i] = x[i] }\n    return y\n}\n"

    async def talk(client: Client) -> None:
        found = (await client.open(text)).diagnostics
        asked = lsp.CodeActionParams(DOCUMENT, found[0].range, lsp.CodeActionContext(found))
        (action,) = await client.text_document_code_action_async(asked) or ()
        assert isinstance(action, lsp.CodeAction)
        assert action.edit is not None
        assert action.edit.changes is not None
        made = applied(text, list(action.edit.changes[URI]))
        assert made == text.replace(" {\n    new", "\n    where n >= 1\n{\n    new")
        assert (await client.change(made)).diagnostics == ()

    converse(talk)


def test_hints_say_where_buffers_live() -> None:
    """Behind their declarations, once the text is known to be right; of a text that is wrong, or was changed, nothing."""

    async def talk(client: Client) -> None:
        whole = lsp.Range(lsp.Position(0, 0), lsp.Position(1000, 0))

        async def hinted(range: lsp.Range = whole) -> list[lsp.InlayHint]:
            return list(await client.text_document_inlay_hint_async(lsp.InlayHintParams(DOCUMENT, range)) or ())

        client.write_new(ATTENTION)  # the hints are asked for before anything is found
        found = {taken_line(ATTENTION, each): each for each in await hinted()}
        acc = found["new acc: f32[64]"]
        assert acc.label.startswith("in ") and str(acc.tooltip).startswith("for sm_90a in ") and acc.padding_left
        assert all(line.startswith("new ") for line in found) and len(found) >= 3
        line = acc.position.line
        assert await hinted(lsp.Range(lsp.Position(line, 0), lsp.Position(line + 1, 0))) == [acc]
        waits = asyncio.ensure_future(hinted())
        client.write(ATTENTION.replace("acc[d] = 0.0", "acc[e] = 0.0"))
        assert await waits in ([], list(found.values())) and await hinted() == []

    converse(talk)


def taken_line(text: str, hint: lsp.InlayHint) -> str:
    """What stands before a hint on its line."""
    return text.splitlines()[hint.position.line][: hint.position.character].strip()


def test_what_is_aside_is_ended_when_the_text_changes(tmp_path: Path) -> None:
    file = tmp_path / "process"
    program = (
        f"import os, sys, time; open({str(file)!r}, 'w').write(str(os.getpid())); time.sleep(60 * (sys.stdin.read() == 'a'))"
    )
    aside = Aside((sys.executable, "-c", f"{program}; print('[1]')"))

    async def talk() -> None:
        first = asyncio.ensure_future(aside.ask("a", "a"))
        while not file.exists() or not file.read_text():
            await asyncio.sleep(0.02)
        number = file.read_text()
        assert await aside.ask("a", "b") == [1] and await first == {}
        while Path(f"/proc/{number}").exists():
            await asyncio.sleep(0.02)
        aside.close()

    asyncio.run(asyncio.wait_for(talk(), 60))


def test_hover_definition_and_references() -> None:
    async def talk(client: Client) -> None:
        await client.open(ATTENTION)

        async def hovered(part: str, number: int = 0) -> str:
            found = await client.text_document_hover_async(lsp.HoverParams(DOCUMENT, at(ATTENTION, part, number)))
            assert found is not None
            assert isinstance(found.contents, lsp.MarkupContent)
            return found.contents.value

        told = await hovered("acc[d] = 0.0")
        assert "new acc: f32[64]" in told
        assert "for sm_90a in " in told
        assert "Q: bf16[H, L, 64] align(16)" in await hovered("Q[h")
        assert "size of `attention`" in await hovered("L - ") if "L - " in ATTENTION else True
        assert "`par n |i|" in await hovered("par H")
        assert (await hovered("split(i, 64)")).startswith("```te\nsplit(LOOP, FACTOR")
        assert "loop fission" in await hovered("distribute(r)")
        assert "1 / sqrt" not in await hovered("exp(top")
        assert "Attention by blocks of 64 keys" in await hovered("attention(Q")
        asked = lsp.DefinitionParams(DOCUMENT, at(ATTENTION, "w, r)", 1))
        found = await client.text_document_definition_async(asked)
        assert isinstance(found, lsp.Location)
        assert found.range.start == at(ATTENTION, "w, r)")
        places = await client.text_document_references_async(
            lsp.ReferenceParams(lsp.ReferenceContext(True), DOCUMENT, at(ATTENTION, "acc["))
        )
        assert places is not None
        assert {taken(ATTENTION, place.range) for place in places} == {"acc"}
        assert len(places) == 7
        nothing = lsp.HoverParams(DOCUMENT, lsp.Position(0, 3))
        assert await client.text_document_hover_async(nothing) is None

    converse(talk)


def test_rename() -> None:
    async def talk(client: Client) -> None:
        await client.open(ATTENTION)

        async def renamed(part: str, new: str, text: str) -> str:
            place = at(text, part)
            prepared = await client.text_document_prepare_rename_async(lsp.PrepareRenameParams(DOCUMENT, place))
            assert isinstance(prepared, lsp.Range)
            made = await client.text_document_rename_async(lsp.RenameParams(DOCUMENT, place, new))
            assert made is not None
            assert made.changes is not None
            return applied(text, list(made.changes[URI]))

        made = await renamed("keep = ", "factor", ATTENTION)
        assert made == ATTENTION.replace("keep", "factor")
        made = await renamed("bi, ii", "outer", ATTENTION)
        assert made == ATTENTION.replace("bi,", "outer,")

        async def refused(part: str, new: str) -> str:
            with pytest.raises(JsonRpcException) as why:
                await renamed(part, new, ATTENTION)
            assert "Traceback" not in str(why.value)
            assert why.value.data is None
            return str(why.value)

        assert "is not a name" in await refused("keep = ", "par")
        assert "is not a name" in await refused("keep = ", "a b")
        assert "means something else" in await refused("keep = ", "peak")
        assert "means something else" in await refused("bi, ii", "block")  # of `block.y`
        assert "may mean" in await refused("Qs", "tile")
        assert "no name" in await refused("par H", "x")

    converse(talk)


def test_completion() -> None:
    async def talk(client: Client) -> None:
        async def words(text: str) -> set[str]:
            cut = text.replace("§", "")
            if client.version:
                client.write(cut)
            else:
                await client.open(cut)
            found = await client.text_document_completion_async(lsp.CompletionParams(DOCUMENT, at(text, "§")))
            assert isinstance(found, lsp.CompletionList)
            return {item.label for item in found.items}

        await words("§fn f() {}")
        assert await words("§") == {"fn", "combine", "instr", "schedule"}
        await words(SUM.replace("0.0", "0.0 §"))
        found = await words(SUM.replace("total += x[i]", "total += §"))
        assert {"x", "i", "n", "total", "sqrt", "f32"} <= found
        assert "split" not in found
        assert "i" not in await words(SUM.replace("    return total", "    §\n    return total"))
        assert {"par", "seq", "new"} <= await words(SUM.replace("    return total", "    §\n    return total"))
        assert await words(SUM.replace("f32[n]", "§")) >= {"f32", "bf16"}
        found = await words(ATTENTION.replace("mma(r, js", "§ mma(r, js"))
        assert {"split", "stage", "mma"} <= found
        assert "sqrt" not in found
        found = await words(ATTENTION.replace("mma(r, js", "mma(§r, js"))
        assert {"ii", "js", "Qs", "Q", "h"} <= found
        assert "cuda" in await words(ATTENTION.replace("for cuda", "for §"))
        assert await words(SUM.replace("Σ", "§Σ")) == set()
        assert "align" in await words("fn f() { fully par 32 |i| #§ {} }")

    converse(talk)


def test_symbols_and_folding() -> None:
    async def talk(client: Client) -> None:
        await client.open(ATTENTION)
        found = await client.text_document_document_symbol_async(lsp.DocumentSymbolParams(DOCUMENT))
        assert found is not None
        assert [each.name for each in found] == ["attention", "attention"]
        assert isinstance(found[0], lsp.DocumentSymbol)
        names = [each.name for each in found[0].children or ()]
        assert {"Q", "K", "V", "O", "acc", "keep"} <= set(names)
        for each in found:
            assert isinstance(each, lsp.DocumentSymbol)
            assert (each.range.start.line, each.range.start.character) <= (
                each.selection_range.start.line,
                each.selection_range.start.character,
            )
        folds = await client.text_document_folding_range_async(lsp.FoldingRangeParams(DOCUMENT))
        assert folds is not None
        lines = ATTENTION.split("\n")
        assert {(fold.start_line, fold.end_line) for fold in folds if fold.kind == lsp.FoldingRangeKind.Comment} == {(0, 3)}
        assert lines.index("schedule attention for cuda {") in {fold.start_line for fold in folds}

    converse(talk)


def test_formatting_is_that_of_the_command() -> None:
    async def talk(client: Client) -> None:
        bad = SUM.replace("    ", "\t").replace(" = ", "=").replace("}\n", "}   \n")
        await client.open(bad)
        asked = lsp.DocumentFormattingParams(DOCUMENT, lsp.FormattingOptions(4, True))
        edits = await client.text_document_formatting_async(asked)
        assert edits is not None
        assert applied(bad, list(edits)) == SUM
        await client.change(SUM)
        assert not await client.text_document_formatting_async(asked)
        await client.change(SUM + "fn")
        assert not await client.text_document_formatting_async(asked)

    converse(talk)


def test_a_broken_text_keeps_its_last_names() -> None:
    async def talk(client: Client) -> None:
        await client.open(SUM)
        broken = SUM.replace("-- Σ 𝔽 sum\n", "-- 𝔽\n\n").replace("total = 0.0", "total = (")
        assert (await client.change(broken)).diagnostics
        found = await client.text_document_hover_async(lsp.HoverParams(DOCUMENT, at(broken, "x[i]")))
        assert found is not None
        assert "x: f32[n]" in str(found.contents)
        place = await client.text_document_definition_async(lsp.DefinitionParams(DOCUMENT, at(broken, "i] }")))
        assert isinstance(place, lsp.Location)
        assert place.range.start == at(broken, "i|")
        symbols = await client.text_document_document_symbol_async(lsp.DocumentSymbolParams(DOCUMENT))
        assert symbols is not None
        assert [each.name for each in symbols] == ["sum"]
        with pytest.raises(JsonRpcException, match="errors of syntax"):
            await client.text_document_rename_async(lsp.RenameParams(DOCUMENT, at(broken, "x[i]"), "z"))

    converse(talk)


def test_texts_that_are_on_no_disk() -> None:
    async def talk(client: Client) -> None:
        for uri in ("untitled:Untitled-1", "vscode-vfs://github/a/b.te", "file:///does/not/exist.te"):
            found = await client.open(SUM.replace("x[i]", "y[i]"), uri)
            assert [each.code for each in found.diagnostics] == ["E0201"]
            unknown = lsp.HoverParams(lsp.TextDocumentIdentifier("untitled:other"), lsp.Position(0, 0))
            assert await client.text_document_hover_async(unknown) is None
            client.text_document_did_close(lsp.DidCloseTextDocumentParams(lsp.TextDocumentIdentifier(uri)))
            closed = await asyncio.wait_for(client.published.get(), PATIENCE)
            assert (closed.uri, closed.diagnostics) == (uri, ())

    converse(talk)


def test_only_the_newest_text_is_told_of() -> None:
    async def talk(client: Client) -> None:
        await client.open(SUM)
        for k in range(30):
            client.write(SUM.replace("0.0", f"{k}.0") + "\n" * k)
        assert (await client.change(SUM)).diagnostics == ()

    converse(talk)


def test_a_change_of_a_part() -> None:
    async def talk(client: Client) -> None:
        await client.open(ASTRAL)
        start = at(ASTRAL, "x[i]")
        place = lsp.Range(start, lsp.Position(start.line, start.character + 1))
        client.version += 1
        given = lsp.VersionedTextDocumentIdentifier(client.version, URI)
        change = lsp.TextDocumentContentChangePartial(place, "q")
        client.text_document_did_change(lsp.DidChangeTextDocumentParams(given, [change]))
        (found,) = (await client.told(URI)).diagnostics
        assert taken(ASTRAL.replace("x[i]", "q[i]"), found.range) == "q"

    converse(talk)


def test_a_huge_text() -> None:
    lines = "".join(f"    x[{k}] = {k}.0\n" for k in range(3000))
    text = f"fn f(inout x: f32[3000]) {{\n{lines}    anchor q\n}}\n"

    async def talk(client: Client) -> None:
        (found,) = (await client.open(text)).diagnostics
        assert (found.code, taken(text, found.range)) == ("E0201", "q")
        found = await client.text_document_hover_async(lsp.HoverParams(DOCUMENT, at(text, "x[2999]")))
        assert found is not None

    converse(talk)


def test_cancelled_requests() -> None:
    async def talk(client: Client) -> None:
        await client.open(ATTENTION)
        asked = [
            client.protocol.send_request_async(
                lsp.TEXT_DOCUMENT_RENAME, lsp.RenameParams(DOCUMENT, at(ATTENTION, "keep = "), f"keep{k}")
            )
            for k in range(3)
        ]
        tasks = [asyncio.ensure_future(each) for each in asked]
        await asyncio.sleep(0)
        for number in list(client.protocol._request_futures):
            client.cancel_request(lsp.CancelParams(number))
        done = await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), PATIENCE)
        assert all(each is not None for each in done)
        client.cancel_request(lsp.CancelParams("no such request"))
        assert (await client.change(SUM)).diagnostics == ()

    converse(talk)
