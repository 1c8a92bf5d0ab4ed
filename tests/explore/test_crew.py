"""The process that compiles for a server: it is ended where it takes too long, with its tools, and another is begun."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from texpr.explore.server.crew import MOST_WAITING, Busy, Crew

ECHO = "import sys, json\nfor line in sys.stdin: print(json.dumps({'heard': json.loads(line)}), flush=True)"
SLOW = f"import subprocess, sys\nsys.stdin.readline()\nsubprocess.run([{sys.executable!r}, '-c', 'import os, sys, time; "
SLOW += 'open(sys.argv[1], "w").write(str(os.getpid())); time.sleep(1000)\', sys.argv[1]])'
LOST = "import sys\nif sys.stdin.readline().strip() == '\"die\"': sys.exit(1)\n" + "print('{\"ok\": 1}', flush=True)"
PATIENCE = 60
"""Seconds that a quick process is given; nothing is judged by them."""


def with_crew(seconds: float, code: str, talk: Callable[[Crew], Awaitable[None]], *arguments: str) -> None:
    async def all_of_it() -> None:
        crew = Crew(seconds, (sys.executable, "-c", code, *arguments))
        try:
            await talk(crew)
        finally:
            await crew.end()

    asyncio.run(all_of_it())


def test_answers_are_those_of_the_process() -> None:
    async def talk(crew: Crew) -> None:
        asked: list[dict[str, Any]] = [{"n": n} for n in range(5)]
        assert await asyncio.gather(*map(crew.ask, asked)) == [{"heard": each} for each in asked]

    with_crew(PATIENCE, ECHO, talk)


def test_what_takes_too_long_is_ended_with_its_tools(tmp_path: Path) -> None:
    told = tmp_path / "pid"

    async def talk(crew: Crew) -> None:
        assert "longer than 1.5 seconds" in (await crew.ask("x"))["error"]
        if told.exists():  # it came so far
            process = int(told.read_text() or "0")
            for _ in range(500):
                if not running(process):
                    return
                await asyncio.sleep(0.01)
            raise AssertionError("a tool is left")

    with_crew(1.5, SLOW, talk, str(told))


def running(process: int) -> bool:
    try:
        return process > 0 and "\nState:\tZ" not in Path(f"/proc/{process}/status").read_text()
    except FileNotFoundError:
        return False


def test_a_process_that_fails_is_begun_anew() -> None:
    async def talk(crew: Crew) -> None:
        assert "has failed" in (await crew.ask("die"))["error"]
        assert await crew.ask("live") == {"ok": 1}

    with_crew(PATIENCE, LOST, talk)


def test_a_program_that_is_not_there_is_a_failure() -> None:
    async def talk(crew: Crew) -> None:
        assert "has failed" in (await crew.ask("x"))["error"]

    asyncio.run(_missing(talk))


async def _missing(talk: Callable[[Crew], Awaitable[None]]) -> None:
    await talk(Crew(PATIENCE, ("/nonexistent/python",)))


def test_more_questions_than_a_page_asks_are_refused() -> None:
    async def talk(crew: Crew) -> None:
        waiting = [asyncio.ensure_future(crew.ask(n)) for n in range(MOST_WAITING)]
        await asyncio.sleep(0)
        with pytest.raises(Busy):
            await crew.ask("one more")
        await asyncio.gather(*waiting)
        assert await crew.ask("again") == {"heard": "again"}

    with_crew(PATIENCE, ECHO, talk)


def test_no_process_is_left_at_the_end() -> None:
    found: list[int] = []

    async def talk(crew: Crew) -> None:
        await crew.ask("x")
        assert crew._process is not None
        found.append(crew._process.pid)

    with_crew(PATIENCE, ECHO, talk)
    with pytest.raises(ProcessLookupError):
        os.kill(found[0], 0)
