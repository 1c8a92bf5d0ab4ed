"""Copies that graphs of IterDomains plan, as kernels: the loops that the hardware does not run, one thread that starts copies.

What is loaded goes to `z`, the whole allocation as memory has it; what is stored comes from there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tests.emulator.tensors import encoded, registered

from texpr.affine.expr import ONE, ZERO, Expr, Sym, expr
from texpr.backends.cuda import print_kernels
from texpr.domain.predicates.needed import Predicate
from texpr.emulator.harness import Emulated
from texpr.interp.dtypes import numpy_dtype
from texpr.ir import kernel as k
from texpr.ir.program import Function
from texpr.ir.value import Buffer, Index, Literal, Load, Op, conjunction
from texpr.ir.value.types import BOOL, I32, U64, DType
from texpr.support.record import Record, replace
from texpr.tma.correctness import Guarded, Lowering, Redirected
from texpr.tma.model import Copy
from texpr.tma.reference import Direction

THREADS = 32
Bytes = NDArray[np.uint8]


class Emitted(Record, dict=True):
    """A kernel `kernel` of `plan`, with the tensor `x` and the allocation `z`."""

    plan: k.Plan
    kernel: k.Kernel

    def run(
        self, emulated: Emulated, tensor: Bytes, shared: Bytes, sizes: Mapping[Sym, int] | None = None, seed: int | None = None
    ) -> list[Any]:
        """Runs it on bytes, in place: `tensor` and `shared` begin at multiples of 256. What the emulator reports."""
        given = {s.name: v for s, v in (sizes or {}).items()}
        (map,) = self.kernel.maps
        names = {"x": tensor, "z": shared}
        storage = {b.name: names[b.name[0]] for b in (map.buffer, *self.kernel.buffers)}
        (z,) = self.kernel.buffers
        storage[z.name] = shared.view(numpy_dtype(z.dtype))
        args: list[Any] = [
            storage[z.name],
            *(given[s.name] for s in self.kernel.sizes),
            encoded(emulated, map, {**storage, **given}),
        ]
        with ExitStack() as stack:
            stack.enter_context(registered(emulated, tensor, map.buffer.name))
            return emulated.launch(self.kernel.name, (1, 1, 1), (THREADS, 1, 1), args, seed=seed)


def emitted(
    copy: Copy,
    lowering: Lowering,
    direction: Direction,
    name: str,
    dtype: DType,
    sizes: Sequence[Sym] = (),
    coordinates: tuple[Expr, ...] | None = None,
) -> Emitted:
    """The kernel of a copy as it is lowered; `coordinates`: others than those of the plan, over the leaves' symbols."""
    leaves = [leaf for leaf in copy.graph.leaves if leaf in copy.bulk or leaf.sym in copy.tile.place.syms()]
    room = expr(1)
    for leaf in leaves:
        room = room * leaf.extent
    x = Buffer(f"x_{name}", dtype, (expr(Sym(f"all_{name}")),), "inout", align=256)
    z = Buffer(f"z_{name}", dtype, (room,), "inout", align=256)
    map = k.TensorMap(
        f"map_{name}",
        x,
        tuple(each.size for each in copy.dimensions),
        tuple(each.stride * dtype.bytes for each in copy.dimensions[1:]),
        tuple(each.box.constant for each in copy.dimensions),
        tuple(each.element_stride.constant for each in copy.dimensions),
        copy.tile.swizzle.span,
        fill="zero" if isinstance(lowering, Guarded) else lowering.fill.value,
        offset=copy.skipped,
    )
    tile = Buffer("tile", dtype, (expr(prod(map.tile)),), "local")
    full = Buffer("full", U64, (ONE,), "local")
    thread = Sym("t")
    copied = _Body(copy, lowering, map, Load(tile, (ZERO,)), Load(full, (ZERO,)), z, thread, coordinates)
    loads = direction is Direction.LOAD
    body = copied.loaded() if loads else copied.stored()
    arrays = (k.Array(tile, k.Space.SHARED, align=1024), *((k.Array(full, k.Space.SHARED, barrier=True),) if loads else ()))
    kernel = k.Kernel(
        f"copy_{name}", (k.Axis(thread, k.Level.BLOCK, expr(THREADS)),), (z,), (), tuple(sizes), arrays, body,
        frozenset({z.name if loads else x.name}), maps=(map,),
    )  # fmt: skip
    extent = Sym(f"all_{name}")
    plan = k.Plan(name, (x, z), (x, z), (*sizes, extent), (), (), (), (), (k.Launch(kernel),))
    return Emitted(plan, kernel)


class _Body(Record, dict=True):
    copy: Copy
    lowering: Lowering
    map: k.TensorMap
    tile: Load
    full: Load
    z: Buffer
    thread: Sym
    coordinates: tuple[Expr, ...] | None

    @property
    def leads(self) -> Op:
        return Op("eq", (Index(expr(self.thread), I32), Literal(0, I32)), BOOL)

    def loaded(self) -> tuple[k.Stmt, ...]:
        start = (k.If(self.leads, (k.BarrierInit(self.full, 1), k.Fence("init"))), k.Barrier(k.Level.BLOCK))
        expect = k.BarrierExpect(self.full, self.map.bytes)
        issue = self._copy(self.coordinates or self.copy.coordinates)
        match self.lowering:
            case Redirected(predicates, outside):
                inner = (expect, k.If(_all(predicates), (issue,), (self._copy(outside),)))
            case Guarded(predicates):
                inner = (k.If(_all(predicates), (expect, issue), (k.BarrierArrive(self.full),)),)
            case _:
                inner = (expect, issue)
        wait = k.BarrierWait(self.full, self._count() % 2)
        return (
            *start,
            *self._around((k.If(self.leads, inner), wait, *self._moved(out=True), k.Fence("async"), k.Barrier(k.Level.BLOCK))),
        )

    def stored(self) -> tuple[k.Stmt, ...]:
        store: k.Stmt = k.StoreTensor(self.map.name, self.coordinates or self.copy.coordinates, self.tile)
        if isinstance(self.lowering, Guarded):
            store = k.If(_all(self.lowering.predicates), (store,))
        flush = (store, k.CommitBulk(), k.WaitBulk(0))
        ready = (*self._moved(out=False), k.Fence("async"), k.Barrier(k.Level.BLOCK))
        return self._around((*ready, k.If(self.leads, flush), k.Barrier(k.Level.BLOCK)))

    def _copy(self, at: tuple[Expr, ...]) -> k.CopyTensor:
        return k.CopyTensor(self.tile, self.map.name, at, self.full)

    def _moved(self, *, out: bool) -> tuple[k.Stmt, ...]:
        """Every element of the tile, by all threads."""
        count = prod(self.map.tile)
        at = Sym("e")
        here = replace(self.tile, index=(expr(at),))
        there = Load(self.z, (self.copy.tile.place + expr(at),))
        move = k.Store(there, here) if out else k.Store(here, there)
        return (k.For(at, expr(self.thread), expr(count), (move,), expr(THREADS)),)

    @property
    def _loops(self) -> list[Any]:
        return [leaf for leaf in self.copy.graph.leaves if leaf not in self.copy.bulk]

    def _count(self) -> Expr:
        found = ZERO
        for leaf in self._loops:
            found = found * leaf.extent + leaf.sym
        return found

    def _around(self, body: tuple[k.Stmt, ...]) -> tuple[k.Stmt, ...]:
        for leaf in reversed(self._loops):
            body = (k.For(leaf.sym, ZERO, leaf.extent, body, ONE, uniform=True),)
        return body


def _all(predicates: Sequence[Predicate]) -> Any:
    """Each as its margin, which is not negative."""
    return conjunction([Op("ge", (Index(each.margin, I32), Index(ZERO, I32)), BOOL) for each in predicates])


def together(every: Sequence[Emitted]) -> str:
    """The CUDA of many kernels, to be compiled at once."""
    first = every[0].plan
    return print_kernels(replace(first, steps=tuple(step for each in every for step in each.plan.steps)))


def called(every: Sequence[Emitted], name: str) -> tuple[Function, k.Plan]:
    """All of the kernels as one function, to be called through a launcher, which encodes their maps: in the emulator, or on a
    device. Its arguments are their tensors and allocations, `x_NAME` and `z_NAME`, all of which it may change."""
    plans = [each.plan for each in every]
    params = tuple(buffer for plan in plans for buffer in plan.params)
    sizes = tuple(dict.fromkeys(size for plan in plans for size in plan.sizes))
    steps = tuple(step for plan in plans for step in plan.steps)
    return Function(name, params, (), sizes, ()), k.Plan(name, params, (), sizes, (), (), (), (), steps)
