"""What `texpr explain` says of asynchronous copies and of the waits for them."""

from __future__ import annotations

from tests.backends.transfers import STAGES

from texpr.explain.kernels import barriers, copies
from texpr.ir import kernel as k
from texpr.ir.kernel_parse import parse_plan


def test_copies_and_waits_are_named() -> None:
    kernel = next(k.kernels(parse_plan(STAGES).steps))
    first, other = copies(kernel)
    assert first == {"engine": "cp.async", "from": "x", "to": "stage", "bytes": 16, "when": "0 < c", "line": 17}
    assert (other["when"], other["line"]) == ("i + 1 < c", 24)
    found = list(barriers(kernel))
    assert [(each["kind"], each["pending"]) for each in found] == [
        ("copies", 1),
        ("block", None),
        ("block", None),
        ("copies", 0),
    ]
    assert found[2]["covers"] == [{"kind": "WAR", "buffer": "stage", "from_line": 33, "to_line": 33, "carried_by": "i"}]
