"""Programs whose locals live in lanes, and what they are run on. Rows are of `T`, a type."""

from __future__ import annotations

import re

from texpr.support.record import Record


class Lanes(Record, dict=True):
    """A program of rows of `width` elements of T, under a `schedule`; `shuffles`: how many stand in its kernel."""

    name: str
    width: int
    body: str
    shuffles: int
    schedule: str = ""
    dtype: str = "i32"

    def text(self, dtype: str = "") -> str:
        """The function `f`, of rows of the type."""
        body = self.body.strip()
        head = f"fn f(x: T[m, {self.width}]): T[m, {self.width}] {{\n    new y: T[m, {self.width}]\n"
        whole = f"{head}    par m |r| {{\n        {body}\n    }}\n    return y\n}}"
        return re.sub(r"\bT\b", dtype or self.dtype, whole)


STENCIL = Lanes("stencil", 32, """
        new t: T[32]
        par 32 |i| { t[i] = x[r, i] + x[r, i] }
        par 32 |j| { y[r, j] = select(j > 0, t[j - 1], t[j]) + t[j] + select(j < 31, t[j + 1], t[j]) }""", 2)  # fmt: skip

PROGRAMS = (
    STENCIL,
    Lanes("rotated", 32, "new t: T[32] par 32 |i| { t[i] = x[r, i] } par 32 |j| { y[r, j] = t[(j + 5) % 32] }", 1),
    Lanes("reversed", 32, "new t: T[32] par 32 |i| { t[31 - i] = x[r, i] } par 32 |j| { y[r, j] = t[j] + t[(3 * j) % 32] }", 2),
    Lanes("transposed", 32, """
        new t: T[4, 8]
        par 4 |a| { par 8 |b| { t[a, b] = x[r, 8 * a + b] } }
        par 8 |c| { par 4 |d| { y[r, 4 * c + d] = t[d, c] } }""", 1),
    Lanes("broadcast", 32, """
        new t: T[32]
        par 32 |i| { t[i] = x[r, i] }
        par 32 |j| { y[r, j] = t[7] + t[j] }""", 1),
    Lanes("of_all", 32, """
        new t: T[32]
        par 32 |i| { t[i] = x[r, i] }
        new p: T
        p = t[5] + t[31]
        if t[7] == t[8] { par 32 |j| { y[r, j] = t[31 - j] + p } } else { par 32 |k| { y[r, k] = p } }""", 5),
    Lanes("steps", 32, """
        new a: T[32]
        par 32 |i| { a[i] = x[r, i] }
        static for d in 0..5 {
            new b: T[32]
            par 32 |i| { b[i] = select(i >= 2 ** d, a[i] + a[i - 2 ** d], a[i]) }
            par 32 |i| { a[i] = b[i] }
        }
        par 32 |i| { y[r, i] = a[i] }""", 5),
    Lanes("all_with_all", 32, """
        new t: T[32]
        par 32 |i| { t[i] = x[r, i] }
        par 32 |j| {
            y[r, j] = t[j]
            seq 32 |k| { y[r, j] = select(j >= k, y[r, j] + t[k], y[r, j]) }
        }""", 1),
    Lanes("prime", 29, """
        new t: T[29]
        par 29 |i| { t[i] = x[r, i] }
        par 29 |j| { y[r, j] = select(j > 0, t[j - 1], t[j]) + t[28 - j] }""", 2),
    Lanes("few", 5, "new t: T[5] par 5 |i| { t[i] = x[r, i] } par 5 |j| { y[r, j] = t[4 - j] + t[(j + 2) % 5] }", 2),
    Lanes("one", 1, "new t: T[32] par 32 |i| { t[i] = x[r, 0] } par 1 |j| { y[r, j] = t[3] }", 1),
    Lanes("tested", 30, """
        new t: T[30]
        par 30 |i| { t[i] = x[r, i] }
        par 30 |j| {
            new s: T
            s = t[j]
            seq 7 |k| { if x[r, j] == x[r, (j + k) % 30] { s = s + t[(j + k) % 30] } }
            if x[r, j] == s { y[r, j] = s + t[29 - j] } else { y[r, j] = t[(j + 3) % 30] }
        }""", 3),
    Lanes("overwritten", 32, """
        new t: T[32]
        par 32 |i| { t[i] = x[r, i] }
        par 32 |j| {
            y[r, j] = x[r, j]
            if y[r, j] == x[r, 0] {
                y[r, j] = t[(j + 1) % 32]
                y[r, j] = y[r, j] + t[(j + 2) % 32]
            }
        }""", 2),
    Lanes("two_slots", 64, """
        new t: T[64]
        par 64 |i| { t[i] = x[r, i] }
        par 64 |j| { y[r, j] = t[j / 32 * 32 + (j + 1) % 32] + t[63 - j] }""", 2,
        "split(i, 32) -> (io, ii) split(j, 32) -> (jo, ji) bind(ii, lane) bind(ji, lane)"),
    Lanes("slot_by_lane", 64, """
        new t: T[64]
        par 64 |i| { t[i] = x[r, i] }
        par 64 |j| { y[r, j] = t[(j + 1) % 64] + t[j / 2] }""", 3,
        "split(i, 32) -> (io, ii) split(j, 32) -> (jo, ji) bind(ii, lane) bind(ji, lane)"),
    Lanes("halo", 45, """
        seq 2 |c| {
            new t: T[34]
            par 34 |i| { t[i] = select(32 * c + i >= 1 and 32 * c + i <= 45, x[r, max(0, min(44, 32 * c + i - 1))], x[r, 0]) }
            par 32 |j| { if 32 * c + j < 45 { y[r, 32 * c + j] = t[j] + t[j + 1] + t[j + 2] } }
        }""", 4,
        "split(i, 32) -> (io, ii) bind(ii, lane) bind(j, lane)"),
    Lanes("four_each", 128, """
        new t: T[128]
        par 128 |i| { t[i] = x[r, i] }
        par 128 |j| { y[r, j] = t[127 - j] + t[j / 4 * 4 + 3] }""", 1,
        "split(i, 4) -> (io, ii) split(j, 4) -> (jo, ji) bind(io, lane) bind(jo, lane)"),
    Lanes("ragged_slots", 50, """
        new t: T[50]
        par 50 |i| { t[i] = x[r, i] }
        par 50 |j| { y[r, j] = t[j / 32 * 32] + t[j] }""", 1,
        "split(i, 32) -> (io, ii) split(j, 32) -> (jo, ji) bind(ii, lane) bind(ji, lane)"),
    Lanes("warps_of_a_block", 128, """
        new t: T[4, 32]
        par 4 |w| { par 32 |i| { t[w, i] = x[r, 32 * w + i] } }
        par 4 |v| { par 32 |j| { y[r, 32 * v + j] = t[v, 31 - j] + t[v, (j + 1) % 32] } }""", 2,
        "bind(w, warp) bind(i, lane) bind(v, warp) bind(j, lane)"),
    Lanes("last_warp", 48, """
        new t: T[48]
        par 48 |i| { t[i] = x[r, i] }
        par 48 |j| { y[r, j] = t[j / 16 * 16 + 15 - j % 16] }""", 1,
        "bind(i, block.x) bind(j, block.x)"),
    Lanes("thin_block", 20, """
        new t: T[20]
        par 20 |i| { t[i] = x[r, i] }
        par 20 |j| { y[r, j] = t[19 - j] }""", 1,
        "bind(i, block.x) bind(j, block.x)"),
    Lanes("begun_late", 32, """
        new t: T[64]
        seq 5 |k| { if k >= 3 { par 32 |i| { t[32 * k - 96 + i] = x[r, i] + x[r, (i + k) % 32] } } }
        par 32 |j| { y[r, j] = t[31 - j] + t[63 - j] }""", 2,
        "bind(i, lane) bind(j, lane)"),
    Lanes("thin_and_tested", 20, """
        new t: T[20]
        par 20 |i| { t[i] = x[r, i] }
        par 20 |j| { y[r, j] = select(j > 0, t[j - 1], t[j]) + select(j < 19, t[j + 1], t[j]) }""", 2,
        "bind(i, block.x) bind(j, block.x)"),
    Lanes("last_and_tested", 48, """
        new t: T[48]
        par 48 |i| { t[i] = x[r, i] }
        par 48 |j| { y[r, j] = select(j % 16 > 0, t[j - 1], t[j]) + select(j % 16 < 15, t[j + 1], t[j]) }""", 2,
        "bind(i, block.x) bind(j, block.x)"),
    Lanes("ring", 32, """
        new t: T[2, 32]
        par 32 |i| { t[0, i] = x[r, i] }
        seq 6 |k| { par 32 |j| { t[(k + 1) % 2, j] = t[k % 2, (j + 1) % 32] + x[r, j] } }
        par 32 |l| { y[r, l] = t[0, l] }""", 1,
        "bind(i, lane) bind(j, lane) bind(l, lane)"),
)  # fmt: skip
