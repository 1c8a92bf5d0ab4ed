"""How soon an editor is told what is wrong: the language server, as another process, given a text of 200 lines again and again.

Each time something is written at its end, and the clock runs until the server has told of that very text: one with an unknown
name, and one in which everything is checked, of which the server remembers what it solved before; and once a promise of the
convolution is another one, by which every question about it is new. `format` is the format of the same text, in this process.
By the clock; the median of seven. `--json FILE` keeps the numbers.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

from common.measure import Row, seconds, show
from texpr.editor.formatting import format_text

EXAMPLES = Path(__file__).parents[1] / "examples"
NAMES = (
    "saxpy",
    "sum",
    "transpose",
    "softmax",
    "layernorm",
    "rmsnorm",
    "matmul",
    "conv2d",
    "jacobi",
    "argmax",
    "gather",
    "attention",
)
LINES = 200


def text() -> str:
    """A text of 200 lines: programs of the gallery, one after the other."""
    found = "\n".join((EXAMPLES / f"{name}.te").read_text(encoding="utf-8") for name in NAMES)
    return found + "-- \n" * (LINES - found.count("\n"))


class Server:
    """A server, and the messages to and from it."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "texpr", "lsp"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.version = 0
        self.send({"id": 0, "method": "initialize", "params": {"capabilities": {}, "processId": None, "rootUri": None}})
        self.receive(lambda message: message.get("id") == 0)
        self.send({"method": "initialized", "params": {}})

    def send(self, message: dict[str, Any]) -> None:
        """Sends a message."""
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        assert self.process.stdin is not None
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        self.process.stdin.flush()

    def receive(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The next message that is wanted."""
        assert self.process.stdout is not None
        while True:
            length = 0
            while line := self.process.stdout.readline().strip():
                if line.lower().startswith(b"content-length:"):
                    length = int(line.split(b":")[1])
            message = json.loads(self.process.stdout.read(length))
            if wanted(message):
                return message

    def told(self, text: str) -> int:
        """How much is wrong with a text, as the server tells."""
        self.version += 1
        document = {"uri": "untitled:bench", "version": self.version}
        if self.version == 1:
            opened = {"textDocument": {**document, "languageId": "te", "text": text}}
            self.send({"method": "textDocument/didOpen", "params": opened})
        else:
            self.send(
                {"method": "textDocument/didChange", "params": {"textDocument": document, "contentChanges": [{"text": text}]}}
            )
        found = self.receive(lambda message: message.get("params", {}).get("version") == self.version)
        return len(found["params"]["diagnostics"])

    def end(self) -> None:
        """Says goodbye."""
        self.send({"id": 1, "method": "shutdown"})
        self.receive(lambda message: message.get("id") == 1)
        self.send({"method": "exit"})
        self.process.wait()


def rows() -> list[Row]:
    """What is measured, a row each, in milliseconds."""
    right = text()
    wrong = right.replace("z[i] = a * x[i]", "z[i] = a * q[i]", 1)
    server = Server()
    assert (server.told(right), server.told(wrong)) == (0, 1)
    number = count()
    timed = {
        "an unknown name": lambda: server.told(f"{wrong}-- {next(number)}\n"),
        "another promise": lambda: server.told(right.replace("stride >= 1", f"stride >= {1 + next(number)}", 1)),
        "nothing wrong": lambda: server.told(f"{right}-- {next(number)}\n"),
        "format": lambda: format_text(f"{right}-- {next(number)}\n"),
    }
    found: list[Row] = [
        {"what": what, "lines": right.count("\n"), "ms": round(1000 * seconds(work), 1)} for what, work in timed.items()
    ]
    server.end()
    return found


def main() -> None:
    """Prints the table, and keeps it where that is asked for."""
    parser = argparse.ArgumentParser(description="how soon an editor is told what is wrong")
    parser.add_argument("--json", type=Path, help="also write the numbers here")
    show("what an editor waits for", rows(), parser.parse_args().json)


if __name__ == "__main__":
    main()
