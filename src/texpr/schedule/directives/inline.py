"""`inline(v)`: the value of v is recomputed at each read, and v is removed.

Before: par N |i| { v[i] = a * x[i] }; par N |j| { y[j] = v[j] + v[N - 1 - j] }
After:  par N |j| { y[j] = a * x[j] + a * x[N - 1 - j] }

For a `new` that one plain bind writes, in subscripts that are loop indices, from buffers that stay as they are while v lives.
"""

from __future__ import annotations

from texpr.affine.expr import Sym
from texpr.ir import program as ir
from texpr.ir.program.rewrite import Rewriter, replace_loads, substitute_value, with_blocks
from texpr.ir.program.uses import loads, symbols
from texpr.ir.value import Buffer, Load, Ref, Value, walk
from texpr.schedule.call import Call, Rule
from texpr.schedule.state import State
from texpr.schedule.tree import Body, path_to
from texpr.support.diagnostic import Note


def _apply(call: Call) -> State:
    call.expect(1)
    call.no_results()
    buffer = call.buffer(call.plain[0])
    function = call.state.function
    new = next((s for s in ir.walk(function.body) if isinstance(s, ir.New) and s.buffer is buffer), None)
    if new is None or buffer in function.results:
        role = "a result" if buffer in function.results else "a parameter"
        raise call.refuse("E0905", f"`{buffer.name}` is {role}, and only a local can be computed again", at=call.plain[0])
    if buffer in call.state.allocations:
        raise call.refuse("E0905", f"`{buffer.name}` has an allocation of its own already", at=call.plain[0])
    writer = _writer(call, buffer)
    index = _indices(call, writer)
    _require_scope(call, new, writer, index)
    (value,) = writer.values

    def load(old: Load) -> Value | None:
        if old.buffer is not buffer:
            return None
        if old.data:
            raise call.refuse("E0905", f"`{buffer.name}` is read at subscripts that are data", Note("here", old.span))
        inner = replace_loads(value, load)
        return substitute_value(inner, dict(zip(index, old.index, strict=True)))

    kept = _without(function.body, (new, writer))

    def target(old: Load) -> Load:
        moved = replace_loads(old, load)
        assert isinstance(moved, Load)
        return moved

    rewriter = Rewriter(value=lambda v: replace_loads(v, load), target=target)
    return call.state.with_body(rewriter.block(kept))


def _writer(call: Call, buffer: Buffer) -> ir.Bind:
    """The only bind that writes it."""
    binds = [s for s in ir.walk(call.state.function.body) if isinstance(s, ir.Bind)]
    writers = [s for s in binds if any(t.buffer is buffer for t in s.targets)]
    if len(writers) != 1 or writers[0].update is not None or len(writers[0].targets) != 1:
        notes = tuple(Note("it is written here", s.span) for s in writers)
        raise call.refuse("E0905", f"`{buffer.name}` is not written by one plain bind", *notes, at=call.plain[0])
    (writer,) = writers
    if any(isinstance(node, Ref) for value in writer.values for node in walk(value)):
        raise call.refuse("E0905", f"`{buffer.name}` is computed from a `let`", Note("here", writer.span), at=call.plain[0])
    if any(load.buffer is buffer for value in writer.values for load in _loads(value)):
        raise call.refuse("E0905", f"`{buffer.name}` is computed from itself", Note("here", writer.span), at=call.plain[0])
    return writer


def _loads(value: Value) -> tuple[Load, ...]:
    return tuple(node for node in walk(value) if isinstance(node, Load))


def _indices(call: Call, writer: ir.Bind) -> tuple[Sym, ...]:
    """The loop indices in its subscripts, each once."""
    found = tuple(e.as_sym for e in writer.targets[0].index)
    syms = tuple(s for s in found if s is not None)
    if len(syms) < len(found) or len(set(syms)) < len(syms):
        reason = f"the subscripts of `{writer.targets[0].buffer.name}` where it is written are not loop indices"
        raise call.refuse("E0905", reason, Note("here", writer.span), at=call.plain[0])
    return syms


def _require_scope(call: Call, new: ir.New, writer: ir.Bind, index: tuple[Sym, ...]) -> None:
    """The operands have the same values where they are recomputed: loops outside of the `new`, buffers not written in its
    scope."""
    body = call.state.function.body
    path = path_to(body, new) or ()
    outside = {s.sym for s in path if isinstance(s, ir.Par | ir.Seq)}
    inside = {s.sym for s in path_to(body, writer) or () if isinstance(s, ir.Par | ir.Seq)} - outside
    above = {d.sym for t in call.state.transforms for d in (*t.inputs, *t.outputs)}
    used = symbols((writer,)) - set(index)
    name = new.buffer.name
    if used & (inside | above):
        reason = f"`{name}` depends on `{min(s.base for s in used & (inside | above))}` besides its subscripts"
        raise call.refuse("E0905", reason, Note("here", writer.span), at=call.plain[0])
    block: Body = next((b for s in reversed(path[:-1]) for b in ir.blocks(s) if path_to(b, new)), body)
    read = {load.buffer for load in loads(writer)} - {new.buffer}
    for stmt in ir.walk(block):
        written = [t.buffer for t in stmt.targets] if isinstance(stmt, ir.Bind) else []
        clash = next((b for b in written if b in read), None)
        if clash is not None:
            reason = f"`{name}` is computed from `{clash.name}`, which changes while `{name}` lives"
            raise call.refuse("E0906", reason, Note("it is written here", stmt.span), at=call.plain[0])


def _without(body: Body, gone: tuple[ir.Stmt, ...]) -> Body:
    """`body` without some statements, and without loops and branches that become empty."""
    found: list[ir.Stmt] = []
    for stmt in body:
        if any(stmt is g for g in gone):
            continue
        made = with_blocks(stmt, tuple(_without(block, gone) for block in ir.blocks(stmt)))
        if not ir.blocks(made) or any(ir.blocks(made)):
            found.append(made)
    return tuple(found)


RULE = Rule("inline", "inline(BUFFER)", _apply)
