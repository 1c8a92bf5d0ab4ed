"""What a page asks of its server: itself, its files, the examples, and what the compiler says of a text."""

from __future__ import annotations

import json
import mimetypes
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from texpr.explore.asked import LARGEST_TEXT, Asked
from texpr.explore.examples import text_of
from texpr.explore.page.document import served, static
from texpr.explore.server.crew import Busy, Crew
from texpr.explore.server.guard import Guard

LARGEST_BODY = 8 * LARGEST_TEXT
"""In bytes: a text as JSON, in which a character may take many."""


class _TooLarge(Exception):
    """A body of more than `LARGEST_BODY` bytes."""


def app(first: Asked, token: str, port: int, seconds: float) -> ASGIApp:
    """The server of one page, which begins with `first`."""
    crew = Crew(seconds)

    async def page(request: Request) -> Response:
        return HTMLResponse(served(first))

    async def file(request: Request) -> Response:
        name = request.path_params["name"]
        try:
            return Response(static(name), media_type=mimetypes.guess_type(name)[0])
        except KeyError:
            return JSONResponse({"error": "there is no such file"}, 404)

    async def example(request: Request) -> Response:
        text = text_of(request.path_params["name"])
        return JSONResponse({"error": "there is no such example"}, 404) if text is None else PlainTextResponse(text)

    async def show(request: Request) -> Response:
        if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
            return JSONResponse({"error": "a question is JSON"}, 415)
        try:
            question: object = json.loads(await _body(request))
        except _TooLarge:
            return JSONResponse({"error": "this is too large for a page"}, 413)
        except (ValueError, RecursionError):
            return JSONResponse({"error": "a question is JSON"}, 400)
        except ClientDisconnect:
            return Response(status_code=400)
        try:
            found = await crew.ask(question)
        except Busy:
            return JSONResponse({"error": "more is asked than is answered; wait a little"}, 503)
        return JSONResponse(found, 422 if "error" in found else 200)

    @asynccontextmanager
    async def life(app: Starlette) -> AsyncGenerator[None]:
        yield
        await crew.end()

    routes = [
        Route(f"/{token}/", page),
        Route(f"/{token}/static/{{name:path}}", file),
        Route(f"/{token}/examples/{{name:path}}", example),
        Route(f"/{token}/show", show, methods=["POST"]),
    ]
    return Guard(Starlette(routes=routes, lifespan=life), token, port)


async def _body(request: Request) -> bytes:
    """What was sent, no more than a page sends. Raises _TooLarge."""
    found = bytearray()
    async for piece in request.stream():
        found += piece
        if len(found) > LARGEST_BODY:
            raise _TooLarge
    return bytes(found)
