"""Complement: the layout of the values that another layout leaves out.

Modes must be ordered such that each stride is a multiple of the extent covered by the modes before it: 1, s₀ · d₀, s₁ · d₁,
….
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from texpr.affine.facts import Known
from texpr.layout.algebra.coalesce import from_modes, merged
from texpr.layout.basis import is_symbolic
from texpr.layout.error import LayoutError
from texpr.layout.inttuple import Int, times
from texpr.layout.layout import Layout, Mode
from texpr.layout.proof import NOTHING, Prover


def complement(layout: Layout, cotarget: Int | None = None, known: Known = NOTHING) -> Layout:
    """C such that every 0 ≤ x < `cotarget` is layout(i) + C(j), for exactly one value of `layout` and one j.

    C is flat, and its strides increase: C(0) < C(1) < …. Without `cotarget` it covers the least block that `layout` allows:
    the modes with the gaps between them. Modes of size 1 or stride 0 are ignored. Raises LayoutError where the modes overlap
    or interleave, or do not fill a part of `cotarget` that divides it.
    """
    return complement_by(Prover(known, layout), layout, cotarget)


def complement_by(prover: Prover, layout: Layout, cotarget: Int | None = None) -> Layout:
    """`complement` with a given prover."""
    ordered = chain(layout, "complement", prover)
    found: list[Mode] = []
    filled: Int = 1
    for mode in ordered:
        found.append(Mode(prover.quotient(mode.step, filled), filled))
        filled = times(mode.step, mode.size)
    if cotarget is not None:
        if not prover.divides(filled, cotarget):
            raise LayoutError(
                "complement",
                f"{layout} fills blocks of {filled}, which is not proved to divide {cotarget}",
                help=f"take a multiple of {filled}",
            )
        found.append(Mode(prover.quotient(cotarget, filled), filled))
    return from_modes(merged(found))


def filled_by(layout: Layout, known: Known = NOTHING) -> Int:
    """The size of the block that `layout` fills, gaps between modes included. Raises LayoutError as `complement` does."""
    ordered = chain(layout, "complement", Prover(known, layout))
    return times(ordered[-1].step, ordered[-1].size) if ordered else 1


def chain(layout: Layout, operation: str, prover: Prover) -> tuple[Mode, ...]:
    """The modes with different values in order, each stride a multiple of the block filled by those before it. Raises
    LayoutError."""
    if not layout.is_integral:
        raise LayoutError(operation, f"{layout} has basis strides", help="ask it of each coordinate alone")
    modes = [mode for mode in layout.flat if mode.size != 1 and mode.stride != 0]
    worst = next((mode for mode in modes if not prover.positive(mode.step)), None)
    if worst is not None:
        raise LayoutError(operation, f"the stride of {worst} in {layout} is not proved to be positive")
    modes.sort(key=lambda mode: (is_symbolic(mode.stride), mode.step if isinstance(mode.step, int) else 0))
    found = _ordered(modes, 1, prover)
    if found is None:
        raise LayoutError(
            operation,
            f"the modes {_listed(modes)} of {layout} overlap or interleave, or it is not proved that they do not",
            help="each stride, in some order, must be a multiple of the one before it times its size",
        )
    return found


def _ordered(modes: Sequence[Mode], filled: Int, prover: Prover) -> tuple[Mode, ...] | None:
    """The first order that is a chain. Constant strides are sorted, and if the least fails, so does every greater one."""
    if not modes:
        return ()
    for place, mode in enumerate(modes):
        if prover.divides(filled, mode.step):
            rest = _ordered([*modes[:place], *modes[place + 1 :]], times(mode.step, mode.size), prover)
            if rest is not None:
                return (mode, *rest)
        elif not is_symbolic(mode.stride) and isinstance(filled, int):
            return None
    return None


def _listed(modes: Iterable[Mode]) -> str:
    return ", ".join(map(str, modes))
