"""The server's documents and its answers to each kind of message."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Sequence
from functools import wraps
from itertools import count
from types import FrameType
from typing import Any, NoReturn, Protocol, TypeVar, cast

from lsprotocol import types as lsp
from pygls.exceptions import FeatureRequestError, JsonRpcException, JsonRpcInvalidRequest, PyglsError
from pygls.lsp.server import LanguageServer

from texpr import __version__
from texpr.editor.answers.completion import completion
from texpr.editor.answers.hints import DECLARED, Placed, hints, placements
from texpr.editor.answers.hover import hover
from texpr.editor.answers.outline import folds, outline
from texpr.editor.answers.problems import Change, Examine, Problem, problems
from texpr.editor.answers.rename import CannotRename, renamable, rename
from texpr.editor.document import Document
from texpr.editor.formatting import format_text
from texpr.editor.positions import Positions
from texpr.editor.server import convert
from texpr.editor.server.aside import Aside
from texpr.editor.server.protocol import Answering
from texpr.editor.server.worker import Worker, tell
from texpr.support.faults import told_of
from texpr.support.record import replace

Answer = TypeVar("Answer")

ENDED_BY = 128
"""Added to the signal's number for the exit code of a process that a signal ended, as in shells."""


class Server(LanguageServer):
    """The server. Texts are sent whole, so that both sides count lines alike.

    `examine` finds what is wrong with a function, the command `place` where the buffers of a text are (`hints.Placed`).
    """

    def __init__(self, examine: Examine, place: Sequence[str]):
        kind = lsp.TextDocumentSyncKind.Full
        super().__init__("texpr", __version__, kind, protocol_cls=Answering)  # pyright: ignore[reportUnknownMemberType]
        self.examine = examine
        self.aside = Aside(place)
        self.documents: dict[str, Document] = {}
        self.found: dict[str, tuple[int | None, tuple[Problem, ...]]] = {}
        self.right: dict[str, asyncio.Future[bool]] = {}
        self.worker = Worker()
        self.shut_down = False
        self._numbers = count()

    def report_server_error(self, error: Exception, source: type[PyglsError] | type[JsonRpcException]) -> None:
        """Notes a message that could not be handled in the log of the client; no window opens, and a request has its answer."""
        if source is not FeatureRequestError:
            self.log(f"a message could not be handled: {type(error).__name__}")

    def log(self, text: str) -> None:
        """Notes a text in the log of the client."""
        self.window_log_message(lsp.LogMessageParams(lsp.MessageType.Error, text))

    def fault(self, fault: Exception) -> None:
        """Notes a fault of this program in the log of the client."""
        what, where = told_of(fault)
        self.log(f"internal error: {what} in {where} (texpr {__version__}); please report it, with the text")

    @property
    def encoding(self) -> str:
        """What columns count."""
        kind = self.server_capabilities.position_encoding
        return kind.value if isinstance(kind, lsp.PositionEncodingKind) else kind or "utf-16"

    def document(self, uri: str) -> Document | None:
        """An open document."""
        return self.documents.get(uri)

    def put(self, uri: str, version: int | None, text: str) -> None:
        """Takes a new state of a document, and has it checked."""
        document = Document(uri, version, text, self.documents.get(uri), self.encoding)
        self._outdated(uri)
        self.documents[uri] = document
        loop = asyncio.get_running_loop()
        self.right[uri] = loop.create_future()

        def check(stale: Callable[[], bool]) -> None:
            try:
                found = problems(text, uri, self.examine, stale)
            except Exception as fault:
                tell(loop, self.fault, fault)
                found = ()
            if found is not None and not stale():
                tell(loop, self.publish, document, found)

        self.worker.put(uri, check)

    async def checked(self, work: Callable[[], Answer]) -> Answer:
        """The result of work that reads and checks programs, which one thread does at a time."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Answer] = loop.create_future()

        def settle(result: Answer | None, fault: Exception | None) -> None:
            if answer.done():
                return
            if fault is not None:
                answer.set_exception(fault)
            else:
                answer.set_result(cast("Answer", result))

        def job(_: object) -> None:
            try:
                result = work()
            except Exception as fault:
                tell(loop, settle, None, fault)
            else:
                tell(loop, settle, result, None)

        self.worker.put(f"request {next(self._numbers)}", job)
        return await answer

    async def placed(self, document: Document) -> Placed:
        """Where the buffers of a document are placed, once it is known to be without errors."""
        right = self.right.get(document.uri)
        if right is None or not await asyncio.shield(right) or self.documents.get(document.uri) is not document:
            return {}
        return await self.aside.ask(document.uri, document.text)

    def publish(self, document: Document, found: tuple[Problem, ...]) -> None:
        """Sends what was found in a document, if that is still its text."""
        if self.documents.get(document.uri) is document:
            self.found[document.uri] = (document.version, found)
            self.right[document.uri].set_result(found == ())
            told = [convert.diagnostic(document, problem) for problem in found]
            self.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(document.uri, told, document.version))

    def _outdated(self, uri: str) -> None:
        """Answers who waits for an earlier text of a document: it is not known to be right."""
        before = self.right.pop(uri, None)
        if before is not None and not before.done():
            before.set_result(False)
        self.aside.drop(uri)

    def close(self, uri: str) -> None:
        """Forgets a document."""
        self.worker.drop(uri)
        self.documents.pop(uri, None)
        self.found.pop(uri, None)
        self._outdated(uri)
        self.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(uri, []))


class _AtPlace(Protocol):
    """A question about a place."""

    text_document: lsp.TextDocumentIdentifier
    position: lsp.Position


def serve(examine: Examine, place: Sequence[str] = ()) -> int:
    """Serves a client over standard input and output until it says goodbye; gives the exit code."""
    for name in ("pygls", "asyncio"):
        logger = logging.getLogger(name)
        logger.addHandler(logging.NullHandler())
        logger.propagate = False
    server = Server(examine, place)
    _texts(server)
    _answers(server)
    _changes(server)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _end)  # pygls would wait for another line of input
    server.worker.start()
    # The stream that pygls closes is its own: the command flushes the other one when it ends.
    server.start_io(sys.stdin.buffer, os.fdopen(os.dup(sys.stdout.fileno()), "wb"))
    code = 0 if server.shut_down else 1
    if server.worker.busy:
        os._exit(code)  # a check that is under way cannot be stopped, and has nothing to leave in order
    return code


def _end(number: int, frame: FrameType | None) -> NoReturn:
    """Ends on a signal, with the exit code that shells give it."""
    os._exit(ENDED_BY + number)


def _guarded(server: Server, handler: Callable[[Any], Answer]) -> Callable[[Any], Answer | None]:
    """`handler`, with a fault noted in the client's log; then there is no answer."""

    @wraps(handler)
    def guarded(params: Any) -> Answer | None:
        try:
            return handler(params)
        except JsonRpcException:
            raise
        except Exception as fault:
            server.fault(fault)
            return None

    return guarded


def _awaited(server: Server, handler: Callable[[Any], Awaitable[Answer]]) -> Callable[[Any], Awaitable[Answer | None]]:
    """The same for a handler that takes its time."""

    @wraps(handler)
    async def guarded(params: Any) -> Answer | None:
        try:
            return await handler(params)
        except JsonRpcException:
            raise
        except Exception as fault:
            server.fault(fault)
            return None

    return guarded


def _texts(server: Server) -> None:
    """Documents that are opened, changed and closed."""

    def opened(params: lsp.DidOpenTextDocumentParams) -> None:
        given = params.text_document
        server.put(given.uri, given.version, given.text)

    def changed(params: lsp.DidChangeTextDocumentParams) -> None:
        given = params.text_document
        document = server.document(given.uri)
        text = "" if document is None else document.text
        for change in params.content_changes:
            if isinstance(change, lsp.TextDocumentContentChangePartial):
                lines = Positions(text, server.encoding)
                start, end = (lines.offset(at.line, at.character) for at in (change.range.start, change.range.end))
                text = Change(start, end, change.text).made(text)
            else:
                text = change.text
        server.put(given.uri, given.version, text)

    def closed(params: lsp.DidCloseTextDocumentParams) -> None:
        server.close(params.text_document.uri)

    def shut_down(*_: object) -> None:
        server.shut_down = True
        server.aside.close()

    server.feature(lsp.TEXT_DOCUMENT_DID_OPEN)(_guarded(server, opened))
    server.feature(lsp.TEXT_DOCUMENT_DID_CHANGE)(_guarded(server, changed))
    server.feature(lsp.TEXT_DOCUMENT_DID_CLOSE)(_guarded(server, closed))
    server.feature(lsp.SHUTDOWN)(shut_down)


def _answers(server: Server) -> None:
    """Questions about a place, or about a document."""

    async def hovered(params: lsp.HoverParams) -> lsp.Hover | None:
        at = _at(server, params)
        found = None if at is None else hover(*at)
        if at is None or found is None:
            return None
        symbol = at[0].symbol(at[1])
        if symbol is not None and symbol[0].kind in DECLARED:
            placed = placements(symbol[0], await server.placed(at[0]))
            found = replace(found, text="\n\n".join(dict.fromkeys((found.text, *(reason for _, reason in placed)))))
        return convert.hover(at[0], found)

    async def hinted(params: lsp.InlayHintParams) -> list[lsp.InlayHint]:
        document = server.document(params.text_document.uri)
        if document is None:
            return []
        start, end = (convert.offset(document, at) for at in (params.range.start, params.range.end))
        found = hints(document, await server.placed(document))
        return [convert.hint(document, each) for each in found if start <= each.at <= end]

    def definition(params: lsp.DefinitionParams) -> lsp.Location | None:
        places = _places(server, params)
        return places[0] if places else None

    def references(params: lsp.ReferenceParams) -> list[lsp.Location]:
        return _places(server, params)[0 if params.context.include_declaration else 1 :]

    def highlights(params: lsp.DocumentHighlightParams) -> list[lsp.DocumentHighlight]:
        return [lsp.DocumentHighlight(place.range) for place in _places(server, params)]

    def completed(params: lsp.CompletionParams) -> lsp.CompletionList | None:
        at = _at(server, params)
        return None if at is None else convert.completion(at[0], completion(*at))

    def symbols(params: lsp.DocumentSymbolParams) -> list[lsp.DocumentSymbol]:
        document = server.document(params.text_document.uri)
        return [] if document is None else [convert.symbol(document, part) for part in outline(document)]

    def folding(params: lsp.FoldingRangeParams) -> list[lsp.FoldingRange]:
        document = server.document(params.text_document.uri)
        found = [] if document is None else [convert.fold(document, each) for each in folds(document)]
        return [each for each in found if each.end_line > each.start_line]

    server.feature(lsp.TEXT_DOCUMENT_HOVER)(_awaited(server, hovered))
    server.feature(lsp.TEXT_DOCUMENT_INLAY_HINT)(_awaited(server, hinted))
    server.feature(lsp.TEXT_DOCUMENT_DEFINITION)(_guarded(server, definition))
    server.feature(lsp.TEXT_DOCUMENT_REFERENCES)(_guarded(server, references))
    server.feature(lsp.TEXT_DOCUMENT_DOCUMENT_HIGHLIGHT)(_guarded(server, highlights))
    options = lsp.CompletionOptions(trigger_characters=["#"])
    server.feature(lsp.TEXT_DOCUMENT_COMPLETION, options)(_guarded(server, completed))
    server.feature(lsp.TEXT_DOCUMENT_DOCUMENT_SYMBOL)(_guarded(server, symbols))
    server.feature(lsp.TEXT_DOCUMENT_FOLDING_RANGE)(_guarded(server, folding))


def _at(server: Server, params: _AtPlace) -> tuple[Document, int] | None:
    """The document and the offset that a question is about."""
    document = server.document(params.text_document.uri)
    return None if document is None else (document, convert.offset(document, params.position))


def _places(server: Server, params: _AtPlace) -> list[lsp.Location]:
    """Where the name at a place stands, its declaration first."""
    at = _at(server, params)
    found = None if at is None else at[0].symbol(at[1])
    return [] if at is None or found is None else [convert.location(at[0], place) for place in at[0].places(found[0])]


def _changes(server: Server) -> None:
    """Changes of a document."""

    def actions(params: lsp.CodeActionParams) -> list[lsp.CodeAction]:
        document = server.document(params.text_document.uri)
        version, found = server.found.get(params.text_document.uri, (None, ()))
        if document is None or version != document.version:
            return []
        wanted = params.context.only
        if wanted is not None and not any(lsp.CodeActionKind.QuickFix.startswith(kind) for kind in wanted):
            return []
        start, end = (convert.offset(document, at) for at in (params.range.start, params.range.end))
        return list(convert.actions(document, found, (start, end)))

    async def formatting(params: lsp.DocumentFormattingParams) -> list[lsp.TextEdit] | None:
        document = server.document(params.text_document.uri)
        if document is None or not document.is_current:
            return None
        loop = asyncio.get_running_loop()
        made = await loop.run_in_executor(server.thread_pool, format_text, document.text)
        if made == document.text:
            return []
        return [convert.edit(document, Change(0, len(document.text), made))]

    def prepared(params: lsp.PrepareRenameParams) -> lsp.Range | None:
        at = _at(server, params)
        try:
            return None if at is None else convert.whole_range(at[0], renamable(*at)[1])
        except CannotRename as why:
            raise JsonRpcInvalidRequest(str(why)) from None

    async def renamed(params: lsp.RenameParams) -> lsp.WorkspaceEdit | None:
        at = _at(server, params)
        if at is None:
            return None
        try:
            made = await server.checked(lambda: rename(*at, params.new_name, server.examine))
        except CannotRename as why:
            raise JsonRpcInvalidRequest(str(why)) from None
        return convert.workspace_edit(at[0], made)

    server.feature(lsp.TEXT_DOCUMENT_CODE_ACTION)(_guarded(server, actions))
    server.feature(lsp.TEXT_DOCUMENT_FORMATTING)(_awaited(server, formatting))
    server.feature(lsp.TEXT_DOCUMENT_PREPARE_RENAME)(_guarded(server, prepared))
    server.feature(lsp.TEXT_DOCUMENT_RENAME, lsp.RenameOptions(prepare_provider=True))(_awaited(server, renamed))
