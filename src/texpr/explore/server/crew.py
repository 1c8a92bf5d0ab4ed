"""The process that compiles for a server: one, which is ended and begun anew where it takes too long or fails."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from contextlib import suppress
from typing import Any

MOST_WAITING = 8
"""Questions that wait for the one under way; more are refused."""

LONGEST_ANSWER = 64 << 20
"""In bytes."""


WORKER = (sys.executable, "-P", "-m", "texpr.explore.worker")
"""The process that compiles; no module of the folder that it runs in is taken for one of Python's."""


class Busy(Exception):
    """More questions than a page asks."""


class Crew:
    """Answers questions by a process. `seconds`: what one may take; `command`: what is run."""

    def __init__(self, seconds: float, command: tuple[str, ...] = WORKER):
        self._seconds = seconds
        self._command = command
        self._lock = asyncio.Lock()
        self._waiting = 0
        self._process: asyncio.subprocess.Process | None = None

    async def ask(self, question: object) -> dict[str, Any]:
        """The answer to one question, which may be that there is none, as `error`. Raises Busy."""
        if self._waiting >= MOST_WAITING:
            raise Busy
        self._waiting += 1
        try:
            async with self._lock:
                return await self._answer(json.dumps(question).encode() + b"\n")
        finally:
            self._waiting -= 1

    async def _answer(self, question: bytes) -> dict[str, Any]:
        told = "the process that compiles has failed, perhaps for lack of memory; the page goes on"
        try:
            async with asyncio.timeout(self._seconds):
                process = await self._started()
                assert process.stdin is not None and process.stdout is not None
                process.stdin.write(question)
                await process.stdin.drain()
                line = await process.stdout.readline()
        except TimeoutError:
            line, told = b"", f"this took longer than {self._seconds:g} seconds, and was stopped"
        except (OSError, ValueError):
            line = b""
        except asyncio.CancelledError:
            await self.end()
            raise
        if not line.endswith(b"\n"):
            await self.end()
            return {"error": told}
        return json.loads(line)

    async def _started(self) -> asyncio.subprocess.Process:
        """The process, begun where there is none. It has a group of its own, which its tools belong to."""
        if self._process is None or self._process.returncode is not None:
            self._process = await asyncio.create_subprocess_exec(
                *self._command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                limit=LONGEST_ANSWER,
                start_new_session=True,
            )
        return self._process

    async def end(self) -> None:
        """Ends the process, and the tools that it runs."""
        process, self._process = self._process, None
        if process is None:
            return
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
