"""Who may ask: a browser on this machine that was given the address, and on a page of this server.

Other sites that a reader visits can send requests to servers on the reader's machine. So a request must name this server as its
host (a site whose name is made to point here does not), must come from a page of this server where browsers say where it comes
from, and must know the token of the address, which is new each time. Nothing of an answer may be framed, cached or guessed at.
"""

from __future__ import annotations

import secrets

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from texpr.explore.page.document import SERVED_POLICY

HEADERS = {
    "Content-Security-Policy": SERVED_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""Of every answer."""


class Guard:
    """Refuses what is not asked by a page of the server at `port`, whose address begins with `token`."""

    def __init__(self, app: ASGIApp, token: str, port: int):
        self._app = app
        self._token = token
        self._hosts = frozenset((f"127.0.0.1:{port}", f"localhost:{port}"))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        reason = "this is no page" if scope["type"] != "http" else self._refusal(scope)
        if reason is None:
            await self._app(scope, receive, guarded)
        elif scope["type"] == "http":
            await JSONResponse({"error": reason}, 403)(scope, receive, guarded)

    def _refusal(self, scope: Scope) -> str | None:
        """Why a request is refused; None where it is not."""
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if host not in self._hosts or len(headers.getlist("host")) != 1:
            return "this server is asked by its own name alone"
        origin = headers.get("origin")
        if origin is not None and origin != f"http://{host}":
            return "this server answers its own pages alone"
        if origin is None and scope["method"] not in ("GET", "HEAD"):
            return "a browser says which page asks"
        if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            return "this server answers its own pages alone"
        first = scope["path"].lstrip("/").partition("/")[0]
        if not secrets.compare_digest(first.encode(), self._token.encode()):
            return "the address lacks its token: open the one that texpr explore printed"
        return None
