"""Statement instances and their accesses, as relations.

An instance is a statement with the values of the loops around it; its `domain` is the set of those at which it runs. An
access relates each instance to elements of a buffer. Where a subscript or a condition depends on data, the relation is a
superset (`exact` is False), never a subset.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cached_property
from typing import TypeAlias

from texpr.affine.expr import Expr, Sym, expr
from texpr.affine.facts import Known
from texpr.ir.program import Anchor, Bind, Function, If, Instruction, Let, Loop, Par, Seq, Update
from texpr.ir.value import Buffer, Load
from texpr.presburger.formula import Formula, conj, equal, rename
from texpr.presburger.isl.build import build_map
from texpr.presburger.isl.maps import Map, left, right
from texpr.presburger.isl.sets import Set
from texpr.relation.data import Hidden, told
from texpr.relation.delinearise import View
from texpr.relation.facts import facts_of, known
from texpr.relation.opaque import Opaque
from texpr.support.record import Record


class Branch(Record, eq=False):
    """One side of an `if`."""

    stmt: If
    taken: bool


Ancestor: TypeAlias = Par | Seq | Branch | Instruction
Computing: TypeAlias = Bind | Let | Anchor | If
"""Statements that have instances; an `if` stands for the evaluation of its condition."""


class Draft(Record, eq=False):
    """An access before it belongs to its instance: the view of the element, and the condition under which it happens.

    `index` and `shape` are affine: as written, or delinearised (then `shape` is not the buffer's). `guard` holds the
    conditions of the `select`s around the load, and the bounds of `hidden`. `certain` if the access happens at every point of
    `guard`, at the element `index`; `affine` if nothing was widened for not being affine. `further`: other views of the same
    element; `sure` if the access happens at each point, at an element that one of these gives. `is_whole`: `shape` covers
    every element of the buffer.
    """

    buffer: Buffer
    kind: str  # "read", "write", or "update" (both)
    load: Load
    index: tuple[Expr, ...]
    shape: tuple[Expr, ...]
    guard: Formula
    facts: tuple[Expr, ...]
    hidden: tuple[Hidden, ...]
    certain: bool
    affine: bool = True
    update: Update | None = None
    further: tuple[View, ...] = ()
    sure: bool = False
    is_whole: bool = True


class Instance(Record, eq=False, dict=True):
    """A computing statement with its ancestors, outermost first.

    `number` counts instances in textual order. `context` is the formula of the domain over loop indices and `hidden` symbols
    (the integer `let`s that it uses); `facts` are expressions that are ≥ 0 there, products of sizes included. Not `exact` if
    the statement may not run at some point of it: under a condition that depends on data, or is not `affine`.
    """

    number: int
    stmt: Computing
    path: tuple[Ancestor, ...]
    context: Formula
    facts: tuple[Expr, ...]
    hidden: tuple[Hidden, ...]
    exact: bool
    affine: bool
    params: tuple[Sym, ...]
    drafts: tuple[Draft, ...]
    lets: tuple[Hidden, ...] = ()

    @cached_property
    def loops(self) -> tuple[Loop, ...]:
        """The loops around the statement, outermost first."""
        return tuple(a for a in self.path if isinstance(a, Par | Seq))

    @cached_property
    def syms(self) -> tuple[Sym, ...]:
        """The indices of the loops: the dimensions of the domain."""
        return tuple(loop.sym for loop in self.loops)

    @cached_property
    def domain(self) -> Set:
        """The indices at which the statement runs; a superset of these if not `exact`."""
        return Set.of(self.syms, self.context, exists=[h.sym for h in self.hidden], params=self.params)

    @cached_property
    def accesses(self) -> tuple[Access, ...]:
        """The reads of the statement itself, then its writes."""
        return tuple(Access(self, draft) for draft in self.drafts)

    @property
    def said(self) -> tuple[tuple[Sym, Expr], ...]:
        """What is not negative of the numbers that `let`s before have."""
        return tuple((each.sym, fact) for each in self.lets for fact in facts_of(told((each,))))

    @cached_property
    def known(self) -> Known:
        """The facts, for cheap proofs."""
        return known(self.facts)

    def __repr__(self) -> str:
        return f"S{self.number}[{', '.join(map(str, self.syms))}]"


class Access(Record, eq=False, dict=True):
    """One load or store of an instance."""

    instance: Instance
    draft: Draft

    @property
    def buffer(self) -> Buffer:
        """The buffer accessed."""
        return self.draft.buffer

    @property
    def kind(self) -> str:
        """ "read", "write", or "update", which is both."""
        return self.draft.kind

    @property
    def load(self) -> Load:
        """The element, as the program writes it."""
        return self.draft.load

    @property
    def index(self) -> tuple[Expr, ...]:
        """The subscripts in the view, over loop indices, sizes and hidden symbols."""
        return self.draft.index

    @property
    def shape(self) -> tuple[Expr, ...]:
        """Extents of the view: the buffer's own, or those found by delinearisation."""
        return self.draft.shape

    @property
    def views(self) -> tuple[View, ...]:
        """Every known view of the element, the first of which is `index` and `shape`."""
        return (View(self.index, self.shape, self.draft.is_whole), *self.draft.further)

    @property
    def reads(self) -> bool:
        """Whether the old value of the element is read."""
        return self.kind != "write"

    @property
    def writes(self) -> bool:
        """Whether the element is written."""
        return self.kind != "read"

    @cached_property
    def hidden(self) -> tuple[Hidden, ...]:
        """Data-dependent symbols of the subscripts, the guard and the domain."""
        return tuple({h.sym: h for h in (*self.instance.hidden, *self.draft.hidden)}.values())

    @property
    def certain(self) -> bool:
        """Whether the access happens at each point of `formula`, at the element `index`."""
        return self.instance.exact and self.draft.certain

    @property
    def affine(self) -> bool:
        """Whether nothing was widened for not being affine; parts may still depend on data."""
        return self.instance.affine and self.draft.affine

    @property
    def exact(self) -> bool:
        """Whether `relation` holds exactly the accesses that happen."""
        return self.certain and all(h.defined for h in self.hidden)

    @cached_property
    def formula(self) -> Formula:
        """Where the access happens: the instance's context and the access's guard."""
        return conj((self.instance.context, self.draft.guard))

    @property
    def facts(self) -> tuple[Expr, ...]:
        """Expressions that are ≥ 0 where the access happens, products of sizes included."""
        return (*self.instance.facts, *self.draft.facts)

    @cached_property
    def known(self) -> Known:
        """The facts, for cheap proofs."""
        return known(self.facts) if self.draft.facts else self.instance.known

    @cached_property
    def element_syms(self) -> tuple[Sym, ...]:
        """Names of the dimensions of the view."""
        return tuple(Sym(f"{self.buffer.name}.{k}") for k in range(len(self.index)))

    def element(self, keep: Collection[Sym] = ()) -> Map:
        """Instance → (the enclosing loops' indices named in `keep`, element).

        With `keep` the loops around the buffer's `new`, each iteration of them has separate memory, as in the language.
        """
        kept = [s for s in self.instance.syms if s in keep]
        outs = (*(right(s) for s in kept), *self.element_syms)
        formula = conj((self.formula, equal(outs, (*kept, *self.index))))
        raw = build_map(self.instance.syms, outs, formula, [h.sym for h in self.hidden], self.instance.params)
        return Map(self.instance.syms, (*kept, *self.element_syms), raw)

    @cached_property
    def relation(self) -> Map:
        """Instance → element of the buffer."""
        return self.element()

    @cached_property
    def as_source(self) -> tuple[Formula, tuple[tuple[Expr, ...], ...]]:
        """`formula` and the index of each view with every symbol of the instance on the left of a pair."""
        return self._renamed({s: expr(left(s)) for s in self._symbols})

    @cached_property
    def as_sink(self) -> tuple[Formula, tuple[tuple[Expr, ...], ...]]:
        """`formula` and the index of each view with every symbol of the instance on the right of a pair."""
        return self._renamed({s: expr(right(s)) for s in self._symbols})

    @property
    def _symbols(self) -> tuple[Sym, ...]:
        return (*self.instance.syms, *(h.sym for h in self.hidden))

    def _renamed(self, names: Mapping[Sym, Expr]) -> tuple[Formula, tuple[tuple[Expr, ...], ...]]:
        indices = tuple(tuple(e.substitute(names) for e in view.index) for view in self.views)
        return rename(self.formula, names), indices


class Frame(Record, eq=False):
    """The position of a `new`: the loops around it, outermost first, the formulas that hold there, and the `let`s in scope."""

    loops: tuple[Loop, ...]
    formulas: tuple[Formula, ...]
    lets: tuple[Hidden, ...]


class Model(Record, eq=False, dict=True):
    """A function as instances, in textual order.

    `facts` is what holds of the parameters: sizes ≥ 0 and the `where` clauses; `given` is the same with products of sizes.
    `products` holds the parameters that stand for such products. `frames` gives the position of each local's `new`;
    parameters have none.
    """

    function: Function
    instances: tuple[Instance, ...]
    params: tuple[Sym, ...]
    facts: Formula
    given: tuple[Expr, ...]
    products: Opaque
    frames: Mapping[Buffer, Frame]

    @property
    def opaque(self) -> Mapping[Sym, Expr]:
        """Parameters that stand for products of sizes, with their meaning."""
        return self.products.meaning

    def close(self, formula: Formula) -> tuple[Formula, bool]:
        """`formula` with products of sizes as opaque parameters; and whether all of it is affine then (other comparisons
        become true)."""
        return self.products.close_formula(formula)

    @cached_property
    def accesses(self) -> tuple[Access, ...]:
        """Every access of every instance, in textual order."""
        return tuple(access for instance in self.instances for access in instance.accesses)

    @cached_property
    def by_buffer(self) -> Mapping[Buffer, tuple[Access, ...]]:
        """The accesses of each buffer that has any."""
        found: dict[Buffer, list[Access]] = {}
        for access in self.accesses:
            found.setdefault(access.buffer, []).append(access)
        return {buffer: tuple(accesses) for buffer, accesses in found.items()}

    def scope_syms(self, buffer: Buffer) -> frozenset[Sym]:
        """Indices of the loops around the `new` of `buffer`: together with these, an element identifies one piece of memory."""
        frame = self.frames.get(buffer)
        return frozenset() if frame is None else frozenset(loop.sym for loop in frame.loops)
