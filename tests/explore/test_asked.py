"""Questions that anybody may have sent: what is none is refused, with a reason."""

from __future__ import annotations

import pytest

from texpr.explore.asked import LARGEST_TEXT, Asked, Unasked, asked_of, sizes_of


def test_what_is_left_out_has_a_default() -> None:
    assert asked_of({"text": "x"}) == (Asked("x"), "program")
    assert asked_of({"text": "x", "target": "", "schedule": "", "name": ""}) == (Asked("x"), "program")
    whole = {
        "text": "t",
        "name": "a.te",
        "function": "f",
        "target": "cpu",
        "schedule": "none",
        "sizes": "n=1_000",
        "pane": "proof",
    }
    assert asked_of(whole) == (Asked("t", "a.te", "f", "cpu", "none", (("n", 1000),)), "proof")


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ([], "an object"),
        (None, "an object"),
        ({"text": 1}, "`text` is a text"),
        ({"text": "x", "target": ["cpu"]}, "`target` is a text"),
        ({"text": "x" * (LARGEST_TEXT + 1)}, "a page takes"),
        ({"text": "", "function": "f" * 300}, "a page takes"),
        ({"text": "\ud800"}, "halves of characters"),
        ({"text": "", "sizes": "n"}, "`n` is no size"),
        ({"text": "", "sizes": "n=1e9"}, "is no size"),
        ({"text": "", "sizes": "n=" + "9" * 40}, "is no size"),
        ({"text": "", "sizes": "<b>=1"}, "is no size"),
    ],
)
def test_what_is_no_question_is_refused(data: object, reason: str) -> None:
    with pytest.raises(Unasked, match=reason):
        asked_of(data)


@pytest.mark.parametrize("text", ["n=1000, K=64", "n=1000 K=64", "n = 1_000; K=64,", " n=1000\nK=64 "])
def test_sizes_are_read_as_people_write_them(text: str) -> None:
    assert sizes_of(text) == (("n", 1000), ("K", 64))
