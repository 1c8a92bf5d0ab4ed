"""Reports files over 500 lines and functions over 60: each is a sign of a missing room."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

FILE_LINES = 500
FUNCTION_LINES = 60


def oversized(path: Path) -> Iterator[str]:
    """A line for each thing in `path` that is too long."""
    text = path.read_text(encoding="utf-8")
    lines = text.count("\n")
    if lines > FILE_LINES:
        yield f"{path}: {lines} lines"
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length > FUNCTION_LINES:
                yield f"{path}:{node.lineno}: `{node.name}` has {length} lines"


def main(roots: list[str]) -> int:
    """The report, for every Python file below `roots`; always succeeds, a reader decides."""
    files = [path for root in roots for path in sorted(Path(root).rglob("*.py"))]
    found = [line for path in files for line in oversized(path)]
    sys.stdout.writelines(f"{line}\n" for line in found)
    sys.stdout.write(f"{len(files)} files, {len(found)} over {FILE_LINES} lines a file or {FUNCTION_LINES} a function\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or ["src"]))
