"""Which lane of a block, and which of its registers, holds an element of a whole tile that instructions work on.

    acc[wi, mi, ii, jj], 2 warps wi, 4 tiles mi; ii, jj by ((4,8),(2,2)) : ((2@1,1@0),(1@1,8@0)) of the instruction:

    ((4,8,2),(2,2,4)) : ((2@3,1@2,1@0),(1@3,8@2,1@1))

So a tile has a fragment like an operand's: the digits of the instruction's, the warps behind its lanes, and the tiles that a
warp goes through behind its registers. That it is one, each element in one place, is checked like that of any.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from texpr.affine.expr import ZERO, Expr, Sym, expr
from texpr.ir import program as ir
from texpr.ir.instr.fragment import Digit, Fragment, Misfit, fragment
from texpr.support.record import Record

Steps = Mapping[Sym, tuple[int, int]]
"""For a loop: along which dimension it goes, and how far."""


def steps_of(index: Sequence[Expr], own: frozenset[Sym]) -> Steps:
    """How subscripts move with the loops `own`, of which they are sums. Raises Misfit."""
    found: dict[Sym, tuple[int, int]] = {}
    for dim, e in enumerate(index):
        for monomial, coefficient in e.terms:
            atom = monomial[0] if len(monomial) == 1 else None
            if not isinstance(atom, Sym) or atom not in own or atom in found or e.constant:
                raise Misfit(f"`{e}` is no sum of the loops that go through a tile")
            found[atom] = dim, coefficient
    return found


def tile_fragment(
    shape: tuple[int, ...],
    steps: Steps,
    along: Sequence[Sym],
    part: Fragment,
    warps: Sequence[ir.Loop],
    tiles: Sequence[ir.Loop],
) -> Fragment:
    """The fragment of a tile of which an instruction has `part`, whose dimensions are the loops `along`.

    `warps`: loops whose iterations are warps, `tiles`: loops that a warp goes through; the innermost first. Raises Misfit.
    """
    modes: dict[bool, list[tuple[int, int, int]]] = {True: [], False: []}
    for digit in part.digits:
        assert digit.dim is not None, "what is written has no copies"
        dim, step = steps[along[digit.dim]]
        modes[digit.of_lane].append((digit.size, step * digit.step, dim))
    for of_lane, loops in ((True, warps), (False, tiles)):
        for loop in (loop for loop in loops if loop.extent.constant > 1):
            if loop.sym not in steps:
                raise Misfit(f"iterations of `{loop.sym.base}` are warps, and each of them sums up the same elements")
            modes[of_lane].append((loop.extent.constant, steps[loop.sym][1], steps[loop.sym][0]))
    sizes, strides = list[str](), list[str]()
    for of_lane in (True, False):
        some = modes[of_lane]
        sizes.append(f"({','.join(str(size) for size, _, _ in some)})" if some else "1")
        strides.append(f"({','.join(f'{step}@{dim}' for _, step, dim in some)})" if some else "0")
    return fragment(f"({','.join(sizes)}):({','.join(strides)})", shape)


class Place(Record):
    """A place in a fragment: the loops over the digits of a register, slowest first, and the element that is there."""

    digits: tuple[tuple[Sym, Digit], ...]
    element: tuple[Expr, ...]

    @property
    def register(self) -> Expr:
        """The register."""
        return sum((expr(sym) * digit.weight for sym, digit in self.digits), ZERO)


def place(held: Fragment, lane: Expr, names: Sequence[Sym]) -> Place:
    """What `lane` has in its registers, whose digits are called `names`."""
    registers = sorted((digit for digit in held.digits if not digit.of_lane), key=lambda digit: -digit.weight)
    digits = tuple(zip(names, registers, strict=True))
    found = [ZERO for _ in held.shape]
    for digit in held.digits:
        if digit.dim is not None:
            value = digit.of(lane, held.lanes) if digit.of_lane else expr(next(s for s, d in digits if d is digit))
            found[digit.dim] += value * digit.step
    return Place(digits, tuple(found))


def solved(
    index: Sequence[Expr], element: Sequence[Expr], loops: Mapping[Sym, int], shape: Sequence[int]
) -> Mapping[Sym, Expr]:
    """The loops, of these extents, for which `index` is `element`: digits of it. Raises Misfit where there are none."""
    steps = steps_of(index, frozenset(loops))
    found: dict[Sym, Expr] = {}
    for dim, extent in enumerate(shape):
        reach = 1
        for sym in sorted((s for s, (along, _) in steps.items() if along == dim), key=lambda s: (steps[s][1], loops[s])):
            if steps[sym][1] != reach:
                raise Misfit(f"loops over a tile do not go through its dimension {dim} element by element")
            value = element[dim] // reach
            reach *= loops[sym]
            found[sym] = value if reach == extent else value % loops[sym]
        if reach != extent:
            raise Misfit(f"loops over a tile go through {reach} of the {extent} elements of its dimension {dim}")
    return found
