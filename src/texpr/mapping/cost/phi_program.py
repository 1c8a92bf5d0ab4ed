"""The minimal φ as an integer program, for CP-SAT, where OR-tools is installed (the extra `solver`).

Variables: y[p, l, n], digit p of the lanes belongs to loop l, with n digits of l before it; and d[a, p] ≥ |Δ| for stream a
and carry case p. The weight 2^n of a digit times its loop's step is a sum over y, so Δ is affine in y, and the certificate of
each case is a pair of inequalities. Bijectivity: each digit belongs to one loop, and the digits of a loop come in order.
OR-tools is imported on first use. Results are deterministic: one worker, and a limit on deterministic time.
"""

from __future__ import annotations

from typing import Any

from texpr.mapping.cost.phi import Phi, rooms, trips_of
from texpr.mapping.cost.streams import Band
from texpr.support.lazy import Module

_cp_model: Any = Module("ortools.sat.python.cp_model")

WORK = 10.0
"""The limit in deterministic seconds, the same on every machine."""

LARGEST = 1 << 53
"""The greatest φ for the solver, which uses 64-bit numbers."""


def least_phi_by_program(band: Band) -> Phi | None:
    """As `least_phi`; None also where numbers are too large for the solver, or it found nothing within its limit."""
    if any(stream.index is not None for stream in band.streams) or 0 in band.counted:
        return None
    room = rooms(band)
    lanes = min(band.request.lanes.bit_length() - 1, sum(room))
    far = sum(
        trips * max(map(abs, s.steps), default=0) << 2 * lanes for trips, s in zip(trips_of(band), band.streams, strict=True)
    )
    if far > LARGEST:
        return None
    model = _cp_model.CpModel()
    chosen = {
        (p, loop, n): model.NewBoolVar(f"y{p}_{loop}_{n}")
        for p in range(lanes)
        for loop, most in enumerate(room)
        for n in range(min(p + 1, most))
    }
    _bijective(model, chosen, lanes, room)
    cost: list[Any] = []
    for number, (trips, stream) in enumerate(zip(trips_of(band), band.streams, strict=True)):
        before: Any = 0
        for p in range(lanes):
            step = sum((stream.steps[key[1]] << key[2]) // stream.width * y for key, y in chosen.items() if key[0] == p)
            d = model.NewIntVar(0, far, f"d{number}_{p}")
            model.Add(d >= step - before)
            model.Add(d >= before - step)
            cost.append((trips << (lanes - 1 - p)) * d)
            before = before + step
    model.Minimize(sum(cost))
    solver = _cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.max_deterministic_time = WORK
    status = solver.Solve(model)
    if status not in (_cp_model.OPTIMAL, _cp_model.FEASIBLE):
        return None
    order = sorted((p, loop) for (p, loop, _), y in chosen.items() if solver.Value(y))
    return Phi(tuple(loop for _, loop in order), int(solver.ObjectiveValue()), status == _cp_model.OPTIMAL)


def _bijective(model: Any, chosen: dict[tuple[int, int, int], Any], lanes: int, room: tuple[int, ...]) -> None:
    """Each digit belongs to one loop, and n is the number of the loop's digits before it."""
    for p in range(lanes):
        model.AddExactlyOne(y for key, y in chosen.items() if key[0] == p)
        for loop in range(len(room)):
            earlier = sum(y for key, y in chosen.items() if key[0] < p and key[1] == loop)
            for n in range(min(p + 1, room[loop])):
                model.Add(earlier == n).OnlyEnforceIf(chosen[p, loop, n])
