"""The fragments of mma as the figures of the PTX ISA have them, element by element: written from these, not from a layout.

PTX ISA 8.5, 9.7.14.5 "Matrix multiply-accumulate operation using mma instruction": "Matrix Fragments for mma.m8n8k4 with
.f64 …" (9.7.14.5.2), of others with .f64 likewise,
"… mma.m16n8k8" (9.7.14.5.7), "… mma.m16n8k16 with floating point type" (9.7.14.5.8), "… with integer
type" (9.7.14.5.9), "… mma.m16n8k32" (9.7.14.5.10). `group` is groupID = %laneid >> 2, `thread` threadID_in_group = %laneid % 4.
"""

from __future__ import annotations

from collections.abc import Callable

Place = Callable[[int, int, int], tuple[int, int]]
"""The row and the column of element i that a lane holds, from its group, its number there, and i."""


def _c(group: int, thread: int, i: int) -> tuple[int, int]:
    return (group if i < 2 else group + 8), thread * 2 + (i & 1)


def _a_m16n8k16(group: int, thread: int, i: int) -> tuple[int, int]:
    row = group if 0 <= i < 2 or 4 <= i < 6 else group + 8
    return row, thread * 2 + (i & 1) + (0 if i < 4 else 8)


def _b_m16n8k16(group: int, thread: int, i: int) -> tuple[int, int]:
    return thread * 2 + (i & 1) + (0 if i < 2 else 8), group


def _a_m16n8k8(group: int, thread: int, i: int) -> tuple[int, int]:
    return (group if i in (0, 1) else group + 8), thread * 2 + (i & 1)


def _b_m16n8k8(group: int, thread: int, i: int) -> tuple[int, int]:
    return thread * 2 + i, group


def _a_tf32(group: int, thread: int, i: int) -> tuple[int, int]:
    return (group if i in (0, 2) else group + 8), (thread if i in (0, 1) else thread + 4)


def _b_tf32(group: int, thread: int, i: int) -> tuple[int, int]:
    return (thread if i == 0 else thread + 4), group


def _a_m16n8k32(group: int, thread: int, i: int) -> tuple[int, int]:
    row = group if 0 <= i < 4 or 8 <= i < 12 else group + 8
    return row, thread * 4 + (i & 3) + (0 if i < 8 else 16)


def _b_m16n8k32(group: int, thread: int, i: int) -> tuple[int, int]:
    return thread * 4 + (i & 3) + (0 if i < 4 else 16), group


def _a_m16n8k16_bytes(group: int, thread: int, i: int) -> tuple[int, int]:
    return (group if i < 4 else group + 8), thread * 4 + (i & 3)


def _b_m16n8k16_bytes(group: int, thread: int, i: int) -> tuple[int, int]:
    return thread * 4 + i, group


def _c_m8n8k4(group: int, thread: int, i: int) -> tuple[int, int]:
    return group, thread * 2 + i


def _a_m16n8k4_doubles(group: int, thread: int, i: int) -> tuple[int, int]:
    return (group if i == 0 else group + 8), thread


def _a_m16n8k8_doubles(group: int, thread: int, i: int) -> tuple[int, int]:
    return (group if i in (0, 2) else group + 8), (thread if i in (0, 1) else thread + 4)


def _a_m16n8k16_doubles(group: int, thread: int, i: int) -> tuple[int, int]:
    return (group if i % 2 == 0 else group + 8), (i * 2 + thread if i % 2 == 0 else i * 2 - 2 + thread)


FIGURES: dict[str, tuple[tuple[int, Place], tuple[int, Place], tuple[int, Place]]] = {
    "m16n8k16 f16": ((8, _a_m16n8k16), (4, _b_m16n8k16), (4, _c)),
    "m16n8k16 bf16": ((8, _a_m16n8k16), (4, _b_m16n8k16), (4, _c)),
    "m16n8k16 f16 into f16": ((8, _a_m16n8k16), (4, _b_m16n8k16), (4, _c)),
    "m16n8k8 bf16": ((4, _a_m16n8k8), (2, _b_m16n8k8), (4, _c)),
    "m16n8k32 i8": ((16, _a_m16n8k32), (8, _b_m16n8k32), (4, _c)),
    "m16n8k16 u8": ((8, _a_m16n8k16_bytes), (4, _b_m16n8k16_bytes), (4, _c)),
    "m8n8k4 f64": ((1, lambda g, t, i: (g, t)), (1, lambda g, t, i: (t, g)), (2, _c_m8n8k4)),
    "m16n8k4 f64": ((2, _a_m16n8k4_doubles), (1, lambda g, t, i: (t, g)), (4, _c)),
    "m16n8k8 f64": ((4, _a_m16n8k8_doubles), (2, lambda g, t, i: (t if i == 0 else t + 4, g)), (4, _c)),
    "m16n8k16 f64": ((8, _a_m16n8k16_doubles), (4, lambda g, t, i: (t + i * 4, g)), (4, _c)),
    "m16n8k8 tf32": ((4, _a_tf32), (2, _b_tf32), (4, _c)),
}
"""Of each operand how many elements a lane holds, and where they are."""


def row_of_ldmatrix(matrix: int, row: int) -> int:
    """The lane that says where a row of a matrix of ldmatrix is (PTX ISA 8.5, "ldmatrix": threads 0–7, 8–15, 16–23, 24–31)."""
    return 8 * matrix + row


def piece_of_ldmatrix(lane: int) -> tuple[int, tuple[int, int]]:
    """The row of each matrix that a lane gets a register of, and the two columns in it (figure of "ldmatrix")."""
    return lane // 4, (2 * (lane % 4), 2 * (lane % 4) + 1)
