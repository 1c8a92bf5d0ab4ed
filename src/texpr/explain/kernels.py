"""Every decision on a function, kernel by kernel.

Per kernel: `launch`, `dependent`, `mapping`, `sigma`, `buffers`, `sharing`, `barriers`, `barrier_cost`, `predicates`,
`copies`, `vectors`, `instructions`, `tensor`, `accesses`, and, where a compiler is at hand, `registers`, `spill_bytes` and
`shared_bytes` as it reports them.
"""

from __future__ import annotations

from collections.abc import Iterator

from texpr.backends.cuda import headers
from texpr.driver import Compiled
from texpr.explain.data import Data
from texpr.explain.layout import layout
from texpr.explain.planned import left, planned
from texpr.explain.sigma import sigma
from texpr.explain.speed import speed
from texpr.explain.tensor import tensor, tensor_memory
from texpr.ir import kernel as k
from texpr.ir.kernel.shared import shared_bytes
from texpr.ir.kernel.together import why_apart
from texpr.ir.operation import Awaits, Group, Moved, Waits
from texpr.ir.ops.launches import awaited
from texpr.ir.value import Buffer, Index, Literal, Load, Op, Ref, Value
from texpr.isa.levels import Level
from texpr.lowering.notes import Notes
from texpr.lowering.place.arena import Arena
from texpr.lowering.sync.barriers import Proof
from texpr.mapping.cost.access import accesses
from texpr.schedule.rewrite.materialise import Materialised
from texpr.support.diagnostic import TexprError
from texpr.support.record import as_dict
from texpr.toolchain.cuda import compile_cuda, disassemble, find_nvcc
from texpr.toolchain.machine import Machine
from texpr.toolchain.resources import Resources

_SIGNS = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!=", "and": "and", "or": "or"}


def explain(compiled: Compiled, machine: Machine) -> Data:
    """The decisions on `compiled`. `machine` is asked for a CUDA compiler; without one the last three entries are None.

    `schedule`: its name, empty where it has none; None where no schedule was used. `planned`: how it was found, where it was
    not written; `untaken`: sums of products that it gives to no instruction of lanes, and why. `speed`: how fast it can be at
    most (`explain.speed`). `wide`: the same of the wide plan, and what a launcher asks for before it takes that: `where` of
    sizes, `align` of addresses, in bytes; None where there is none.
    """
    resources, code = built(compiled, machine)
    wide = compiled.wide
    told = None if wide is None else {**asked_for(compiled.plan, wide.plan), **_told(wide, resources, code)}
    return {**_told(compiled, resources, code), "wide": told}


def asked_for(plan: k.Plan, wide: k.Plan) -> Data:
    """What a wide plan asks for beyond what the plan does."""
    facts = {f"{fact.left} {fact.op} {fact.right}": None for fact in wide.requires}
    for fact in plan.requires:
        facts.pop(f"{fact.left} {fact.op} {fact.right}", None)
    pairs = zip((*plan.params, *plan.results), (*wide.params, *wide.results), strict=True)
    return {"where": list(facts), "align": {b.name: b.align for a, b in pairs if a.align != b.align}}


def _told(compiled: Compiled, resources: dict[str, Resources], code: str | None) -> Data:
    by_name = {note.kernel: note for note in compiled.notes}
    found = {kernel.name: kernel for kernel in k.kernels(compiled.plan.steps)}
    return {
        "function": compiled.function.name,
        "target": compiled.target.name,
        "schedule": None if compiled.schedule is None else compiled.schedule.name or "",
        "sizes": [s.name for s in compiled.plan.sizes],
        "fixed": {s.name: value for s, value in compiled.plan.fixed},
        "workspace": [_buffer_text(b) for b in compiled.plan.workspace],
        "requires": [
            f"{c.left} {c.op} {c.right}"
            for c in (*compiled.plan.requires, *compiled.plan.bounds)
            if c.left.syms() | c.right.syms()
        ],
        "launches": _launches(compiled.plan),
        "planned": planned(compiled),
        "untaken": left(compiled),
        "layout": None if compiled.laid_out is None else layout(compiled.laid_out),
        "speed": speed(compiled, code, resources),
        "kernels": [_kernel(kernel, by_name[name], resources.get(name), compiled) for name, kernel in found.items()],
    }


def _launches(plan: k.Plan) -> list[Data]:
    """The host's outermost loops: how each may run in one launch, or why it may not."""
    return [_host_loop(step) for step in plan.steps if isinstance(step, k.HostLoop)] if _is_launched(plan) else []


def _is_launched(plan: k.Plan) -> bool:
    return any(axis.level is k.Level.BLOCK for kernel in k.kernels(plan.steps) for axis in kernel.axes)


def _host_loop(loop: k.HostLoop) -> Data:
    kernel = None if loop.together is None else loop.together.name
    return {"loop": loop.sym.name, "extent": str(loop.extent), "together": kernel, "why_not": why_apart(loop)}


def built(compiled: Compiled, machine: Machine) -> tuple[dict[str, Resources], str | None]:
    """Registers and memory by kernel, as the compiler counts them, and the machine code, as far as tools are at hand."""
    if not compiled.target.is_launched:
        return {}, None
    found: dict[str, Resources] = {}
    try:
        nvcc = find_nvcc(machine)
        binary = compile_cuda(machine, nvcc, compiled.source, headers(), compiled.target.name)
        found = {each.kernel: each for each in binary.kernels}
        return found, disassemble(machine, nvcc, binary, encoding=True, lines=True)
    except TexprError:
        return found, None


def _kernel(kernel: k.Kernel, note: Notes, resources: Resources | None, compiled: Compiled) -> Data:
    return {
        "name": kernel.name,
        "line": kernel.span.line,
        "launch": _launch(kernel),
        "dependent": _dependent(kernel, compiled.plan),
        "mapping": [as_dict(loop) for loop in note.loops],
        "sigma": [sigma(each) for each in note.solved],
        "buffers": [as_dict(buffer) for buffer in note.buffers],
        "sharing": None if note.arena is None else _sharing(note.arena),
        "barriers": list(barriers(kernel)),
        "barrier_cost": None if note.barriers is None else _cost(note.barriers),
        "predicates": {"kept": list(_predicates(kernel.body)), "removed": list(_removed(kernel, compiled.laid_out))},
        "copies": list(copies(kernel)),
        "vectors": list(vectors(kernel)),
        "instructions": list(instructions(kernel)),
        "tensor": list(tensor(kernel, compiled)),
        "tensor_memory": tensor_memory(kernel),
        "accesses": [as_dict(access) for access in accesses(kernel, compiled.target.coalescing) if access.lanes],
        "registers": None if resources is None else resources.registers,
        "spill_bytes": None if resources is None else resources.spill_stores + resources.spill_loads,
        "shared_bytes": shared_bytes(kernel),
    }


def _launch(kernel: k.Kernel) -> Data:
    grid = {a.dim: str(a.extent) for a in kernel.axes if a.level in (Level.GRID, Level.CORE)}
    block = {a.dim: a.extent.constant for a in kernel.axes if a.level is Level.BLOCK}
    cluster = {a.dim: a.extent.constant for a in kernel.axes if a.level is Level.CLUSTER}
    return {"grid": grid, "cluster": cluster, "block": block}


def _dependent(kernel: k.Kernel, plan: k.Plan) -> Data | None:
    """Where a kernel may start before the launch before it has ended: the arrays in front of whose first use it waits, none
    where it waits at its end. None where it may not."""
    found = any(each.kernel is kernel and each.dependent for each in k.launches(plan.steps))
    return {"waits_for": list(awaited(kernel.body) or ())} if found else None


def barriers(kernel: k.Kernel) -> Iterator[Data]:
    """Where threads wait: for each other, or (`pending`: the number of groups that may be left) for their own asynchronous
    copies.

    "phase": the subject of a barrier in shared memory; "stores": for tiles to be stored, or ("reads") to have been read;
    "products": for the tensor core of a warpgroup.
    """
    for stmt in k.walk(kernel.body):
        covers = stmt.waits_for if isinstance(stmt, k.Operation) else None
        if covers is None or not isinstance(stmt, k.Operation):
            continue
        kind, pending = _waited(stmt)
        yield {"kind": kind, "pending": pending, "covers": list(map(_covered, covers))}


def _waited(stmt: k.Operation) -> tuple[str, int | None]:
    match stmt.completion({}):
        case Awaits(group=Group.ASYNC, pending=pending):
            return "copies", pending
        case Awaits(group=Group.WGMMA, pending=pending):
            return "products", pending
        case Awaits(pending=pending, read=read):
            return "reads" if read else "stores", pending
        case Waits():
            return "phase", None
        case _:
            return "threads" if stmt.joined is None else stmt.joined.value, None


def _sharing(arena: Arena) -> Data:
    """The bytes of shared memory, without sharing (`apart`), and the lower bound; the cost of sharing in arrivals of warps."""
    return {"bytes": arena.bytes, "apart": arena.apart, "bound": arena.bound, "cost": float(arena.paid)}


def _cost(proof: Proof) -> Data:
    """In arrivals of warps, as `lowering.sync.barriers` weighs them; `proof`: "payments", "search", or "limit" where it
    stopped."""
    return {
        "cost": float(proof.cost),
        "bound": float(proof.bound),
        "barriers": proof.number,
        "dependences": proof.needs,
        "proof": proof.by,
        "tried": proof.tried,
    }


def _covered(covered: k.Covered) -> Data:
    return {
        "kind": covered.kind,
        "buffer": covered.buffer,
        "from_line": covered.source.line,
        "to_line": covered.sink.line,
        "carried_by": None if covered.carried is None else covered.carried.base,
    }


def copies(kernel: k.Kernel) -> Iterator[Data]:
    """Asynchronous copies. `when`: their condition; `otherwise`: what happens if it fails. Those of tiles have their tensor
    map and combination."""
    maps = kernel.map_of
    asked, fillings = _asked(kernel)
    for stmt, moved in k.moves(kernel):
        if stmt in fillings:
            continue
        when, otherwise = asked.get(stmt, (None, None)) if moved.map else (None, None)
        if moved.when is not None:
            when, otherwise = condition_text(moved.when), "zeros"
        found = {"engine": moved.by, "from": moved.source.name, "to": moved.target.name, "bytes": moved.bytes}
        found |= {"when": when, "otherwise": otherwise, "line": stmt.span.line}
        if moved.map is not None:
            found |= {"map": _map(maps[moved.map]), "reduce": moved.reduce, "blocks": _blocks(moved)}
        elif moved.by == "bulk":
            found |= {"reduce": moved.reduce, "exactly": None if moved.exactly is None else str(moved.exactly)}
        yield found


def instructions(kernel: k.Kernel) -> Iterator[Data]:
    """What lanes do together: by how many, with how many registers of each operand; `alone`: one of them starts it for all.
    `uses`: how many are written out."""
    for instr in kernel.instrs:
        uses = 0
        for stmt, around in _within(kernel.body, 1):
            uses += around if isinstance(stmt, k.Operation) and stmt.together == instr.name else 0
        registers = {o.name: 0 if o.is_shared or o.columns else o.fragment.registers for o in instr.operands}
        yield {"name": instr.name, "lanes": instr.lanes, "registers": registers, "uses": uses, "alone": instr.is_alone}


def _within(body: tuple[k.Stmt, ...], times: int) -> Iterator[tuple[k.Stmt, int]]:
    for stmt in body:
        yield stmt, times
        more = 1
        if isinstance(stmt, k.For) and stmt.kind == "unroll" and not stmt.factor:
            more = max(0, (stmt.hi - stmt.lo).constant // stmt.step.constant)
        for block in k.blocks(stmt):
            yield from _within(block, times * more)


def _blocks(copy: Moved) -> Data | None:
    """The blocks of a cluster that receive a copy, by rank: `first` plus each bit of `mask`; None for one."""
    if not copy.peers:
        return None
    return {"mask": sum(1 << peer for peer in copy.peers), "first": str(copy.first), "count": len(copy.peers)}


def _asked(kernel: k.Kernel) -> tuple[dict[k.Stmt, tuple[str, str]], frozenset[k.Stmt]]:
    """The conditions of copies of tiles, and what happens if they fail; and the copies that only fill."""
    threads = {axis.sym for axis in kernel.axes if axis.level is k.Level.BLOCK}
    found: dict[k.Stmt, tuple[str, str]] = {}
    fillings: set[k.Stmt] = set()
    boxes = {stmt for stmt, moved in k.moves(kernel) if moved.map}
    for stmt in k.walk(kernel.body):
        if isinstance(stmt, k.If) and threads.isdisjoint(k.value_symbols(stmt.condition)):
            tiles, others = ([s for s in side if s in boxes] for side in (stmt.then, stmt.orelse))
            fillings |= set(others)
            found |= dict.fromkeys(tiles, (condition_text(stmt.condition), "zeros" if others else "nothing"))
    return found, frozenset(fillings)


def _map(map: k.TensorMap) -> Data:
    """Dimension 0 is the innermost; strides are in bytes. In im2col mode `box` is channels and pixels, with corners."""
    corners = {"corners": [list(corner) for corner in map.corners]} if map.corners else {}
    return {
        "name": map.name,
        "rank": map.rank,
        "sizes": [str(size) for size in map.sizes],
        "strides": [str(stride) for stride in map.strides],
        "box": list(map.box),
        "steps": list(map.steps),
        "swizzle": map.swizzle,
        "interleave": map.interleave,
        "fill": map.fill,
        **corners,
    }


def vectors(kernel: k.Kernel) -> Iterator[Data]:
    """Vector accesses."""
    for stmt in k.walk(kernel.body):
        for first, kind, count in stmt.costs if isinstance(stmt, k.Operation) and not stmt.by else ():
            if count > 1:
                yield {"kind": kind, "buffer": first.buffer.name, "width": count, "line": stmt.span.line}


def _removed(kernel: k.Kernel, made: Materialised | None) -> Iterator[str]:
    """Comparisons of the schedule's graphs that this kernel need not test, each with its theorem."""
    own = {a.sym for a in kernel.axes} | k.declared(kernel.body)
    for guarded in made.guards if made is not None else ():
        if guarded.loops[-1].sym in own:
            yield from map(str, guarded.predicates.removed)


def _predicates(body: tuple[k.Stmt, ...]) -> Iterator[str]:
    """Guards added by the mapping, merged with the program's own conditions."""
    for stmt in k.walk(body):
        if isinstance(stmt, k.If):
            yield condition_text(stmt.condition)


def condition_text(value: Value) -> str:
    """A condition as readable text."""
    match value:
        case Op(name, (one, other)) if name in _SIGNS:
            return f"{condition_text(one)} {_SIGNS[name]} {condition_text(other)}"
        case Op(name, args):
            return f"{name}({', '.join(map(condition_text, args))})"
        case Index(expr):
            return str(expr)
        case Literal(number):
            return str(number)
        case Load(buffer, index):
            return f"{buffer.name}[{', '.join(map(str, index))}]"
        case Ref(sym):
            return sym.base
        case _:
            return f"{value.dtype}({condition_text(value.arg)})"


def _buffer_text(buffer: Buffer) -> str:
    return f"{buffer.name}: {buffer.dtype}[{', '.join(map(str, buffer.shape))}]"
