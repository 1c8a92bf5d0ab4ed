"""The language server: messages of the Language Server Protocol in and out, by pygls, which only this folder imports."""

from __future__ import annotations

from texpr.editor.server.features import serve

__all__ = ["serve"]
