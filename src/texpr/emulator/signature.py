"""Properties of kernels parsed from the text of a `.cu`, as their machine code lacks them: parameter names and cluster
shapes."""

from __future__ import annotations

import re
from collections.abc import Iterator

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_NAME = re.compile(r"(\w+)\s*$")
_CLUSTER = re.compile(r"__cluster_dims__\s*\(([^)]*)\)")


def parameter_names(text: str, kernel: str) -> tuple[str, ...]:
    """The names of `kernel`'s parameters, in order; empty if the text has no such kernel."""
    head = _head(text, kernel)
    if head is None:
        return ()
    found = (_NAME.search(part) for part in _split(head[1]))
    return tuple(name.group(1) for name in found if name)


def cluster_shape(text: str, kernel: str) -> tuple[int, int, int]:
    """The `__cluster_dims__` of `kernel`; (1, 1, 1) without one."""
    head = _head(text, kernel)
    found = _CLUSTER.search(head[0]) if head else None
    if found is None:
        return (1, 1, 1)
    x, y, z, *_ = (*(int(part) for part in found.group(1).split(",")), 1, 1)
    return (x, y, z)


def _head(text: str, kernel: str) -> tuple[str, str] | None:
    """The text from `__global__` to the kernel's name, and the text between the parentheses after it."""
    text = _COMMENT.sub(" ", text)
    found = re.search(rf"__global__((?:(?!__global__)[^{{}};])*?)\b{re.escape(kernel)}\s*\(", text)
    if found is None:
        return None
    depth, at = 1, found.end()
    while at < len(text) and depth:
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        at += 1
    return found.group(1), text[found.end() : at - 1]


def _split(parameters: str) -> Iterator[str]:
    """The parts between commas outside of brackets."""
    depth, start = 0, 0
    for at, char in enumerate(parameters):
        depth += {"(": 1, "<": 1, ")": -1, ">": -1}.get(char, 0)
        if char == "," and depth == 0:
            yield parameters[start:at]
            start = at + 1
    yield parameters[start:]
