"""Barriers of a cluster, of a block and of a warp. Their meaning is empty: the semantics of par already orders what they
order."""

from texpr.isa.instruction import Instruction, Operand
from texpr.isa.levels import Level

INSTRUCTIONS = (
    Instruction(
        "bar_sync",
        "all threads of the block arrive, and see each other's writes to shared and global memory",
        Level.BLOCK,
        (),
        (("sm_80", "bar.sync 0;"),),
        "",
        effect="joins block",
        source='PTX ISA, "bar, barrier"',
    ),
    Instruction(
        "bar_sync_part",
        "so many threads of the block, whole warps, arrive at one of its barriers 0 to 15, and see each other's writes",
        Level.BLOCK,
        (Operand("id", "i32"), Operand("threads", "i32")),
        (("sm_80", "bar.sync {id}, {threads};"),),
        "",
        effect="joins part of block",
        source='PTX ISA, "bar, barrier"',
    ),
    Instruction(
        "barrier_cluster_sync",
        "all threads of the blocks of a cluster arrive, and see each other's writes to shared and global memory",
        Level.CLUSTER,
        (),
        (("sm_90", "barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;"),),
        "",
        effect="joins cluster",
        source='PTX ISA, "barrier.cluster"',
    ),
    Instruction(
        "bar_warp_sync",
        "all lanes of the warp arrive, and see each other's writes",
        Level.WARP,
        (),
        (("sm_80", "bar.warp.sync 0xffffffff;"),),
        "",
        effect="joins warp",
        source='PTX ISA, "bar.warp.sync"',
    ),
)
