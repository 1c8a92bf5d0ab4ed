"""The server's socket, on this machine's own address alone, and its life."""

from __future__ import annotations

import asyncio
import secrets
import socket
from collections.abc import Callable

import uvicorn

from texpr.explore.asked import Asked
from texpr.explore.server.app import app

HOST = "127.0.0.1"
"""Nobody on another machine reaches it."""


def serve(first: Asked, port: int, seconds: float, told: Callable[[str], None]) -> None:
    """Serves the page that begins with `first` at `port` (0: a free one) until an interrupt. `told` is given its address, which
    has the token. Raises OSError where the port cannot be had."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as own:
        own.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        own.bind((HOST, port))
        port = own.getsockname()[1]
        token = secrets.token_urlsafe(24)
        config = uvicorn.Config(
            app(first, token, port, seconds), log_level="warning", access_log=False, server_header=False, date_header=False,
            ws="none", proxy_headers=False, limit_concurrency=64, timeout_keep_alive=30, timeout_graceful_shutdown=2,
        )  # fmt: skip
        own.listen()  # who is told the address may ask at once
        told(f"http://{HOST}:{port}/{token}/")
        asyncio.run(uvicorn.Server(config).serve(sockets=[own]))
