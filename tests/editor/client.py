"""A client of the language server: the server is another process, and they speak over its standard input and output."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from lsprotocol import types as lsp
from pygls.lsp.client import LanguageClient

ROOT = Path(__file__).parents[2]
PATIENCE = 60
"""Seconds after which a server that does not answer is given up; nothing is judged by them."""

URI = "file:///a.te"
DOCUMENT = lsp.TextDocumentIdentifier(URI)
SUM = """\
-- Σ 𝔽 sum
fn sum(x: f32[n]): f32 {
    new total: f32
    total = 0.0  -- 𝔽𝔽
    par n |i| reduce(total) { total += x[i] }
    return total
}
"""


class Client(LanguageClient):
    """A client that keeps what the server tells it."""

    def __init__(self) -> None:
        super().__init__("test", "1")
        self.published: asyncio.Queue[lsp.PublishDiagnosticsParams] = asyncio.Queue()
        self.logged: list[str] = []
        self.shown: list[str] = []
        self.version = 0
        self.feature(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)(lambda params: self.published.put_nowait(params))
        self.feature(lsp.WINDOW_LOG_MESSAGE)(lambda params: self.logged.append(params.message))
        self.feature(lsp.WINDOW_SHOW_MESSAGE)(lambda params: self.shown.append(params.message))

    @property
    def process(self) -> asyncio.subprocess.Process:
        assert self._server is not None
        return self._server

    async def begin(self, encodings: list[lsp.PositionEncodingKind] | None = None) -> lsp.InitializeResult:
        """Starts the server and shakes hands."""
        path = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
        await self.start_io(sys.executable, "-m", "texpr", "lsp", env={**os.environ, "PYTHONPATH": path})
        general = None if encodings is None else lsp.GeneralClientCapabilities(position_encodings=encodings)
        said = await self.initialize_async(lsp.InitializeParams(lsp.ClientCapabilities(general=general)))
        self.initialized(lsp.InitializedParams())
        return said

    def write_new(self, text: str, uri: str = "file:///a.te") -> None:
        """Opens a document."""
        self.version += 1
        self.text_document_did_open(lsp.DidOpenTextDocumentParams(lsp.TextDocumentItem(uri, "te", self.version, text)))

    async def open(self, text: str, uri: str = "file:///a.te") -> lsp.PublishDiagnosticsParams:
        """Opens a document; what is found in it."""
        self.write_new(text, uri)
        return await self.told(uri)

    def write(self, text: str, uri: str = "file:///a.te") -> None:
        """Gives a document another text."""
        self.version += 1
        given = lsp.VersionedTextDocumentIdentifier(self.version, uri)
        change = lsp.TextDocumentContentChangeWholeDocument(text)
        self.text_document_did_change(lsp.DidChangeTextDocumentParams(given, [change]))

    async def change(self, text: str, uri: str = "file:///a.te") -> lsp.PublishDiagnosticsParams:
        """Gives a document another text; what is found in it."""
        self.write(text, uri)
        return await self.told(uri)

    async def told(self, uri: str) -> lsp.PublishDiagnosticsParams:
        """What is found in the newest version of a document."""
        while True:
            found = await asyncio.wait_for(self.published.get(), PATIENCE)
            if found.uri == uri and found.version == self.version:
                return found

    async def end(self) -> int:
        """Says goodbye; the exit code of the server, which has written nothing but messages."""
        await asyncio.wait_for(self.shutdown_async(None), PATIENCE)
        self.exit(None)
        return await self.ended()

    async def ended(self) -> int:
        """The exit code of the server, of which no traceback is seen."""
        code = await asyncio.wait_for(self.process.wait(), PATIENCE)
        errors = b"" if self.process.stderr is None else await self.process.stderr.read()
        assert errors == b"", errors
        assert self.shown == []
        return code


def run(talk: Callable[[Client], Awaitable[Any]]) -> None:
    """Runs a conversation; a server that is left over is killed."""

    async def whole() -> None:
        client = Client()
        try:
            await talk(client)
        finally:
            if client._server is not None and client.process.returncode is None:
                client.process.kill()
            await client.stop()

    asyncio.run(whole())


def converse(talk: Callable[[Client], Awaitable[Any]], encodings: list[lsp.PositionEncodingKind] | None = None) -> None:
    """Runs a conversation with a server, from the first word to the last."""

    async def whole(client: Client) -> None:
        await client.begin(encodings)
        await talk(client)
        assert client.logged == []
        assert await client.end() == 0

    run(whole)
