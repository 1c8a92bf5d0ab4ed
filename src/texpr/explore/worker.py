"""The process that compiles for a page.

Questions come as lines of JSON on standard input, answers go as lines to standard output. It is a process of its own so that a
server can end what takes too long, and so that nothing that a program does to the compiler, to its memory or its stack, ends
the server. What was compiled last is kept: its other panes are made of it.
"""

from __future__ import annotations

import json
import os
import resource
import sys
from typing import Any

from texpr.explore.answer import answer
from texpr.explore.asked import Asked, Unasked, asked_of
from texpr.explore.look import Look, look
from texpr.support.garbage import settle

MOST_MEMORY = 8 << 30
"""Bytes of address space of this process and of each tool that it runs."""


class Desk:
    """Answers, one after the other."""

    def __init__(self) -> None:
        self._last: tuple[Asked, Look] | None = None

    def answer(self, line: str) -> dict[str, Any]:
        """The answer to one question, as it was sent."""
        try:
            asked, pane = asked_of(json.loads(line))
        except (ValueError, RecursionError):
            return {"error": "a question is JSON"}
        except Unasked as reason:
            return {"error": str(reason)}
        if self._last is None or self._last[0] != asked:
            self._last = (asked, look(asked))
        return answer(self._last[1], pane)


def main() -> None:
    """Answers until there are no more questions."""
    _limit()
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # whatever a tool prints is no answer
    settle()
    desk = Desk()
    for line in sys.stdin:
        answers.write(json.dumps(desk.answer(line)) + "\n")
        answers.flush()


def _limit() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    most = MOST_MEMORY if hard == resource.RLIM_INFINITY else min(MOST_MEMORY, hard)
    resource.setrlimit(resource.RLIMIT_AS, (most, hard))


if __name__ == "__main__":
    main()
