"""Asynchronous copies from global to shared memory. Their effect says what is incomplete when they return.

The thread that starts a copy sees the written data after it waits for the group, other threads after a further barrier.
Copies use the generic proxy: no fence is needed between them and ordinary accesses.
"""

from texpr.isa.instruction import Instruction, Operand
from texpr.isa.levels import Level

_CACHES = (("ca", 4), ("ca", 8), ("ca", 16), ("cg", 16))
"""Cache operators: `ca` caches at all levels, `cg` at L2 and below (16 bytes only)."""

MOST_PENDING = 7
"""The greatest number of groups in flight for which there are records: it is an immediate."""

_LATER = "joins commit group, by the generic proxy"


def _copy(cache: str, size: int) -> Instruction:
    return Instruction(
        f"cp_async_{cache}_{size}",
        f"starts a copy of {size} bytes, aligned to {size}, from global to shared memory",
        Level.THREAD,
        (Operand("x", "u8", (size,)), Operand("y", "u8", (size,), inout=True)),
        (("sm_80", f"cp.async.{cache}.shared.global [{{y}}], [{{x}}], {size};"),),
        f"par {size} |i| {{ y[i] = x[i] }}",
        effect=_LATER,
        source='PTX ISA 8.5, "cp.async": cp-size',
    )


def _copy_part(cache: str, size: int) -> Instruction:
    return Instruction(
        f"cp_async_{cache}_{size}_zfill",
        f"the same of the first n bytes, 0 ≤ n ≤ {size}: the others become zero, and no more of x is read",
        Level.THREAD,
        (Operand("x", "u8", (size,)), Operand("n", "i32"), Operand("y", "u8", (size,), inout=True)),
        (("sm_80", f"cp.async.{cache}.shared.global [{{y}}], [{{x}}], {size}, {{n}};"),),
        f"par {size} |i| {{ y[i] = select(i < n, x[i], 0) }}",
        effect=_LATER,
        source='PTX ISA 8.5, "cp.async": src-size',
    )


_COMMIT = Instruction(
    "cp_async_commit_group",
    "the copies that this thread started since its last commit become one group, perhaps an empty one",
    Level.THREAD,
    (),
    (("sm_80", "cp.async.commit_group;"),),
    "",
    effect="closes commit group",
    source='PTX ISA 8.5, "cp.async.commit_group"',
)


def _wait(pending: int) -> Instruction:
    return Instruction(
        f"cp_async_wait_group_{pending}",
        f"waits until at most {pending} of this thread's groups, the latest, are unfinished",
        Level.THREAD,
        (),
        (("sm_80", f"cp.async.wait_group {pending};"),),
        "",
        effect="awaits commit groups",
        source='PTX ISA 8.5, "cp.async.wait_group"',
    )


INSTRUCTIONS = (
    *(_copy(cache, size) for cache, size in _CACHES),
    *(_copy_part(cache, size) for cache, size in _CACHES),
    _COMMIT,
    *(_wait(pending) for pending in range(MOST_PENDING + 1)),
)
