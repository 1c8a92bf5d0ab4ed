"""The solution of σ for a band, beside the mapping by shape and the source's φ."""

from __future__ import annotations

from typing import Any

from texpr.mapping.cost.arithmetic import of_thread
from texpr.mapping.cost.digits import Digits
from texpr.mapping.cost.phi import least_phi
from texpr.mapping.cost.streams import Band
from texpr.mapping.cost.warps import Cost, Warps
from texpr.mapping.nest import Solved
from texpr.support.record import as_dict


def sigma(solved: Solved) -> dict[str, Any]:
    """Costs for a full warp, once through the innermost loop; open sizes stand for large odd numbers, with the promised
    divisors.

    `lanes`: the digits of the thread number, fastest first, as loop and radix. `least`: no bijection moves fewer sectors.
    `arithmetic`: instructions for indices and addresses; `operations`: what a thread computes once for its (first) iteration.
    `certificate`: what is proved of sectors, lines, requests and conflicts, weighted. `limits`: which part reached its work
    limit, and so is weaker than possible. `by_shape`, `by_phi`: sectors of other mappings.
    """
    band, found = solved.band, solved.solution
    seed = least_phi(band)
    return {
        "loops": [p.sym.base for p in solved.loops],
        "line": solved.loops[0].span.line,
        "lanes": _digits(band, found.digits),
        "least": per_warp(band, Cost(found.least.sectors))["sectors"] if found.least.proved else None,
        **per_warp(band, found.cost),
        "operations": {name: n for name, n in as_dict(of_thread(band, found.digits)).items() if n},
        "certificate": found.certificate,
        "limits": [title for title, met in (("search", found.cut), ("bound", not found.least.whole)) if met],
        "by_shape": per_warp(band, found.shape)["sectors"],
        "by_phi": None if seed is None else per_warp(band, Warps(band).cost(seed.digits))["sectors"],
        "phi": None if seed is None else seed.value,
        "front": [{"lanes": _digits(band, digits), **per_warp(band, cost)} for digits, cost in found.front],
    }


def per_warp(band: Band, cost: Cost) -> dict[str, float]:
    """A cost, of one full warp and once through the innermost loop."""
    turns = max((stream.trips // stream.times for stream in band.streams), default=1)
    warps = 1.0 * turns / band.request.lanes
    for extent in band.counted:
        warps *= extent
    names = ("sectors", "lines", "requests", "conflicts", "arithmetic")
    return {name: round(float(part) / warps, 2) if warps else 0.0 for name, part in zip(names, cost.vector, strict=True)}


def _digits(band: Band, digits: Digits) -> list[str]:
    return [f"{band.loops[loop].base}:{radix}" for loop, radix in digits]
