"""Barriers in shared memory, and copies by the engine that moves tiles of tensors (TMA).

A copy uses the async proxy: a thread's writes to shared memory precede it only with a fence by that thread. The meaning of a
copy of a tile depends on its tensor map, which the language does not have: `texpr.tma.reference` defines it.
"""

from texpr.isa.instruction import Instruction, Operand
from texpr.isa.levels import Level

MOST_PENDING = 7
"""The greatest number of groups in flight for which there are records: it is an immediate."""

REDUCTIONS = ("add", "min", "max", "inc", "dec", "and", "or", "xor")
"""The operations by which a tile is combined with the tensor."""

_WORDS = ("u32", "s32", "u64", "s64")
RUNS = {
    "add": ("u32", "s32", "u64", "f16", "bf16", "f32", "f64"),
    **dict.fromkeys(("min", "max"), (*_WORDS, "f16", "bf16")),
    **dict.fromkeys(("inc", "dec"), ("u32",)),
    **dict.fromkeys(("and", "or", "xor"), ("b32", "b64")),
}
"""The operations by which a run is combined, and their types. PTX ISA, "cp.reduce.async.bulk": "valid combinations"."""

_BARRIER = Operand("b", "u64", inout=True)
_MAP = Operand("map", "u8", (128,))


def _plain(name: str, title: str, template: str, effect: str, source: str, *operands: Operand) -> Instruction:
    return Instruction(
        name, title, Level.THREAD, operands, (("sm_90", f"{template};"),), "", effect=effect, source=f'PTX ISA 8.5, "{source}"'
    )


def _load(rank: int) -> Instruction:
    verb = f"cp.async.bulk.tensor.{rank}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
    return _plain(
        f"cp_async_bulk_tensor_{rank}d_load",
        f"starts a copy of a box of a tensor in {rank} dimensions, its corner at c, to a tile y of shared memory",
        f"{verb} [{{y}}], [{{map}}, {_corner(rank)}], [{{b}}]",
        "arrives at barrier with its bytes, by the async proxy",
        "cp.async.bulk.tensor",
        _MAP, Operand("c", "i32", (rank,)), _BARRIER, Operand("y", "u8", (16,), inout=True),
    )  # fmt: skip


def _shared(rank: int) -> Instruction:
    verb = f"cp.async.bulk.tensor.{rank}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster"
    return _plain(
        f"cp_async_bulk_tensor_{rank}d_load_multicast",
        f"starts a copy of a box in {rank} dimensions, its corner at c, to the tile y of each block that m names",
        f"{verb} [{{y}}], [{{map}}, {_corner(rank)}], [{{b}}], {{m}}",
        "arrives at barrier of each block with its bytes, by the async proxy",
        "cp.async.bulk.tensor",
        _MAP, Operand("c", "i32", (rank,)), _BARRIER, Operand("m", "u16"), Operand("y", "u8", (16,), inout=True),
    )  # fmt: skip


def _columns(rank: int) -> Instruction:
    offsets = ", ".join(f"{{o{at}}}" for at in range(rank - 2))
    verb = f"cp.async.bulk.tensor.{rank}d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes"
    return _plain(
        f"cp_async_bulk_tensor_{rank}d_load_im2col",
        f"starts a copy of a column of pixels in {rank} dimensions, from the one at c on, each moved by o, to a tile y",
        f"{verb} [{{y}}], [{{map}}, {_corner(rank)}], [{{b}}], {{ {offsets} }}",
        "arrives at barrier with its bytes, by the async proxy",
        "cp.async.bulk.tensor",
        _MAP, Operand("c", "i32", (rank,)), Operand("o", "u16", (rank - 2,)), _BARRIER, Operand("y", "u8", (16,), inout=True),
    )  # fmt: skip


def _store(rank: int, op: str | None) -> Instruction:
    combined = "" if op is None else f", each element combined by {op}"
    verb = "cp.async" if op is None else "cp.reduce.async"
    how = "tile.bulk_group" if op is None else f"{op}.tile.bulk_group"
    return _plain(
        f"cp_async_bulk_tensor_{rank}d_store" if op is None else f"cp_reduce_async_bulk_tensor_{rank}d_{op}",
        f"starts a copy of a tile x of shared memory to a box of a tensor in {rank} dimensions, its corner at c{combined}",
        f"{verb}.bulk.tensor.{rank}d.global.shared::cta.{how} [{{map}}, {_corner(rank)}], [{{x}}]",
        "joins bulk group, by the async proxy",
        "cp.async.bulk.tensor" if op is None else "cp.reduce.async.bulk.tensor",
        Operand("x", "u8", (16,)), Operand("c", "i32", (rank,)), _MAP,
    )  # fmt: skip


def _run(op: str | None, dtype: str | None = None) -> Instruction:
    """A copy of a run from shared memory, or its reduction; sums of 16-bit floats keep subnormal numbers."""
    verb = "cp.async" if op is None else "cp.reduce.async"
    more = "" if op is None else f".{op}.noftz.{dtype}" if op == "add" and dtype in ("f16", "bf16") else f".{op}.{dtype}"
    combined = "" if op is None else f", elements of type {dtype} combined by {op}"
    return _plain(
        "cp_async_bulk_store" if op is None else f"cp_reduce_async_bulk_{op}_{dtype}",
        f"starts a copy of n bytes, 16 or a multiple, from x of shared memory to y of global memory{combined}",
        f"{verb}.bulk.global.shared::cta.bulk_group{more} [{{y}}], [{{x}}], {{n}}",
        "joins bulk group, by the async proxy",
        f"{verb}.bulk",
        Operand("x", "u8", (16,)), Operand("n", "u32"), Operand("y", "u8", (16,), inout=True),
    )  # fmt: skip


def _rows(name: str, title: str, ptx: str, effect: str, *operands: Operand) -> Instruction:
    """A copy between a tile and four rows of a matrix, which only targets of one generation have."""
    text = f"cp.async.bulk.tensor.2d.{ptx.replace('{corner}', _corner(5))};"
    mode = name.split("_")[1]
    return Instruction(
        f"cp_async_bulk_tensor_2d_{name}", title, Level.THREAD, (_MAP, Operand("c", "i32", (5,)), *operands),
        (("sm_100a", text), ("sm_103a", text)), "", effect=effect, source=f'PTX ISA 8.6, "cp.async.bulk.tensor": .tile::{mode}',
    )  # fmt: skip


def _sent(dtype: str, count: int) -> Instruction:
    """A store of some elements to shared memory of a block of the cluster, which is over when its barrier has them."""
    vector, given = (f".v{count}", "{ " + ", ".join(f"{{x{at}}}" for at in range(count)) + " }") if count > 1 else ("", "{x}")
    x = Operand("x", dtype, (count,) if count > 1 else ())
    return _plain(
        f"st_async_{dtype}" if count == 1 else f"st_async_v{count}_{dtype}",
        f"starts a store of {count} of {dtype} to y in a block of the cluster, and tells barrier b of that block its bytes",
        f"st.async.weak.shared::cluster.mbarrier::complete_tx::bytes{vector}.{dtype} [{{y}}], {given}, [{{b}}]",
        "arrives at barrier with its bytes, by the async proxy",
        "st.async",
        x, _BARRIER, Operand("y", dtype, (count,) if count > 1 else (), inout=True),
    )  # fmt: skip


def _combined(op: str, dtype: str) -> Instruction:
    """An update of an element of shared memory of a block of the cluster, which is over when its barrier has its bytes."""
    return _plain(
        f"red_async_{op}_{dtype}",
        f"starts y {op} x as one step, in a block of the cluster, and tells barrier b of that block its bytes",
        f"red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.{op}.{dtype} [{{y}}], {{x}}, [{{b}}]",
        "arrives at barrier with its bytes, by the async proxy",
        "red.async",
        Operand("x", OWN.get(dtype, dtype)), _BARRIER, Operand("y", OWN.get(dtype, dtype), inout=True),
    )  # fmt: skip


OWN = {"s32": "i32", "b32": "u32"}
"""The language's names of PTX's types."""

COMBINED = {
    **dict.fromkeys(("inc", "dec"), ("u32",)),
    **dict.fromkeys(("min", "max"), ("u32", "s32")),
    "add": ("u32", "s32", "u64"),
    **dict.fromkeys(("and", "or", "xor"), ("b32",)),
}
"""The operations of `red.async`, and their types."""

SENT = {"u32": (1, 2, 4), "f32": (1, 2, 4), "u64": (1, 2), "f64": (1, 2)}
"""Types of `st.async`, and how many elements of each: 16 bytes at most."""


def _corner(rank: int) -> str:
    return "{ " + ", ".join(f"{{c{at}}}" for at in range(rank)) + " }"


def _wait(pending: int, read: str) -> Instruction:
    what = "have yet to read" if read else "are unfinished"
    return _plain(
        f"cp_async_bulk_wait_group_{pending}{read.replace('.', '_')}",
        f"waits until at most {pending} of this thread's bulk groups, the latest, {what}",
        f"cp.async.bulk.wait_group{read} {pending}",
        "awaits bulk groups",
        "cp.async.bulk.wait_group",
    )


INSTRUCTIONS = (
    _plain("mbarrier_init", "makes a barrier, whose phases wait for n arrivals each",
           "mbarrier.init.shared::cta.b64 [{b}], {n}", "makes barrier", "mbarrier.init", Operand("n", "u32"), _BARRIER),
    _plain("mbarrier_arrive", "arrives at a barrier", "mbarrier.arrive.release.cta.shared::cta.b64 _, [{b}]",
           "arrives at barrier", "mbarrier.arrive", _BARRIER),
    _plain("mbarrier_arrive_expect_tx", "arrives at a barrier, whose phase then waits for n bytes more",
           "mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [{b}], {n}", "arrives at barrier", "mbarrier.arrive",
           Operand("n", "u32"), _BARRIER),
    _plain("mbarrier_try_wait_parity", "whether the phase of parity p has completed, after a while at the most",
           "mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 {done}, [{b}], {p}", "awaits phase", "mbarrier.try_wait",
           Operand("b", "u64"), Operand("p", "u32"), Operand("done", "bool", inout=True)),
    _plain("fence_proxy_async", "this thread's writes of shared memory come before its later copies of tiles",
           "fence.proxy.async.shared::cta", "orders proxies", "membar, fence"),
    _plain("fence_mbarrier_init", "barriers that this thread made are known to copies", "fence.mbarrier_init.release.cluster",
           "orders proxies", "membar, fence"),
    *(_load(rank) for rank in range(1, 6)),
    *(_shared(rank) for rank in range(1, 6)),
    *(_columns(rank) for rank in range(3, 6)),
    _rows("load_gather4", "starts a copy of four rows of a matrix, c their column and rows, to a tile y",
          "shared::cluster.global.tile::gather4.mbarrier::complete_tx::bytes [{y}], [{map}, {corner}], [{b}]",
          "arrives at barrier with its bytes, by the async proxy", _BARRIER, Operand("y", "u8", (16,), inout=True)),
    *(_store(rank, None) for rank in range(1, 6)),
    _rows("store_scatter4", "starts a copy of a tile x of four rows to rows of a matrix, c their column and rows",
          "global.shared::cta.tile::scatter4.bulk_group [{map}, {corner}], [{x}]", "joins bulk group, by the async proxy",
          Operand("x", "u8", (16,))),
    *(_store(rank, op) for op in REDUCTIONS for rank in range(1, 6)),
    _plain("cp_async_bulk_load", "starts a copy of n bytes, 16 or a multiple, from x of global to y of shared memory",
           "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [{y}], [{x}], {n}, [{b}]",
           "arrives at barrier with its bytes, by the async proxy", "cp.async.bulk",
           Operand("x", "u8", (16,)), Operand("n", "u32"), _BARRIER, Operand("y", "u8", (16,), inout=True)),
    _run(None),
    *(_sent(dtype, count) for dtype, counts in SENT.items() for count in counts),
    *(_combined(op, dtype) for op, dtypes in COMBINED.items() for dtype in dtypes),
    *(_run(op, dtype) for op, dtypes in RUNS.items() for dtype in dtypes),
    _plain("cp_async_bulk_commit_group", "the stores that this thread started since its last commit are one bulk group",
           "cp.async.bulk.commit_group", "closes bulk group", "cp.async.bulk.commit_group"),
    *(_wait(pending, read) for read in ("", ".read") for pending in range(MOST_PENDING + 1)),
)  # fmt: skip
