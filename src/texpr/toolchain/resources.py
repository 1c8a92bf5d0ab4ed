"""The device resources of a kernel, parsed from the output of ptxas `-v`.

ptxas prints for each kernel (CUDA binary utilities, and `ptxas --help`):

    ptxas info    : Compiling entry function 'saxpy_0' for 'sm_90a'
    ptxas info    : Function properties for saxpy_0
        0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
    ptxas info    : Used 10 registers, used 1 barriers, 1024 bytes smem, 400 bytes cmem[0]

and of a kernel whose products it runs one by one, somewhere:

    ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized due to … in function 'f'
"""

from __future__ import annotations

import re
from collections import Counter

from texpr.support.record import Record, as_dict

_ENTRY = re.compile(r"Compiling entry function '([^']+)'")
_STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"Used (\d+) registers")
_BARRIERS = re.compile(r"used (\d+) barriers")
_SERIALISED = re.compile(r"\(C75\d\d\).* serialized .* in the function '([^']+)'")
_SHARED = re.compile(r"(\d+)(?:\+(\d+))? bytes smem")


class Resources(Record):
    """One kernel: registers, spilled bytes (stores, loads) and stack of a thread; static shared bytes, barriers of a block; how
    often ptxas says that it waits behind each product of a warpgroup by itself."""

    kernel: str
    registers: int
    spill_stores: int
    spill_loads: int
    stack_bytes: int
    shared_bytes: int
    barriers: int
    serialised: int = 0

    def numbers(self) -> dict[str, int]:
        """Every figure by name."""
        return {name: number for name, number in as_dict(self).items() if name != "kernel"}


def resources(text: str) -> tuple[Resources, ...]:
    """The kernels in the output of ptxas, by name."""
    parts, serialised = _ENTRY.split(text), Counter(_SERIALISED.findall(text))
    found = (_one(parts[i], parts[i + 1], serialised[parts[i]]) for i in range(1, len(parts), 2))
    return tuple(sorted(found, key=lambda each: each.kernel))


def _one(kernel: str, text: str, serialised: int) -> Resources:
    stack, stores, loads = (int(n) for n in found.groups()) if (found := _STACK.search(text)) else (0, 0, 0)
    shared = _SHARED.search(text)
    return Resources(
        kernel=kernel,
        registers=_number(_USED, text),
        spill_stores=stores,
        spill_loads=loads,
        stack_bytes=stack,
        shared_bytes=sum(int(n) for n in shared.groups() if n) if shared else 0,
        barriers=_number(_BARRIERS, text),
        serialised=serialised,
    )


def _number(pattern: re.Pattern[str], text: str) -> int:
    found = pattern.search(text)
    return int(found.group(1)) if found else 0
