"""A command that is run on texts, in processes of their own: what it does takes longer than an editor waits for a check."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Sequence
from typing import Any

PAUSE = 0.3
"""Seconds for which a text has to stay before the command is run on it."""

MOST = 60.0
"""Seconds that the command may take."""


class Aside:
    """Runs a command, which reads a text and prints a JSON object, on the newest text of each document; none prints nothing."""

    def __init__(self, command: Sequence[str]):
        self._command = command
        self._asked: dict[str, tuple[str, asyncio.Task[dict[str, Any]]]] = {}

    async def ask(self, uri: str, text: str) -> dict[str, Any]:
        """What the command prints of a text; nothing where it fails, or where the document has another text by then."""
        known = self._asked.get(uri)
        if known is None or known[0] != text:
            self.drop(uri)
            self._asked[uri] = known = (text, asyncio.ensure_future(self._run(text)))
        try:
            return await asyncio.shield(known[1])
        except asyncio.CancelledError:
            if known[1].cancelled():
                return {}
            raise

    def drop(self, uri: str) -> None:
        """Forgets a document, and ends what is run on it."""
        _, task = self._asked.pop(uri, ("", None))
        if task is not None:
            task.cancel()

    def close(self) -> None:
        """Ends everything."""
        for uri in list(self._asked):
            self.drop(uri)

    async def _run(self, text: str) -> dict[str, Any]:
        if not self._command:
            return {}
        await asyncio.sleep(PAUSE)
        pipe, nothing = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
        process = await asyncio.create_subprocess_exec(*self._command, stdin=pipe, stdout=pipe, stderr=nothing)
        try:
            printed, _ = await asyncio.wait_for(process.communicate(text.encode()), MOST)
            return json.loads(printed) if process.returncode == 0 else {}
        except (TimeoutError, ValueError):
            return {}
        finally:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
