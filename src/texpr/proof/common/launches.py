"""Launches that may start before those before them have ended: that they are in order all the same.

Of a dependent launch each thread waits for the launch before, which has waited for the one before it: so all of both have
ended (`docs/theory/launches.md`). It waits in front of all that it does to memory in which a launch before it writes, or
that it writes and one before it has to do with, and names all of that, of which a compiler of C++ is told nothing. Nor does
it hold back what it waits for: columns of tensor memory are taken behind the wait. It admits the next launch behind it,
too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from texpr.ir import kernel as k
from texpr.ir.operation import Lasts
from texpr.proof.common.asked import Claim


def overtaking(plan: k.Plan) -> Iterator[tuple[Claim, str]]:
    """For each dependent launch the claim that it is behind those before it, and why that is not so, or nothing."""
    every = [*_launches(plan.steps, None)]
    for number, (launch, loop) in enumerate(every):
        if launch.dependent:
            kernel = launch.kernel
            before = [each.kernel for at, (each, other) in enumerate(every) if at < number or (loop and loop is other)]
            told = Claim("launched behind others", kernel.name, "waits before it touches theirs", kernel.span, kernel.name)
            yield told, _wrong(kernel, before) if before else "no launch of the plan is before it"


def _launches(steps: Sequence[k.HostStep], loop: k.HostLoop | None) -> Iterator[tuple[k.Launch, k.HostLoop | None]]:
    """The launches, each with the outermost loop that repeats it: all in that are before each other."""
    for step in steps:
        if isinstance(step, k.Launch):
            yield step, loop
        else:
            yield from _launches(step.steps, loop or (step if isinstance(step, k.HostLoop) else None))


def _memory(kernel: k.Kernel) -> set[str]:
    return {buffer.name for buffer in (*kernel.buffers, *(map.buffer for map in kernel.maps))}


def _wrong(kernel: k.Kernel, others: Sequence[k.Kernel]) -> str:
    """Why a kernel is not in order with `others`, launched before it."""
    found = [(at, stmt) for at, stmt in enumerate(kernel.body) if isinstance(stmt, k.AwaitLaunches)]
    if not found:
        return "not all threads wait for the launch before"
    at, wait = found[0]
    shared = {name for each in others for name in _memory(each) & _memory(kernel) & (each.written | kernel.written)}
    if not shared <= {*wait.arrays}:
        return f"the wait does not name {', '.join(sorted(shared - {*wait.arrays}))}"
    read, written = k.memory(before := kernel.body[:at])
    touched = {load.buffer.name for load in (*read, *written)}
    for stmt in (each for each in k.walk(before) if isinstance(each, k.Operation)):
        moved = stmt.moved(kernel.map_of)
        touched |= set() if moved is None else {moved.source.name, moved.target.name}
        if isinstance(stmt, k.AdmitLaunch) or isinstance(stmt.completion(kernel.map_of), Lasts):
            return f"{type(stmt).__name__} is before the wait"
    return f"{', '.join(sorted(early))} is touched before the wait" if (early := touched & shared) else ""
