"""`partial(ko, at=i) -> C_parts`: what iterations of ko add to a sum, in memory of their own, before the loop over i.

Before: par M |i| { par N |j| { C[i, j] = 0  seq P |ko| reduce(C) { seq 16 |ki| reduce(C) { C[i, j] += … } }  … } }
After:  new C_parts: f32[P, M, N]
        par P |ko| { par M |i_1| { par N |j_1| {
            C_parts[ko, i, j] = 0
            seq 16 |ki| reduce(C_parts) { C_parts[ko, i, j] += … }
        } } }
        par M |i| { par N |j| { C[i, j] = 0  seq P |ko_1| reduce(C) { C[i, j] += C_parts[ko, i, j] }  … } }

Iterations of ko are independent then, so that blocks may share them. Without `at=` parts are summed up where ko is. The order
of the sum has to be free, and what it reads must stay as it is in the loop over i.

`partial(ko, at=ko)`: each iteration of ko has memory of its own for what it adds, and adds that at its end.

After:  par M |i| { par N |j| { C[i, j] = 0  seq P |ko| reduce(C) {
            new C_parts: f32
            C_parts = 0
            seq 16 |ki| reduce(C_parts) { C_parts += … }
            C[i, j] += C_parts
        }  … } }
"""

from __future__ import annotations

from texpr.affine.expr import Expr, expr
from texpr.ir import program as ir
from texpr.ir.program.rewrite import Rewriter
from texpr.ir.value import Buffer, Load
from texpr.schedule.call import Call, Rule
from texpr.schedule.rewrite.shape import free_loop
from texpr.schedule.state import State
from texpr.schedule.sums.parts import neutral, require_early, sums
from texpr.schedule.tree import Body, path_to, replaced
from texpr.support.diagnostic import Note
from texpr.support.record import Record, replace


class _Sum(Record):
    """`loop`, whose iterations are parts, inside of `outer`, before the first of which parts are summed up. `around`: loops in
    it over elements; `inner`: loops that sum up; `updates`: what the innermost does."""

    call: Call
    outer: tuple[ir.Loop, ...]
    loop: ir.Loop
    around: tuple[ir.Loop, ...]
    inner: tuple[ir.Loop, ...]
    updates: tuple[ir.Bind, ...]

    def memory(self, buffer: Buffer, name: str) -> Buffer:
        """Memory for the parts of elements of a buffer. Those of a `par`, which threads share, are neighbours."""
        own = self._own(next(each.targets[0] for each in self.updates if each.targets[0].buffer is buffer))
        count, *extents = (self.call.state.domain(loop).extent for loop in (self.loop, *own))
        shape = self._placed(count, (*extents, *buffer.shape))
        return Buffer(name, buffer.dtype, shape, "local", span=self.call.directive.span)

    def part(self, target: Load, parts: dict[Buffer, Buffer]) -> Load:
        """The part of an element."""
        at, *own = (expr(self.call.state.domain(loop).sym) for loop in (self.loop, *self._own(target)))
        return Load(parts[target.buffer], self._placed(at, (*own, *target.index)), span=target.span)

    def _placed(self, count: Expr, others: tuple[Expr, ...]) -> tuple[Expr, ...]:
        return (*others, count) if isinstance(self.loop, ir.Par) else (count, *others)

    def _own(self, target: Load) -> list[ir.Loop]:
        """The loops around that its subscripts do not tell."""
        said = {s for e in target.index for s in e.syms()}
        return [loop for loop in self.outer if not self.call.state.above(loop) & said]


def _apply(call: Call) -> State:
    call.expect(1, keys=("at",))
    loop = free_loop(call, call.plain[0])
    where = call.key("at")
    if where is not None and call.loop(where) is loop:
        return _inside(call, loop)
    found = _sum(call, loop)
    buffers = tuple(each.targets[0].buffer for each in found.updates)
    names = call.results(*(f"{buffer.name}_parts" for buffer in buffers))
    parts = {b: found.memory(b, name.name) for b, name in zip(buffers, names, strict=True)}
    news = tuple(ir.New(buffer, span=call.directive.span) for buffer in parts.values())
    state, first = _summed(found, parts)
    state, last = _joined(found, state, parts)
    if not found.outer:
        return state.with_body(replaced(state.function.body, loop, lambda _: (*news, first, last)))
    (at,) = replaced((found.outer[0],), loop, lambda _: (last,))
    return state.with_body(replaced(state.function.body, found.outer[0], lambda _: (*news, first, at)))


def _inside(call: Call, loop: ir.Loop) -> State:
    """The sum with a part in each iteration of `loop`, which adds it up. Raises E0905 or E0906."""
    way, updates = sums(call, loop)
    if any(_elements(call, way, way, each) for each in updates):
        reason = f"loops inside of the one over `{loop.sym.base}` tell elements, and each has a part of its own"
        raise call.refuse("E0905", reason, at=call.plain[0], help="`reorder` these loops around it")
    targets = [each.targets[0] for each in updates]
    names = call.results(*(f"{target.buffer.name}_parts" for target in targets))
    span = call.directive.span
    made = {t.buffer: Buffer(name.name, t.dtype, (), "local", span=span) for t, name in zip(targets, names, strict=True)}
    parts = {buffer: Load(part, (), span=span) for buffer, part in made.items()}
    body: Body = tuple(replace(each, targets=(parts[each.targets[0].buffer],)) for each in updates)
    for inner in reversed(way[1:]):
        body = (replace(inner, body=body, reduce=tuple(made.get(b, b) for b in inner.reduce)),)
    news = tuple(ir.New(part, span=span) for part in made.values())
    starts = tuple(ir.Bind((parts[each.targets[0].buffer],), (neutral(each),), span=span) for each in updates)
    joins = tuple(ir.Bind(each.targets, (parts[each.targets[0].buffer],), each.update, span=span) for each in updates)
    whole = replace(loop, body=(*news, *starts, *body, *joins))
    return call.state.with_body(replaced(call.state.function.body, loop, lambda _: (whole,)))


def _sum(call: Call, loop: ir.Loop) -> _Sum:
    outer = _outer(call, loop)
    way, updates = sums(call, loop)
    counts = {_elements(call, way, (*outer, *way), each) for each in updates}
    if len(counts) > 1:
        raise call.refuse("E0905", "the sums are of elements in different loops", at=call.plain[0])
    count = counts.pop()
    _require_alike(call, outer, (loop, *way[1 : count + 1]))
    first = (*outer, loop)[0]
    require_early(call, first, f"the loop over `{first.sym.base}`", loop, updates)
    return _Sum(call, outer, loop, way[1 : count + 1], way[count + 1 :], updates)


def _require_alike(call: Call, outer: tuple[ir.Loop, ...], own: tuple[ir.Loop, ...]) -> None:
    """That memory for parts has one shape: how often loops run that count parts, or tell elements, is the same in all
    iterations of those that are left inside. Raises E0906."""
    every = (*outer, *own)
    for at, loop in enumerate(every):
        count = call.state.domain(loop).extent
        inside = every[:at]
        moving = next((each for each in inside if call.state.above(each) & count.syms()), None)
        if moving is not None and (outer or loop is not own[0]):
            told = f"how often the loop over `{loop.sym.base}` runs depends on `{moving.sym.base}`"
            raise call.refuse("E0906", f"{told}, and memory for parts has one shape", at=call.plain[0])


def _outer(call: Call, loop: ir.Loop) -> tuple[ir.Loop, ...]:
    """The loops around, from the one before which parts are summed up."""
    where = call.key("at")
    if where is None:
        return ()
    at = call.loop(where)
    path = path_to(at.body, loop)
    if path is None:
        reason = f"the loop over `{loop.sym.base}` is not inside of the one over `{at.sym.base}`"
        raise call.refuse("E0905", reason, at=where, help="`at=` names a loop around it")
    found = [step for step in (at, *path[:-1]) if isinstance(step, ir.Par | ir.Seq)]
    if len(found) < len(path):
        raise call.refuse("E0905", f"an `if` stands between `{at.sym.base}` and `{loop.sym.base}`", at=where)
    return tuple(found)


def _elements(call: Call, way: tuple[ir.Loop, ...], every: tuple[ir.Loop, ...], update: ir.Bind) -> int:
    """How many loops inside of the first of `way` tell the element of an update: these are around all others."""
    loop, *rest = way
    target = update.targets[0]
    said = {s for e in target.index for s in e.syms()}
    name, note = target.buffer.name, Note("this update", update.span)
    if call.state.above(loop) & said:
        raise call.refuse("E0905", f"each iteration of `{loop.sym.base}` has elements of `{name}` of its own", note)
    tells = [bool(call.state.above(inner) & said) for inner in rest]
    if tells != sorted(tells, reverse=True):
        reason = f"loops that tell elements of `{name}` are inside of others, which sum up"
        raise call.refuse("E0905", reason, note, help="`reorder` the former around the latter")
    moving = frozenset[object]().union(*(call.state.above(inner) & said for inner in every))
    if not moving <= {e.as_sym for e in target.index}:
        raise call.refuse("E0905", f"subscripts of `{name}` are no loop indices, so iterations may share an element", note)
    return sum(tells)


def _summed(found: _Sum, parts: dict[Buffer, Buffer]) -> tuple[State, ir.Stmt]:
    """The loops that sum up parts."""
    state, copies = found.call.state, list[ir.Loop]()
    for each in found.outer:
        state, copy = state.copy_of(each)
        copies.append(copy)
    body: Body = tuple(map(Rewriter(target=lambda old: found.part(old, parts)).stmt, found.updates))
    for each in reversed(found.inner):
        body = (replace(each, body=body, reduce=tuple(parts.get(b, b) for b in each.reduce)),)
    span = found.call.directive.span
    starts = (ir.Bind((found.part(each.targets[0], parts),), (neutral(each),), span=span) for each in found.updates)
    body = (*starts, *body)
    for each in reversed((*copies, *found.around)):
        body = (replace(each, body=body, reduce=()),)
    loop = found.loop
    return state, ir.Par(loop.sym, loop.extent, body, label=loop.label, directives=loop.directives, span=loop.span)


def _joined(found: _Sum, state: State, parts: dict[Buffer, Buffer]) -> tuple[State, ir.Stmt]:
    """The loops that add the parts of each element up."""
    copies = list[ir.Loop]()
    for each in (*found.around, found.loop):
        state, copy = state.copy_of(each)
        copies.append(copy)
    span = found.call.directive.span
    body: Body = tuple(
        ir.Bind(each.targets, (found.part(each.targets[0], parts),), each.update, span=span) for each in found.updates
    )
    for each in reversed(copies):
        body = (replace(each, body=body, reduce=each.reduce if each is copies[-1] else ()),)
    return state, body[0]


RULE = Rule("partial", "partial(LOOP, at=LOOP) -> (NAME, …)", _apply)
