"""What a scheduled program accesses is inside of its memory, also where extents are products of sizes."""

from __future__ import annotations

import pytest
from tests.proof.schedule.test_planted import by_hand
from tests.proof.schedule.trials import is_proved

from texpr.ir.proof import Verdict

FLAT = """
fn doubled(x: f32[M * N]): f32[M, N] {
    new t: f32[M, N]
    new y: f32[M, N]
    par M |i| { par N |j| { t[i, j] = 2.0 * x[N * i + j] } }
    par M |k| { par N |l| { y[k, l] = t[k, l] + 1.0 } }
    return y
}
"""
FLAT_TILE = """
fn doubled(x: f32[M * N]): f32[M, N] {
    new y: f32[M, N]
    new s: f32[M * N]
    new u: f32[M * N]
    par M |a| { par N |b| { s[N * a + b] = x[N * a + b] } }
    par M |i| { par N |j| { u[N * i + j] = 2.0 * s[N * i + j] } }
    par M |k| { par N |l| { y[k, l] = u[N * k + l] + 1.0 } }
    return y
}
"""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("u[N * i + j] = 2.0 * s[", "u[N * i + j] = 2.0 * s["),
        ("new u: f32[M * N]", "new u: f32[M * N - 1]"),  # a tile is short
        ("new u: f32[M * N]", "new u: f32[N * N]"),
        ("u[N * ", "u[1 + N * "),  # its last element is outside
        ("par M |a| {", "par M + 4 |a| {"),  # a copy reads, and stores, outside
        ("par M |i| {", "par M + 4 |i| {"),  # holes read, and write, outside
    ],
)
def test_what_is_touched_is_inside(old: str, new: str) -> None:
    """Where `faults` of a program say nothing, too, as products of sizes are not affine."""
    found = by_hand(FLAT, FLAT_TILE.replace(old, new), "", "0 [i, j]", "1 [k, l]")
    assert is_proved(found) is (old == new)
    assert old == new or any(each.what == "is inside" for each in (*found.of(Verdict.REFUSED), *found.of(Verdict.UNDECIDED)))


def test_holes_read_inside_of_what_callers_gave() -> None:
    """Nobody reads what these make: so it need not be what was written, but it must be there."""
    lines = FLAT_TILE.replace("    new s: f32[M * N]\n", "").replace(
        "    par M |a| { par N |b| { s[N * a + b] = x[N * a + b] } }\n", ""
    )
    longer = lines.replace("f32[M * N]\n    par", "f32[(M + 4) * N]\n    par").replace("s[N * i", "x[N * i")
    notes = "0 [i, j]", "1 [k, l]"
    assert is_proved(by_hand(FLAT, longer, *notes))
    holes = longer.replace("par M |i| {", "par M + 4 |i| {")
    (told,) = (found := by_hand(FLAT, holes, *notes)).of(Verdict.REFUSED)
    assert told.what == "is inside" and "x[" in told.about and not found.of(Verdict.UNDECIDED)
    assert is_proved(
        by_hand(
            FLAT.replace("x: f32[M * N]", "x: f32[(M + 4) * N]"), holes.replace("x: f32[M * N]", "x: f32[(M + 4) * N]"), *notes
        )
    )
