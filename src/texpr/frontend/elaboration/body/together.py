"""Instructions that lanes do together: what stands around one in a `fully par` becomes loops over lanes of their own.

    fully par 32 |lane| {                               new a: f16[32, 8]      -- a lane's registers, of all lanes
        new a: f16[8]                                   fully par 32 |lane| { a[lane, …] = … }
        …                                 becomes       instr mma(a, b, c)     -- once, by all of them
        mma(a, b, c)                                    fully par 32 |lane| { … }
        …
    }

All lanes come to it: it stands in loops and branches that are the same for all of them. What it means is said of its operands;
the fragment says in which register of which lane an element is. An operand that is a part of an array is brought to registers
of its own first, as its fragment says, and put back where the instruction writes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from texpr.affine.expr import ZERO, Expr, Sym, expr
from texpr.affine.facts import Known
from texpr.affine.simplify import Simplifier
from texpr.frontend.elaboration.views import FORMALS
from texpr.ir.instr import Give, Instr, Operand, Step, Turn
from texpr.ir.program import (
    Bind,
    If,
    Instruction,
    Let,
    New,
    Par,
    Seq,
    Stmt,
    values,
    walk,
)
from texpr.ir.program.rewrite import Rewriter, map_value, replace_loads, substitute_block, substitute_load
from texpr.ir.value import Buffer, Index, Load, Ref, Value
from texpr.ir.value import walk as value_walk
from texpr.support.diagnostic import Note, error, limitation
from texpr.support.record import Mutable, field, replace
from texpr.support.span import Span

Named = Callable[[str], str]
"""A name of its own for something that is called so."""


def together(body: tuple[Stmt, ...], named: Named) -> tuple[Stmt, ...]:
    """`body` with each instruction that lanes do together once, between loops over the lanes. Raises TexprError E0421."""
    return tuple(_visit(body, named, None)) if any(map(_is_joint, walk(body))) else body


def _is_joint(stmt: Stmt) -> bool:
    """Whether it is a use that is still to be told by lanes; one that is written out is."""
    return isinstance(stmt, Instruction) and stmt.instr is not None and not stmt.body


def _holds(stmt: Stmt) -> bool:
    return any(map(_is_joint, walk((stmt,))))


def _visit(body: tuple[Stmt, ...], named: Named, around: Par | None) -> Iterator[Stmt]:
    for stmt in body:
        match stmt:
            case Par() if stmt.fully and _holds(stmt):
                yield from _whole(Lanes(stmt, named).block(stmt.body), named, around, stmt.span)
            case Par() | Seq() if _holds(stmt):
                inner = stmt if isinstance(stmt, Par) else around
                yield replace(stmt, body=tuple(_visit(stmt.body, named, inner)))
            case If() if _holds(stmt):
                then, orelse = (tuple(_visit(block, named, around)) for block in (stmt.then, stmt.orelse))
                yield replace(stmt, then=then, orelse=orelse)
            case Instruction() if stmt.instr is not None and _is_joint(stmt):
                loop = Par(Sym(named("lane")), expr(stmt.instr.lanes), (stmt,), fully=True, span=stmt.span)
                yield from _whole(Lanes(loop, named).block((stmt,)), named, around, stmt.span)
            case _:
                yield stmt


def _whole(made: Iterator[Stmt], named: Named, around: Par | None, span: Span) -> Iterator[Stmt]:
    """What is made of one `fully par` is done by one block: outside of every loop over blocks, in one of its own."""
    found = tuple(made)
    if around is None:
        yield Par(Sym(named("block")), expr(1), found, span=span)
    else:
        yield from found


class Lanes(Mutable):
    """One `fully par`. `own`: its `new`s as all lanes have them, the lane's number first."""

    loop: Par
    named: Named
    own: dict[Buffer, Buffer] = field(default_factory=dict[Buffer, Buffer])
    lets: dict[Sym, tuple[Let, int]] = field(default_factory=dict[Sym, "tuple[Let, int]"])
    pieces: int = 0

    @property
    def lanes(self) -> int:
        """How many there are."""
        return self.loop.extent.constant

    def block(self, body: Sequence[Stmt]) -> Iterator[Stmt]:
        """Statements that all lanes come to."""
        if not self.loop.extent.is_constant:
            reason = f"the extent of a `fully par` must be a positive constant, not `{self.loop.extent}`"
            raise error("E0410", self.loop.span, reason)
        for pragma in self.loop.directives:
            if pragma.name in ("cluster", "grid"):
                use = next(each for each in walk(tuple(body)) if _is_joint(each))
                told = f"lanes of a warp do it together, and iterations of this `fully par` are blocks of a {pragma.name}"
                raise error("E0421", use.span, told, Note("here", pragma.span), help="write `#block`, or leave it out")
        run: list[Stmt] = []
        for stmt in body:
            match stmt:
                case New():
                    yield New(self.expanded(stmt.buffer), span=stmt.span)
                case _ if not _holds(stmt):
                    run.append(stmt)
                case Instruction():
                    yield from self.piece(run)
                    yield from self._used(stmt)
                case Seq():
                    yield from self.piece(run)
                    self.require_alike((stmt.extent,), (), stmt, "loop")
                    yield replace(stmt, body=tuple(self.block(stmt.body)))
                case If():
                    yield from self.piece(run)
                    self.require_alike((), (stmt.condition,), stmt, "`if`")
                    then, orelse = (tuple(self.block(block)) for block in (stmt.then, stmt.orelse))
                    yield replace(stmt, then=then, orelse=orelse)
                case _:
                    self.refuse(stmt, "its iterations need not run together")
        yield from self.piece(run)

    def expanded(self, buffer: Buffer) -> Buffer:
        self.own[buffer] = replace(buffer, shape=(self.loop.extent, *buffer.shape))
        return self.own[buffer]

    def piece(self, run: list[Stmt]) -> Iterator[Stmt]:
        """A loop over lanes around what was gathered."""
        if not run:
            return
        self.pieces += 1
        for stmt in walk(tuple(run)):
            if isinstance(stmt, Let):
                self.lets[stmt.sym] = stmt, self.pieces
        for ref in (node for stmt in walk(tuple(run)) for value in values(stmt) for node in value_walk(value)):
            if isinstance(ref, Ref):
                self._require_here(ref.sym, run[0])
        lane = Sym(self.named(self.loop.sym.base))
        updated = {t.buffer for s in walk(tuple(run)) if isinstance(s, Bind) and s.update is not None for t in s.targets}
        reduce = tuple(buffer for buffer in self.loop.reduce if buffer in updated)
        yield Par(
            lane,
            self.loop.extent,
            self._of_lane(tuple(run), expr(lane)),
            reduce,
            None,
            self.loop.directives,
            True,
            self.loop.span,
            self.loop.ieee and bool(reduce),
        )
        run.clear()

    def _require_here(self, sym: Sym, stmt: Stmt) -> None:
        let, piece = self.lets.get(sym, (None, 0))
        if let is not None and piece != self.pieces:
            help = "keep it in a `new`, which a lane has before and behind the instruction"
            told = f"`{sym.base}` is read by each lane before an instruction that all of them do, and used behind it"
            raise limitation("E0541", stmt.span, told, Note("it is read here", let.span), help=help)

    def _of_lane(self, body: tuple[Stmt, ...], lane: Expr) -> tuple[Stmt, ...]:
        """Statements of one lane."""

        def load(old: Load) -> Load:
            return replace(old, buffer=self.own[old.buffer], index=(lane, *old.index)) if old.buffer in self.own else old

        def value(old: Value) -> Value:
            return replace_loads(old, lambda found: load(found) if found.buffer in self.own else None)

        def buffer(old: Buffer) -> Buffer:
            return self.own.get(old, old)

        return substitute_block(Rewriter(value=value, target=load, buffer=buffer).block(body), {self.loop.sym: lane})

    def _used(self, use: Instruction) -> Iterator[Stmt]:
        """An instruction on registers, between what brings operands to them and what puts them back."""
        instr = use.instr
        assert instr is not None
        if self.lanes % instr.lanes:
            told = f"`{instr.name}` is done by {instr.lanes} lanes together, and the `fully par` around it has {self.lanes}"
            raise error("E0421", use.span, told, Note("the loop", self.loop.span), help=f"write `fully par {instr.lanes}`")
        given: list[Load] = []
        before: list[Stmt] = []
        behind: list[Stmt] = []
        for operand, load in zip(instr.operands, use.operands, strict=True):
            if operand.is_shared:
                self._require_one_part(operand, load, use)
                given.append(load)
                continue
            if load.buffer in self.own:
                self._require_known(load)
                given.append(replace(load, buffer=self.own[load.buffer]))
                continue
            made = Buffer(
                self.named(operand.name), operand.dtype, (self.loop.extent, expr(operand.fragment.registers)), "local"
            )
            given.append(Load(made, (expr(FORMALS[0]),), (), load.span))
            before.append(New(made, span=use.span))
            if operand.access in ("read", "update"):
                before.append(self._moved(operand, load, made, use, inward=True))
            if operand.access in ("write", "update"):
                behind.append(self._moved(operand, load, made, use, inward=False))
        yield from before
        first = tuple(
            substitute_load(each, dict.fromkeys((*FORMALS[: each.buffer.rank], self.loop.sym), ZERO))
            if operand.is_shared
            else Load(each.buffer, (ZERO, *_register(each, ZERO)), (), each.span)
            for operand, each in zip(instr.operands, given, strict=True)
        )
        yield replace(use, body=self._meaning(instr, given, use.span), operands=first)
        yield from behind

    def _moved(self, operand: Operand, load: Load, made: Buffer, use: Instruction, *, inward: bool) -> Stmt:
        """Each lane brings, or puts back, what it holds of a part of an array."""
        lane, slot, group = Sym(self.named("lane")), Sym(self.named("slot")), operand.fragment.lanes
        index = operand.fragment.element(expr(lane) % group if self.lanes > group else expr(lane), expr(slot))
        there = substitute_load(load, {**dict(zip(FORMALS, index, strict=False)), self.loop.sym: expr(lane)})
        self._require_one_part(operand, load, use)
        kept = Load(made, (expr(lane), expr(slot)), (), load.span)
        bind = Bind((kept,), (there,), None, use.span) if inward else Bind((there,), (kept,), None, use.span)
        slots = Seq(slot, expr(operand.fragment.registers), (bind,), span=use.span)
        return Par(lane, self.loop.extent, (slots,), fully=True, directives=self.loop.directives, span=use.span)

    def _require_known(self, load: Load) -> None:
        """That registers are the same in each turn: a machine's have no subscripts."""
        (slot,) = _register(load, ZERO) if len(load.index) == 1 else (expr(FORMALS[0]),)
        if not slot.is_constant:
            told = f"which registers of `{load.buffer.name}` are meant is not known when it is built"
            raise error("E0316", load.span, told, help="write them in a `static for`, whose index is a number")

    def _require_one_part(self, operand: Operand, load: Load, use: Instruction) -> None:
        """That a part of an array is the same for all lanes that do it together, and in memory that they have together."""
        own, inside = Sym("lane of the group"), Sym("group of lanes")
        group = use.instr.lanes if use.instr is not None and operand.is_described else operand.fragment.lanes
        simple = Simplifier(Known({own: (0, group - 1), inside: (0, self.lanes // group - 1)}))
        base = [e.substitute({self.loop.sym: expr(inside) * group + own}) for e in load.index]
        if any(own in simple(e).syms() for e in base) or load.data or load.buffer in self.own:
            part = f"`{operand.name}` of `{use.name}` is another part of `{load.buffer.name}` for each lane"
            raise error(
                "E0421", load.span, f"{part}, and one for all is meant", help="name a part that does not depend on the lane"
            )

    def _meaning(self, instr: Instr, given: Sequence[Load], span: Span) -> tuple[Stmt, ...]:
        """What an instruction means, of registers."""
        names: dict[Sym, Expr] = {turn.sym: expr(Sym(self.named(turn.sym.base))) for turn in instr.loops}
        groups, copies = self.lanes // instr.lanes, instr.copied
        group, copy = Sym(self.named("group")), Sym(self.named("copy"))
        place = {o.memory: (o, load) for o, load in zip(instr.operands, given, strict=True)}
        reduced = {o.name: load.buffer for o, load in zip(instr.operands, given, strict=True)}
        first = expr(group) * instr.lanes if groups > 1 else ZERO

        def element(old: Load) -> Load:
            operand, load = place[old.buffer]
            index = [e.substitute(names) for e in old.index]
            if operand.is_shared:
                return substitute_load(load, {**dict(zip(FORMALS, index, strict=False)), self.loop.sym: first})
            which = expr(copy) % operand.fragment.copied if operand.fragment.copies else ZERO
            lane, slot = operand.fragment.lane(index, which), operand.fragment.register(index, which)
            return Load(load.buffer, (first + lane, *_register(load, slot)), (), old.span)

        def steps(some: tuple[Step, ...]) -> tuple[Stmt, ...]:
            return tuple(step(each) for each in some)

        def step(each: Step) -> Stmt:
            if isinstance(each, Turn):
                sym = names[each.sym].as_sym
                assert sym is not None
                free = tuple(dict.fromkeys(reduced[name] for name in each.free))
                return Seq(sym, expr(each.extent), steps(each.body), free, span=span)
            return given_to(each)

        def given_to(each: Give) -> Stmt:
            moved = _indices(replace_loads(each.value, element), names)
            return Bind((element(each.target),), (moved,), each.update, span)

        found = steps(instr.meaning)
        if copies > 1:
            found = (Seq(copy, expr(copies), found, span=span),)
        if groups > 1:
            found = (Seq(group, expr(groups), found, span=span),)
        return found

    def require_alike(self, extents: Sequence[Expr], tests: Sequence[Value], stmt: Stmt, what: str) -> None:
        """That all lanes go the same way."""
        nodes = [node for test in tests for node in value_walk(test)]
        index = [e for node in nodes for e in (node.index if isinstance(node, Load) else (getattr(node, "expr", ZERO),))]
        apart = any(self.loop.sym in e.syms() for e in (*extents, *index))
        apart |= any(isinstance(node, Load) and node.buffer in self.own for node in nodes)
        apart |= any(isinstance(node, Ref) and node.sym in self.lets for node in nodes)
        apart |= any(sym in self.lets for e in extents for sym in e.syms())
        if apart:
            self.refuse(stmt, f"this {what} is not the same for all of them")

    def refuse(self, stmt: Stmt, why: str) -> None:
        use = next(each for each in walk((stmt,)) if _is_joint(each))
        name = use.name if isinstance(use, Instruction) else ""
        told = f"lanes do `{name}` together, and may not all come to it: {why}"
        raise error("E0421", use.span, told, Note("here", stmt.span), help="let all lanes do it, and choose what each stores")


def _register(load: Load, slot: Expr) -> tuple[Expr, ...]:
    """The subscript of a register of an operand, in the array that has it."""
    return tuple(e.substitute({FORMALS[0]: slot}) for e in load.index)


def _indices(value: Value, names: Mapping[Sym, Expr]) -> Value:
    """`value` with the indices that are values themselves renamed; what it reads is named already."""

    def leaf(node: Value) -> Value | None:
        if isinstance(node, Load):
            return node
        return Index(node.expr.substitute(names), node.dtype, node.span) if isinstance(node, Index) else None

    return map_value(value, leaf)
