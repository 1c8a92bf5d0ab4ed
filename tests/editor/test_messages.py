"""The language server and its messages: what is malformed, how it ends, and what it tells where something is amiss."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from lsprotocol import types as lsp
from tests.editor.client import DOCUMENT, ROOT, SUM, URI, Client, converse, run

from texpr.cli import main


def message(data: object) -> bytes:
    body = data if isinstance(data, bytes) else json.dumps(data).encode()
    return b"Content-Length: %d\r\n\r\n%s" % (len(body), body)


def raw(*messages: bytes) -> tuple[int, list[dict[str, object]], bytes]:
    """The exit code, the answers, and what is on standard error, of a server that is sent these bytes."""
    path = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-m", "texpr", "lsp"]
    done = subprocess.run(
        command, input=b"".join(messages), capture_output=True, check=False, env={**os.environ, "PYTHONPATH": path}
    )
    answers: list[dict[str, object]] = []
    left = done.stdout
    while left:
        head, _, left = left.partition(b"\r\n\r\n")
        length = int(head.split(b"Content-Length: ")[1].split(b"\r\n")[0])
        answers.append(json.loads(left[:length]))
        left = left[length:]
    return done.returncode, answers, done.stderr


BEGIN = {"capabilities": {}, "processId": None, "rootUri": None}
INITIALIZE = message({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": BEGIN})
SHUTDOWN = message({"jsonrpc": "2.0", "id": 99, "method": "shutdown"})
EXIT = message({"jsonrpc": "2.0", "method": "exit"})


MALFORMED = [
    message(b"{ this is no JSON"),
    message(b"\xff\xfe"),
    message([1, 2]),
    message("text"),
    message({"jsonrpc": "1.0", "method": "x"}),
    message({"jsonrpc": "2.0"}),
    message({"jsonrpc": "2.0", "method": "textDocument/didOpen", "params": {"a": 1}}),
    message({"jsonrpc": "2.0", "method": "textDocument/didChange", "params": 7}),
    message({"jsonrpc": "2.0", "method": "no/such/notification"}),
    message({"jsonrpc": "2.0", "id": 3, "result": 7}),
    b"Content-Type: nothing\r\n\r\n",
    b"nonsense\r\n",
]


def test_malformed_messages() -> None:
    hover = {"textDocument": {"uri": "file:///none.te"}, "position": {"line": 0, "character": 0}}
    good = [
        message({"jsonrpc": "2.0", "id": 10 + k, "method": "textDocument/hover", "params": hover})
        for k in range(len(MALFORMED))
    ]
    mixed = (each for pair in zip(MALFORMED, good, strict=True) for each in pair)
    code, answers, errors = raw(INITIALIZE, *mixed, SHUTDOWN, EXIT)
    assert (code, errors) == (0, b"")
    assert [each["id"] for each in answers if "id" in each] == [1, *(10 + k for k in range(len(MALFORMED))), 99]
    assert "Traceback" not in json.dumps(answers)


def test_a_request_that_cannot_be_read_is_answered() -> None:
    unreadable = message({"jsonrpc": "2.0", "id": 7, "method": "textDocument/hover", "params": {"textDocument": 5}})
    unknown = message({"jsonrpc": "2.0", "id": 8, "method": "no/such/request", "params": {}})
    code, answers, errors = raw(INITIALIZE, unreadable, unknown, SHUTDOWN, EXIT)
    assert (code, errors) == (0, b"")
    by_id = {each["id"]: each for each in answers if "id" in each}
    assert by_id[7]["error"]["code"] == -32602  # type: ignore[index]
    assert by_id[8]["error"]["code"] == -32601  # type: ignore[index]
    assert "Traceback" not in json.dumps(answers)


def test_the_end_without_a_goodbye() -> None:
    assert raw(INITIALIZE, EXIT)[::2] == (1, b"")
    assert raw(INITIALIZE, message({"jsonrpc": "2.0"})[:-3])[::2] == (1, b"")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals(number: signal.Signals) -> None:
    async def talk(client: Client) -> None:
        await client.begin()
        await client.open(SUM)
        client.process.send_signal(number)
        assert await client.ended() == 128 + number

    run(talk)


def test_a_busy_server_ends_at_once() -> None:
    nests = "".join(f"    par n |i{k}| {{ seq n |j{k}| reduce(y) {{ y[i{k}] += x[j{k} / 2] }} }}\n" for k in range(150))
    text = f"fn f(x: f32[n], inout y: f32[n]) {{\n{nests}}}\n"

    async def talk(client: Client) -> None:
        client.text_document_did_open(lsp.DidOpenTextDocumentParams(lsp.TextDocumentItem(URI, "te", 1, text)))

    converse(talk)


@pytest.mark.parametrize("missing", ["pygls", "lsprotocol"])
def test_where_the_package_is_missing_its_extra_is_named(
    missing: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in [each for each in sys.modules if each.split(".")[0] == missing or each.startswith("texpr.editor.server")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, missing, None)
    assert main(["lsp"]) == 2
    out, err = capsys.readouterr()
    assert (out, "E0825" in err, "pip install 'texpr-compiler[lsp]'" in err) == ("", True, True)
    assert "Traceback" not in err


def test_a_fault_is_told_in_the_log(tmp_path: Path) -> None:
    planted = (
        "import sys\nfrom texpr.editor.answers import hover\nfrom texpr.editor.server import features\n"
        "def wrong(*_):\n    raise ValueError('planted')\n"
        "features.hover = wrong\nfeatures.problems = wrong\nsys.exit(features.serve(lambda function: ()))\n"
    )
    script = tmp_path / "planted.py"
    script.write_text(planted, encoding="utf-8")

    async def whole(client: Client) -> None:
        path = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
        await client.start_io(sys.executable, str(script), env={**os.environ, "PYTHONPATH": path})
        await client.initialize_async(lsp.InitializeParams(lsp.ClientCapabilities()))
        await client.open(SUM)
        assert await client.text_document_hover_async(lsp.HoverParams(DOCUMENT, lsp.Position(1, 1))) is None
        assert await client.end() == 0
        assert all("internal error: ValueError: planted" in each and "Traceback" not in each for each in client.logged)
        assert len(client.logged) == 2

    run(whole)
