"""Programs whose copies run ahead in rings, and bugs to plant in what is emitted for them."""

from __future__ import annotations

from tests.lowering.tiled import BLUR, MATMUL

from texpr.support.record import Record

__all__ = ["BLUR", "MATMUL", "PLANTED", "Bug", "multiplying", "walking"]


def multiplying(via: str, stages: int, depth: int = 8, more: str = "") -> str:
    """Tiles of 16 × 32 of `MATMUL` by 64 threads, whose strips of `depth` come by `via`, `stages` − 1 ahead."""
    copies = {
        "ld": ("via=ld, fill=zero", "via=ld, fill=zero", ""),
        "cp_async": ("via=cp_async, fill=zero", "via=cp_async, fill=zero", "vectorize(As_1, 4)  vectorize(Bs_1, 4)"),
        "tma": ("via=tma, fill=zero", "via=tma, fill=zero, swizzle=128B", ""),
    }[via]
    return f"""
    split(i, 16) -> (bi, ti)  split(j, 32) -> (bj, tj)
    split(ti, 2) -> (t1, r1)  split(tj, 4) -> (t2, r2)  split(k, {depth}) -> (ko, ki)
    reorder(bi, bj, ko, t1, t2, ki, r1, r2)
    bind(bi, grid.y)  bind(bj, grid.x)
    stage(A, at=ko, in=shared, {copies[0]}) -> As
    stage(B, at=ko, in=shared, {copies[1]}) -> Bs
    {copies[2]} {more}
    pipeline(ko, stages={stages})
    bind(t1, block.y)  bind(t2, block.x)"""


def walking(via: str, stages: int) -> str:
    """Tiles of `BLUR` with their halo; a block goes down a column of them, so it is a `par` that is pipelined."""
    words = {"ld": "via=ld", "cp_async": "via=cp_async", "tma": "via=tma, box=(10, 40)"}[via]
    return f"""
    split(i, 8) -> (bi, ti)  split(j, 32) -> (bj, tj)
    reorder(bj, bi, ti, tj)
    bind(bj, grid.x)
    stage(x, at=bi, in=shared, fill=zero, {words}) -> xs
    pipeline(bi, stages={stages})"""


class Bug(Record, dict=True):
    """A change to the emitted text of three stages, and what may see it first: faults of the emulator, or the results."""

    via: str
    old: str
    new: str
    seen: str

    @property
    def checks(self) -> frozenset[str]:
        """The names of what may see it; which one does depends on the order of threads."""
        return frozenset(self.seen.split("|"))


EARLY = "unfinished_copy|uninitialised"
"""What is used has not landed, or was never copied."""

COPIED = r"= ko < \(K \+ 7\) / 8;"
PLANTED: dict[str, Bug] = {
    "one group more left by the wait": Bug("cp_async", r"tx_wait_async<1>", "tx_wait_async<2>", EARLY),
    "wait dropped": Bug("cp_async", r"tx_wait_async<1>\(\);", "", EARLY),
    "commit dropped": Bug("cp_async", r"tx_commit_async\(\);", "", EARLY),
    "copied to the next slot": Bug("cp_async", r"\(As, \(ko % 3", "(As, ((ko + 1) % 3", EARLY),
    "next slot used": Bug("cp_async", r"tx_muladd\(As\[\(\(ko \+ 1\) % 3", "tx_muladd(As[(ko % 3", EARLY),
    "one slot too few": Bug("cp_async", r"ko % 3 \*", "ko % 2 *", f"{EARLY}|race"),
    "barrier dropped": Bug("cp_async", r"__syncthreads\(\);", "", f"{EARLY}|race"),
    "first copy dropped": Bug("cp_async", COPIED, "= ko > 0 && ko < (K + 7) / 8;", EARLY),
    "last copy dropped": Bug("cp_async", COPIED, "= ko + 1 < (K + 7) / 8;", "C differs"),
    "first turn dropped": Bug("cp_async", r"int ko = 0; ko <", "int ko = 1; ko <", "uninitialised"),
    "last turn dropped": Bug("cp_async", r"\(K \+ 7\) / 8 \+ 2", "(K + 7) / 8 + 1", "C differs"),
    "wait for a phase dropped": Bug("tma", r"tx_barrier_wait\(.*\);", "", EARLY),
    "other parity": Bug("tma", r"/ 3 \+ 1\) % 2", "/ 3) % 2", f"{EARLY}|deadlock"),
    "parity of the first phase": Bug("tma", r"\(\(ko \+ 1\) / 3 \+ 1\) % 2", "0", f"{EARLY}|deadlock"),
    "next slot waited for": Bug("tma", r"(tx_barrier_wait\(\w+, )\(ko \+ 1\) % 3", r"\1ko % 3", EARLY),
    "box copied to the next slot": Bug("tma", r"(tx_load_tensor\(As, )ko % 3", r"\1(ko + 1) % 3", EARLY),
    "box of the next slot used": Bug("tma", r"tx_muladd\(As\[\(\(ko \+ 1\) % 3", "tx_muladd(As[(ko % 3", EARLY),
    "arrives at the next slot": Bug("tma", r"_full, ko % 3, 32", "_full, (ko + 1) % 3, 32", EARLY),
    "fewer bytes expected": Bug("tma", r"(expect\(.*, )1536\)", r"\g<1>1024)", EARLY),
    "slots are not known to be empty": Bug("tma", r"__syncthreads\(\);(?![\s\S]*__sync)", "", f"{EARLY}|race"),
    "a slot's barrier not made": Bug("tma", r"tx_barrier_init\(\w+, 2, 1\);", "", "bad_barrier"),
    "slots read without a fence": Bug("tma", r"tx_fence_async\(\);", "", "missing_fence"),
    "barriers not fenced": Bug("tma", r"tx_fence_init\(\);", "", "missing_fence"),
    "first box dropped": Bug("tma", COPIED, "= ko > 0 && ko < (K + 7) / 8;", "deadlock"),
    "last box dropped": Bug("tma", COPIED, "= ko + 1 < (K + 7) / 8;", "deadlock"),
    "a box too many": Bug("tma", COPIED, "= ko < (K + 7) / 8 + 1;", "abandoned_copy"),
    "first turn with boxes dropped": Bug("tma", r"int ko = 0; ko <", "int ko = 1; ko <", "deadlock"),
    "last turn with boxes dropped": Bug("tma", r"\(K \+ 7\) / 8 \+ 2", "(K + 7) / 8 + 1", "abandoned_copy"),
}
