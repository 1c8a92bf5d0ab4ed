"""Theorem 6 (FTTC) and Table 1 from schedules: sums that compute in holes are refused exactly at level 3, and right elsewhere.

    split(i, B) -> (c, b)  split(b, e) -> (t, phase)        S at run time, so that B < S for some of them

The kernel's own holes are read: a hole that is not zero makes another sum.
"""

from __future__ import annotations

from random import Random

import pytest
from tests.schedule.laid import integers, laid, wrong
from tests.schedule.test_unguard import ROWSUM

from texpr.ir import kernel as k
from texpr.proof.search import proved
from texpr.support.diagnostic import TexprError
from texpr.tma.correctness import fttc

STRIDED = """split(i, {box}) -> (c, b)  split(b, {step}) -> (t, phase)  split(k, 32) -> (bk, tk)  reorder(bk, c, phase, tk, t)
stage(A, at=phase, in=shared, via=tma{more}) -> As  unguard(t)"""


def check(box: int, step: int, more: str = "") -> None:
    schedule = STRIDED.format(box=box, step=step, more=more)
    if fttc(box + 1, box, step):
        with pytest.raises(TexprError) as found:
            laid(ROWSUM, schedule)
        told = f"dimension 0, of size S = M, box B = {box}, element stride e = {step}"
        assert found.value.diagnostics[0].message.endswith(told)
        return
    made = laid(ROWSUM, schedule)
    assert any(isinstance(s, k.CopyTensor) for s in made.statements)
    counts = proved(made.function, made.plan).counts
    assert not counts["refused"] and not counts["undecided"]
    for size in sorted({0, 1, box - 1, box, box + 1, 2 * box + step, 3 * box - 1}):
        arrays = {"A": integers(size, 36, seed=size) + 7}
        assert wrong(made, arrays, {"M": size, "K": 36}, (None,)) is None, (size, box, step)


SAMPLE = ((4, 1), (4, 2), (4, 3), (4, 4), (4, 5), (6, 4), (7, 7), (10, 3), (12, 8), (16, 8), (5, 20))


@pytest.mark.parametrize(("box", "step"), SAMPLE)
def test_fttc(box: int, step: int) -> None:
    check(box, step)


def test_the_sample_has_every_level() -> None:
    found = [(step >= box, step > 1 and box % step == 0, fttc(box + 1, box, step)) for box, step in SAMPLE]
    assert all(any(column) for column in zip(*found, strict=True))


@pytest.mark.parametrize(("box", "step"), [(8, 4), (8, 3)])
def test_fttc_with_a_swizzle(box: int, step: int) -> None:
    check(box, step, ", swizzle=128B")


@pytest.mark.parametrize("via", ["tma", "ld"])
@pytest.mark.parametrize("more", ["", ", save_traffic=true"])
@pytest.mark.parametrize(("box", "step"), [(4, 5), (3, 8), (1, 2)])
def test_a_stride_beyond_the_box(box: int, step: int, more: str, via: str) -> None:
    """Figure 5 of the seed with e = 5: iterations of the stride beyond the box are holes, whose tile is zero."""
    if via == "ld" and more:
        return
    words = f"{STRIDED.format(box=box, step=step, more=f', fill=zero{more}')}  unguard(phase)".replace("=tma", f"={via}")
    made = laid(ROWSUM, words)
    for size in (0, 1, box, box + 1, 3 * box - 1, 16):
        assert wrong(made, {"A": integers(size, 36, seed=size) + 7}, {"M": size, "K": 36}, (None, 0)) is None, size


def test_a_refusal_has_a_reason() -> None:
    """The copy was made to fill before it was asked to test the stride."""
    with pytest.raises(TexprError, match="not its fill, as it is copied where phase < 4 fails"):
        laid(ROWSUM, f"{STRIDED.format(box=4, step=5, more='')}  unguard(phase)")


@pytest.mark.long
@pytest.mark.parametrize("seed", range(40))
def test_many(seed: int) -> None:
    random = Random(seed)
    check(random.randint(1, 24), random.randint(1, 10), random.choice(("", ", fill=zero", ", swizzle=128B")))


MERGED = """
fn sums(A: f32[P, M, K] align(16)): f32[K]
    where K % 4 == 0{}
{{
    new y: f32[K]
    par K |k| {{
        new s: f32 = 0.0
        seq P |p| reduce(s) {{ seq M |i| reduce(s) {{ s += A[p, i, k] }} }}
        y[k] = s
    }}
    return y
}}"""


@pytest.mark.parametrize(
    ("box", "promise"), [(5, ""), (16, ""), (8, ", M % 8 == 0")], ids=["five", "sixteen", "a box that divides"]
)
def test_merged_rows_are_protected(box: int, promise: str) -> None:
    """The engine tests the merge of both: behind its end all is zero, whatever the sizes."""
    words = f"merge(p, i) -> m  split(m, {box}) -> (c, t)  split(k, 32) -> (bk, tk)  reorder(bk, c, tk, t)\n"
    made = laid(MERGED.format(promise), words + "stage(A, at=c, in=shared, via=tma) -> As  unguard(t)")
    for images, rows in ((3, 7), (2, 16), (1, 1), (0, 5), (4, 0), (3, 24)):
        if promise and rows % 8:
            continue
        arrays = {"A": integers(images, rows, 36) + 7}
        assert wrong(made, arrays, {"P": images, "M": rows, "K": 36}, (None, 0)) is None, (images, rows)
