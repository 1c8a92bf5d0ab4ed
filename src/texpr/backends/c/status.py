"""Status codes of emitted functions: 0 for success, positive ones from the driver, negative ones from this list."""

from __future__ import annotations

from texpr.support.record import Record


class Status(Record):
    """A status code: its number, its macro in C, and its message."""

    code: int
    macro: str
    text: str


OK = Status(0, "TEXPR_OK", "fine")
NO_DRIVER = Status(-1, "TEXPR_NO_DRIVER", "no driver: the driver's library was not found or is too old")
UNSUPPORTED_DEVICE = Status(-2, "TEXPR_UNSUPPORTED_DEVICE", "this device is none of those the code was built for")
NULL_POINTER = Status(-3, "TEXPR_NULL_POINTER", "a null pointer was given for an array that is not empty")
MISALIGNED = Status(-4, "TEXPR_MISALIGNED", "a pointer has less than the promised alignment")
BAD_SIZE = Status(-5, "TEXPR_BAD_SIZE", "a size or stride is out of range")
WHERE_FAILS = Status(-6, "TEXPR_WHERE_FAILS", "a `where` of the function does not hold for these sizes")
NO_WORKSPACE = Status(-7, "TEXPR_NO_WORKSPACE", "the function needs a workspace, and none was given")
NOT_LOADED = Status(-8, "TEXPR_NOT_LOADED", "the function was not loaded on the current device")
ASSUMPTION_FAILS = Status(-9, "TEXPR_ASSUMPTION_FAILS", "the data break an `assume` of the function")
NO_MEMORY = Status(-10, "TEXPR_NO_MEMORY", "no memory left on the host")
TENSOR_BASE = Status(-11, "TEXPR_TENSOR_BASE", "a tensor that is copied in tiles begins at no multiple of 16 bytes")
TENSOR_STRIDE = Status(
    -12, "TEXPR_TENSOR_STRIDE", "a stride of a tensor that is copied in tiles is no multiple of 16 bytes, or 2^40 bytes or more"
)
TENSOR_SIZE = Status(-13, "TEXPR_TENSOR_SIZE", "a size of a tensor that is copied in tiles is 0, or more than 2^31")
NO_TENSOR_MAPS = Status(-14, "TEXPR_NO_TENSOR_MAPS", "the driver cannot encode tensor maps: it is older than CUDA 12")
NO_CLUSTERS = Status(-15, "TEXPR_NO_CLUSTERS", "the driver cannot launch clusters of blocks: it is older than CUDA 12")

STATUSES = (
    OK, NO_DRIVER, UNSUPPORTED_DEVICE, NULL_POINTER, MISALIGNED, BAD_SIZE, WHERE_FAILS, NO_WORKSPACE, NOT_LOADED,
    ASSUMPTION_FAILS, NO_MEMORY, TENSOR_BASE, TENSOR_STRIDE, TENSOR_SIZE, NO_TENSOR_MAPS, NO_CLUSTERS,
)  # fmt: skip
"""Every status, from 0 down."""


def print_statuses() -> str:
    """The macros, as C text; a public header may define the same macros."""
    return "\n".join(f"#define {s.macro} ({s.code})" if s.code else f"#define {s.macro} 0" for s in STATUSES) + "\n"
