"""The context of elaboration: the file's items, the function's names, the block's statements."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from texpr.affine.expr import ZERO, Expr, Mod, Sym, expr
from texpr.frontend.elaboration.body.one_step import OneStep
from texpr.frontend.elaboration.drafts import Affine, Draft
from texpr.frontend.elaboration.scope import Namer, Scope
from texpr.frontend.tree import Call, Combine, Fn, Instr, Schedule
from texpr.ir import instr as record
from texpr.ir.program import Assume, Combiner, Compare, Function, Stmt
from texpr.support.diagnostic import Diagnostic, Note, TexprError, error
from texpr.support.record import Mutable, Record, field, replace
from texpr.support.span import Span

MAX_COPIES = 10_000
"""Statements that unrolling and inlining may add to one function."""
MAX_FRAMES = 560
"""An estimate of the Python stack frames that one elaboration may take."""
MAX_ERRORS = 100


class File(Mutable):
    """The items of a file by name, and what is known of them so far. `records`: instructions that lanes do together."""

    fns: dict[str, Fn]
    instrs: dict[str, Instr]
    combines: dict[str, Combine]
    consts: Mapping[str, int]
    # Two cycles: an expression may call a function, whose body has expressions; and a call needs the function checked.
    scalar_call: Callable[[Context, Call], Draft]
    is_made: Callable[[File, str, Span], bool]
    builtins: tuple[str, ...]
    combiners: dict[str, Combiner | None] = field(default_factory=lambda: dict[str, Combiner | None]())
    records: dict[str, record.Instr] = field(default_factory=lambda: dict[str, record.Instr]())
    functions: dict[str, Function | None] = field(default_factory=lambda: dict[str, Function | None]())
    unmade: dict[str, list[Diagnostic]] = field(default_factory=lambda: dict[str, list[Diagnostic]]())
    schedules: dict[str, list[Schedule]] = field(default_factory=lambda: dict[str, list[Schedule]]())
    called: set[str] = field(default_factory=lambda: set[str]())
    checked: dict[str, bool] = field(default_factory=lambda: dict[str, bool]())
    active: list[str] = field(default_factory=lambda: list[str]())
    diagnostics: list[Diagnostic] = field(default_factory=lambda: list[Diagnostic]())
    frames: int = 0

    def deeper(self, frames: int, span: Span) -> _Deeper:
        """Context manager: `frames` further down the stack; refuses what would overflow it."""
        if self.frames > MAX_FRAMES:
            help = "name parts of it with `let`, or nest fewer calls and blocks"
            raise error("E0317", span, "too deep after calls are put in and loops unrolled", help=help)
        return _Deeper(self, frames)


class _Deeper:
    __slots__ = ("file", "frames")

    def __init__(self, file: File, frames: int):
        self.file, self.frames = file, frames

    def __enter__(self) -> None:
        self.file.frames += self.frames

    def __exit__(self, *raised: object) -> None:
        self.file.frames -= self.frames


class Slot(Record):
    """The buffer for the `new` of a returned name: its name, role and alignment."""

    name: str
    role: str
    align: int | None = None


class Making(Mutable):
    """The function under elaboration."""

    file: File
    namer: Namer = field(default_factory=Namer)
    wheres: list[Compare] = field(default_factory=lambda: list[Compare]())
    assumes: list[Assume] = field(default_factory=lambda: list[Assume]())
    consts: list[tuple[Sym, int | None]] = field(default_factory=lambda: list[tuple[Sym, int | None]]())
    calls: list[tuple[str, Span]] = field(default_factory=lambda: list[tuple[str, Span]]())
    diagnostics: list[Diagnostic] = field(default_factory=lambda: list[Diagnostic]())
    steps: list[OneStep] = field(default_factory=lambda: list[OneStep]())
    """Uses of instructions that are one update, as one step."""
    copies: int = 0
    facts: dict[Sym, Expr] = field(default_factory=lambda: dict[Sym, Expr]())

    def keep(self, raised: TexprError) -> None:
        """Context manager that records diagnostics and goes on; those inside a call mention the call."""
        notes = tuple(Note(f"in this call of `{name}`", span) for name, span in reversed(self.calls))
        for found in raised.diagnostics:
            kept = replace(found, notes=(*found.notes, *notes))
            if not any(_same(kept, d) for d in self.diagnostics):
                self.diagnostics.append(kept)
        if len(self.diagnostics) > MAX_ERRORS:
            raise TexprError(self.diagnostics)

    @property
    def is_too_large(self) -> bool:
        """Whether inlining and unrolling exceeded the limit, so that the function is given up."""
        return self.copies > MAX_COPIES

    def count(self, copies: int, span: Span) -> None:
        """Counts statements added by unrolling and inlining."""
        self.copies += copies
        if self.is_too_large:
            message = f"more than {MAX_COPIES} statements after loops are unrolled and calls put in"
            raise error("E0317", span, message, help="use `par` or `seq` in place of `static for`")

    def learn(self, fact: Compare) -> None:
        """Records a `where`; equalities also as a substitution, for comparisons of counts."""
        self.wheres.append(fact)
        if fact.op != "==":
            return
        for one, other in ((fact.left, fact.right), (fact.right, fact.left)):
            symbol = one.as_sym
            if symbol is not None and symbol not in other.syms():
                return self._substitute(symbol, other)
        if fact.right is ZERO:
            self._learn_multiple(fact.left)

    def _learn_multiple(self, remainder: Expr) -> None:
        """From `size % step == 0`: the size is `step` times a fresh symbol."""
        if remainder.constant == 0 and len(remainder.terms) == 1 and len(remainder.terms[0][0]) == 1:
            atom = remainder.terms[0][0][0]
            symbol = atom.num.as_sym if isinstance(atom, Mod) else None
            if isinstance(atom, Mod) and symbol is not None:
                self._substitute(symbol, atom.den * Sym(f"{symbol.name}'q"))

    def _substitute(self, symbol: Sym, value: Expr) -> None:
        value = value.substitute(self.facts)
        if symbol in self.facts or symbol in value.syms():
            return
        self.facts = {s: e.substitute({symbol: value}) for s, e in self.facts.items()} | {symbol: value}

    def equal(self, left: Expr, right: Expr) -> bool:
        """Whether two index expressions are equal, given the equalities and multiples of the `where` clauses."""
        return left is right or (left - right).substitute(self.facts) is ZERO


class Context(Mutable):
    """A block under elaboration: its scope, and its statements.

    `slots` gives the returned names their buffers, in the outermost block of a function or of a call.
    """

    making: Making
    scope: Scope
    out: list[Stmt]
    slots: Mapping[str, Slot] = field(default_factory=lambda: dict[str, Slot]())

    @property
    def file(self) -> File:
        """The file."""
        return self.making.file

    def inner(self) -> Context:
        """A nested block."""
        return Context(self.making, Scope(self.scope), [])

    def flat(self) -> Context:
        """A nested scope whose statements join this block."""
        return Context(self.making, Scope(self.scope), self.out)

    def symbol(self, name: str) -> Sym:
        """A fresh symbol for a declaration of `name`."""
        return Sym(self.making.namer.unique(name))


def constant(value: int) -> Affine:
    """An integer that is fixed at build."""
    return Affine(expr(value))


def _same(one: Diagnostic, other: Diagnostic) -> bool:
    a, b = one.span, other.span
    where = a is None if b is None else a is not None and (a.source is b.source and a.start == b.start and a.end == b.end)
    return where and one.code == other.code and one.message == other.message
