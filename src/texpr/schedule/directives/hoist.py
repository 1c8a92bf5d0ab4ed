"""`hoist(k) -> t_ahead`: a sum in an `if` is done ahead of it, in memory of its own, whether or not it is asked for.

Before: par N |j| { t = -inf  if j <= i { t = 0  seq K |k| reduce(t) { t += A[i, k] * B[j, k] } } }
After:  par N |j| { new t_ahead: f32  t_ahead = 0  seq K |k| reduce(t_ahead) { t_ahead += A[i, k] * B[j, k] }
                    t = -inf  if j <= i { t = 0  t += t_ahead } }

Nothing stands between the loops of a product then, so that it is tiled as any other. The order of the sum has to be free, what
it reads must not change in the `if`, and its subscripts are in bounds without it.
"""

from __future__ import annotations

from texpr.checks.bounds import bounds
from texpr.checks.subject import Subject
from texpr.ir import program as ir
from texpr.ir.program.rewrite import Rewriter
from texpr.ir.value import Buffer, Load
from texpr.schedule.call import Call, Rule
from texpr.schedule.rewrite.materialise import materialise
from texpr.schedule.rewrite.shape import free_loop
from texpr.schedule.state import State
from texpr.schedule.sums.parts import neutral, require_early, sums
from texpr.schedule.tree import Body, path_to, replaced
from texpr.support.diagnostic import Note
from texpr.support.record import replace


def _apply(call: Call) -> State:
    call.expect(1)
    loop = free_loop(call, call.plain[0])
    branch = _branch(call, loop)
    way, updates = sums(call, loop)
    _require_one_element(call, way, updates)
    require_early(call, branch, "the `if`", loop, updates)
    buffers = tuple(each.targets[0].buffer for each in updates)
    names = call.results(*(f"{buffer.name}_ahead" for buffer in buffers))
    span = call.directive.span
    made = {b: Buffer(name.name, b.dtype, (), "local", span=span) for b, name in zip(buffers, names, strict=True)}
    ahead: Body = (
        *(ir.New(buffer, span=span) for buffer in made.values()),
        *(ir.Bind((Load(made[each.targets[0].buffer], (), span=span),), (neutral(each),), span=span) for each in updates),
        _into(way, updates, made),
    )
    joins = tuple(
        ir.Bind(each.targets, (Load(made[each.targets[0].buffer], (), span=each.span),), each.update, span=span)
        for each in updates
    )
    (left,) = replaced((branch,), loop, lambda _: joins)
    state = call.state.with_body(replaced(call.state.function.body, branch, lambda _: (*ahead, left)))
    _require_in_bounds(call, state, ahead[-1])
    return state


def _branch(call: Call, loop: ir.Loop) -> ir.If:
    """The outermost `if` between a loop and the loop around it."""
    path = path_to(call.state.function.body, loop) or ()
    ifs = list[ir.If]()
    for step in reversed(path[:-1]):
        if not isinstance(step, ir.If):
            break
        ifs.append(step)
    if not ifs:
        raise call.refuse("E0905", f"the loop over `{loop.sym.base}` is not in an `if`", at=call.plain[0])
    return ifs[-1]


def _require_one_element(call: Call, way: tuple[ir.Loop, ...], updates: tuple[ir.Bind, ...]) -> None:
    moving = frozenset[object]().union(*(call.state.above(loop) for loop in way))
    for each in updates:
        target = each.targets[0]
        if moving & {s for e in target.index for s in e.syms()}:
            reason = f"iterations of `{way[0].sym.base}` add to several elements of `{target.buffer.name}`"
            raise call.refuse("E0905", reason, Note("this update", each.span))


def _into(way: tuple[ir.Loop, ...], updates: tuple[ir.Bind, ...], made: dict[Buffer, Buffer]) -> ir.Stmt:
    """The loops of a sum, into memory of its own."""
    rewriter = Rewriter(target=lambda old: Load(made[old.buffer], (), span=old.span))
    body: Body = tuple(map(rewriter.stmt, updates))
    for loop in reversed(way):
        body = (replace(loop, body=body, reduce=tuple(made.get(b, b) for b in loop.reduce)),)
    return body[0]


def _require_in_bounds(call: Call, state: State, loop: ir.Stmt) -> None:
    """That the sum reads no element that there is not, where the `if` does not hold."""
    for found in bounds(Subject(materialise(state.alone(loop)).function)):
        reason = f"without the `if` around it, the sum may read what there is not: {found.message}"
        raise call.refuse("E0906", reason, Note("it is read here", found.span) if found.span else Note("", call.directive.span))


RULE = Rule("hoist", "hoist(LOOP) -> (NAME, …)", _apply)
