"""Arrivals at barriers of other blocks of a cluster: what is waited for, who may have ended, and what they make known.

Each warp releases a slot of every block, a lane each. Of another block that says only what engines have done: what its threads
wrote or read is known by a barrier of the cluster alone.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from texpr.emulator import LOCKSTEP, Emulated, Fault

from .kernels import HEAD

SCHEDULES = (None, LOCKSTEP, *range(8))

MADE = "if (t == 0) { tx_barrier_init(empty, 0, COUNT); tx_fence_init(); } MEET"
RELEASE, WAIT = "TX_AT(3) tx_barrier_release_among<2>(empty, 0);", "TX_AT(4) tx_barrier_wait(empty, 0, 0);"
LEAVE = "TX_AT(5) tx_cluster_sync();"


def kernel(name: str, body: str, count: int = 4, meet: str = "tx_cluster_sync();") -> str:
    made = MADE.replace("COUNT", str(count)).replace("MEET", meet)
    return f"""
extern "C" __global__ void __cluster_dims__(2, 1, 1) {name}(TX_GLOBAL(int) out) {{
    TX_SHARED(int, own, 64);
    TX_BARRIERS(empty, 1);
    int const t = (int)threadIdx.x, rank = (int)tx_cluster_rank();
    {made}
    {body}
    out[64 * rank + t] = t;
}}
TX_EXPORT({name})
"""


OTHER = "TX_AT(6) own[t] = t; %s TX_AT(7) int seen = tx_cluster_shared(own, 1 - rank)[t]; if (seen != t) out[0] = 9;"

BODIES: dict[str, tuple[str, Fault | None]] = {
    "all": (kernel("all", RELEASE + WAIT + LEAVE), None),
    "nobody waits": (kernel("nobody_waits", RELEASE + LEAVE), None),
    "one warp": (kernel("one_warp", f"if (t < 32) {{ {RELEASE} }} {WAIT} {LEAVE}", 2), None),
    "one block": (kernel("one_block", f"if (rank == 0) {{ {RELEASE} }} {WAIT} {LEAVE}", 2), None),
    "counted alone": (kernel("counted_alone", RELEASE + WAIT + LEAVE, 5), Fault.DEADLOCK),
    "not made": (kernel("not_made", RELEASE + LEAVE, meet="__syncthreads();"), None),
    "has ended": (kernel("has_ended", f"if (rank == 1) {{ __syncthreads(); {RELEASE} }}", 2), None),
    "known by a barrier": (kernel("known", (OTHER % (RELEASE + WAIT + LEAVE)) + LEAVE), None),
    "not known by an arrival": (kernel("not_known", (OTHER % (RELEASE + WAIT)) + LEAVE), Fault.RACE),
}
"""Kernels, and the fault that each has under every schedule; under some, those in `SOMETIMES`."""

SOMETIMES = {"not made": {Fault.RACE, Fault.BAD_BARRIER, Fault.DEADLOCK}, "has ended": {Fault.EARLY_EXIT}}

TEXT = HEAD + "".join(text for text, _ in BODIES.values())


def faults(emulate: Callable[..., Emulated], name: str, seed: int | None) -> set[Fault]:
    text, _ = BODIES[name]
    symbol = text[text.index("TX_EXPORT(") + 10 : text.rindex(")")]
    out = np.zeros(128, np.int32)
    found = emulate(TEXT).launch(symbol, 2, 64, [out], seed=seed)
    if not found:
        np.testing.assert_array_equal(out, np.tile(np.arange(64), 2))
    return {report.fault for report in found}


@pytest.mark.parametrize("name", BODIES)
def test_found_under_every_schedule(emulate: Callable[..., Emulated], name: str) -> None:
    _, fault = BODIES[name]
    found = [faults(emulate, name, seed) for seed in SCHEDULES]
    if name in SOMETIMES:
        assert any(found) and all(each <= SOMETIMES[name] for each in found)
    else:
        assert all(each == (set() if fault is None else {fault}) for each in found), found
