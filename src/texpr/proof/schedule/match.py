"""The meaning of each statement of a scheduled program: an instance of a written statement, or a copy of an element."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, combinations_with_replacement, islice
from typing import TypeAlias

from texpr.affine.expr import Expr, Sym, expr, number_of
from texpr.affine.facts import Known
from texpr.affine.simplify import Simplifier
from texpr.ir import program as ir
from texpr.ir.value import Buffer, Literal, Load, Ref
from texpr.presburger.existential import nowhere
from texpr.presburger.formula import TRUE, Eq, Formula, conj, differ, disj, negate, rename, syms
from texpr.presburger.isl.raw import Undecided
from texpr.presburger.questions import Point, is_false, witness
from texpr.presburger.solve.relaxed import flat
from texpr.proof.common.asked import Asked, Claim
from texpr.proof.common.values import Unlike
from texpr.proof.read.actions import Action, Program, Spot, frees, indices
from texpr.proof.read.program_order import When, when
from texpr.proof.schedule.accesses import Access, Home, found, home_of, named, nearest, place_of, placed, same, there, touched
from texpr.proof.schedule.compare import Comparison, Operand, writer
from texpr.proof.schedule.holes import changes_nothing, fill, fills, is_fill
from texpr.proof.schedule.joins import Part
from texpr.proof.schedule.numbers import within
from texpr.support.record import Mutable, field, replace

SIDES = 4
"""The greatest number of writers that are considered for an element."""

Done = tuple[Access, Mapping[Sym, Expr]]
"""The write of a statement that is an instance of a written one, with the indices."""

Spare: TypeAlias = tuple[Claim, Sequence[Formula], Sequence[Formula], Sequence[Formula]]

IS_STATEMENT, IS_THERE = "is a statement", "what is read is there"
"""Kinds of obligations."""


class Matches(Mutable):
    """The accesses of the scheduled program `laid`. `given`: the parameters and results, from the scheduled to the written
    program.

    `strange`: statements without a meaning; `loosened`: updates in an order that is free, but was not in the written program;
    `asked`: the obligations of the others. `overruns`: the accesses of statements that also run outside of the written loops.
    """

    written: Program
    laid: Program
    given: Mapping[Buffer, Buffer]
    premises: Formula
    accesses: list[Access] = field(default_factory=list[Access])
    done: dict[Action, list[Done]] = field(default_factory=lambda: defaultdict(list[Done]))
    numbers: dict[Sym, Expr] = field(default_factory=dict[Sym, Expr])
    strange: list[tuple[Action, str]] = field(default_factory=list[tuple[Action, str]])
    loosened: list[tuple[Action, Action]] = field(default_factory=list[tuple[Action, Action]])
    asked: list[Asked] = field(default_factory=list[Asked])
    overruns: list[Access] = field(default_factory=list[Access])
    spare: dict[Action, Spare] = field(default_factory=dict[Action, Spare])
    """Updates for elements beyond those of the written program, which partial sums may have: claims, what is known, goals, and
    what holds of the elements that there are."""
    joined: set[Home] = field(default_factory=set[Home])
    """Memory of partial sums, and `parts`: what may be that."""
    parts: set[Home] = field(init=False)
    fills: Mapping[Buffer, Literal] = field(init=False)

    def __post_init__(self) -> None:
        self.fills = fills(self.laid)
        plain = [(a, a.stmt.values[0]) for a in self.laid.actions if isinstance(a.stmt, ir.Bind) and not a.stmt.instance]
        read = [(a, value.buffer) for a, value in plain if isinstance(value, Load)]
        self.parts = {source for a, source in read if a.update is not None}
        self.parts |= {source for a, source in read if a.update is None and a.stored in self.parts}
        for let in self.laid.lets.values():  # other data-dependent integers are different from those of the written program
            args = indices(let.spot)
            self.numbers[number_of(_name(let), args)] = expr(number_of(f"{_name(let)}◇", args))

    def run(self) -> None:
        """Matches statement by statement; copies of copies are matched when their source is known."""
        wanted, slots = defaultdict[Expr, list[Action]](list), defaultdict[object, int](int)
        for action in self.written.actions:
            if action.stmt.instance:
                wanted[action.stmt.instance[0]].append(action)
        copies = list[Action]()
        for action in self.laid.actions:
            if action.stmt.instance:
                number, *at = action.stmt.instance
                of, slot = wanted[number], slots[action.stmt]
                slots[action.stmt] += 1
                if slot < len(of) and len(at) == len(indices(of[slot].spot)):
                    self.statement(action, of[slot], dict(zip(indices(of[slot].spot), at, strict=True)))
                else:
                    self.strange.append((action, "noted as what there is not"))
            elif not isinstance(action.target, Ref):  # a stored test is no statement
                copies.append(action)
        before = -1
        while len(copies) != before:
            before, copies = len(copies), [action for action in copies if not self.copy(action)]
        self.strange += ((action, "no statement, and no copy") for action in copies if not self.join(action))
        for action, (told, known, goals, inside) in self.spare.items():
            args = ([*known, *inside], goals) if action.stored in self.joined else (known, [*goals, *inside])
            self.asked.append((told, self.doubted, (action, *args)))

    def statement(self, action: Action, meant: Action, at: Mapping[Sym, Expr], anew: bool = False) -> None:
        """Records that a statement is an instance of a written one, with the indices `at`. `anew`: it recomputes a value, like
        a copy."""
        comparison = Comparison(self.laid, self.written, action, meant, self.fills)
        try:
            comparison.run()
        except Unlike:
            self.strange.append((action, f"not built as line {meant.span.line}"))
            return
        if frees(action) and not frees(meant):
            self.loosened.append((action, meant))
        at = {sym: e.substitute(self.numbers) for sym, e in at.items()}
        names = {**comparison.data, **at}
        if isinstance(action.target, Ref) and isinstance(meant.target, Ref):  # equal integers, equal names
            theirs = number_of(_name(meant), indices(meant.spot))
            self.numbers[number_of(_name(action), indices(action.spot))] = expr(theirs).substitute(names)
        goals = [Eq(given.substitute(self.numbers) - other.substitute(names)) for given, other in comparison.equations]
        goals += [self.where_read(rename(fact, names), site) for fact, site in comparison.sure]
        for made in (*comparison.made, *([meant] if anew else ())):
            once = Claim("an element is made once", f"{made.stored.name}, line {made.span.line}", "indices differ", made.span)
            self.asked.append((once, self.made_twice, (made,)))
        inside = [rename(fact, names) for fact in meant.spot.domain]
        leaves = self.leaves(action, inside)
        beyond = [rename(fact, names) for fact in self.of_element(meant)] if leaves else []
        holes = leaves and changes_nothing(action, self.fills)
        told = Claim(IS_STATEMENT, f"{meant.stored.name}, line {meant.span.line}", "the same of the same", action.span)
        if leaves and self.is_nowhere(comparison, at, beyond):
            rest = [fact for fact in inside if fact not in beyond]
            known, wanted = (beyond, [] if holes else rest)
            self.asked.append((told, self.doubted, (action, (*known, *(rest if holes else ())), [*goals, *wanted])))
        elif leaves and meant.update is not None and action.stored in self.parts:
            beyond = [rename(fact, names) for fact in self.of_element(meant)]
            rest = [fact for fact in inside if fact not in beyond]
            known, wanted = (rest, goals) if holes else ([], [*goals, *rest])
            self.spare[action] = told, known, wanted, beyond
        else:
            beyond = []
            self.asked.append((told, self.doubted, (action, inside, goals) if holes else (action, (), [*goals, *inside])))
        *reads, write = self.touches(comparison, at)
        self.overruns += (replace(each, does=None) for each in (*reads, write) if beyond or holes)
        kept = [read.is_own and action not in self.spare for read in reads]
        reads = [r if own else replace(r, where=(*r.where, *flat(beyond))) for r, own in zip(reads, kept, strict=True)]
        self.accesses += (
            *(self.of_holes(reads, inside) if holes else reads),
            replace(write, meant=(), does=None) if anew else write,
        )
        if not anew:
            self.done[meant].append((write, at))

    def doubted(self, action: Action, inside: Sequence[Formula], goals: Sequence[Formula]) -> Point | None:
        """An instance of a statement that differs from its claimed meaning."""
        facts = (rename(f, self.numbers) for f in action.spot.domain)
        return witness((*facts, *inside, negate(conj(goals))), self.premises)

    def where_read(self, fact: Formula, site: Spot) -> Formula:
        """A fact that has to hold only where a load is executed."""
        return disj((*(negate(rename(f, self.numbers)) for f in site.domain), fact))

    def made_twice(self, made: Action) -> Point | None:
        """Two instances of a statement that write one element. Raises Undecided."""
        one, other = ({s: expr(Sym(f"{s.name}{mark}")) for s in indices(made.spot)} for mark in "◁▷")
        place = place_of(made.target, made.spot, self.written)
        both = ([e.substitute(names) for e in place] for names in (one, other))
        facts = [rename(f, names) for f in made.spot.domain for names in (one, other)]
        return witness((*facts, *same(*both), differ(one.values(), other.values())), self.premises)

    def leaves(self, action: Action, inside: Sequence[Formula]) -> bool:
        """Whether a statement may execute with indices outside of the written statement's domain."""
        try:
            return self.doubted(action, (), inside) is not None
        except Undecided:
            return True

    def of_element(self, meant: Action) -> Iterator[Formula]:
        """The facts of a written statement's domain about the loops that its element depends on."""
        said = {s for e in place_of(meant.target, meant.spot, self.written) for s in e.syms()}
        own = {*indices(meant.spot)}
        for fact in meant.spot.domain:
            if not syms(fact).isdisjoint(own) and syms(fact) & own <= said:
                yield fact

    def is_nowhere(self, comparison: Comparison, at: Mapping[Sym, Expr], inside: Sequence[Formula]) -> bool:
        """Whether elements that a statement writes outside of `inside`, in memory of the scheduled program only, are none
        that the written program writes, or reads, since it is legal: then they are arbitrary, as in longer loops.
        """
        if not inside or comparison.given.stored in self.given or not isinstance(comparison.given.stored, Buffer):
            return False
        given, meant = comparison.given, comparison.meant
        write = self.means(comparison, Operand(given.target, given.spot, meant.target, meant.spot, {}), at, True)
        if not isinstance(write.stored, Buffer) or write.stored.role not in ("local", "result"):
            return False
        own = named(write, "◁")
        outside = rename(negate(conj(inside)), {s: own.names(s) for s in write.dims})
        for other in (action for action in self.written.actions if action.stored is write.stored):
            mine = {s: expr(Sym(f"{s.name}▷")) for s in indices(other.spot)}
            element = [e.substitute(mine) for e in place_of(other.target, other.spot, self.written)]
            facts = (*own.where, outside, *(rename(f, mine) for f in other.spot.domain), *same(own.element, element))
            try:
                if witness(facts, self.premises) is not None:
                    return False
            except Undecided:
                return False
        return True

    def of_holes(self, reads: Sequence[Access], inside: Sequence[Formula]) -> Iterator[Access]:
        """The reads of an update that also executes holes: elements if `inside`, and fills elsewhere."""
        for read in reads:
            filled = self.fills.get(read.home) if isinstance(read.home, Buffer) else None
            if read.is_own or filled is None:
                yield read  # the accumulator, or memory without a fill, as in subscripts and tests
                continue
            yield replace(read, where=(*read.where, *flat(inside)))
            outside = (*read.where, negate(conj(inside)))
            of = {"stored": fill(filled), "element": (), "meant": (), "does": None, "legal": ()}
            yield replace(read, where=outside, **of, is_update=False, hole=read.element or read.hole)

    def at_home(self) -> Iterator[Asked]:
        """Accesses of parameters and results are those of the written program."""
        for access in self.accesses:
            home = self.given.get(access.home) if isinstance(access.home, Buffer) else None
            if home is not None and (home is not access.stored or access.place != access.element):
                told = Claim("is the same element", str(access), "in memory that callers know", access.action.span)
                yield told, self.elsewhere, (access,)

    def elsewhere(self, access: Access) -> Point | None:
        """An instance that accesses another element of a parameter or result than the written program."""
        home = self.given[access.home] if isinstance(access.home, Buffer) else None
        wrong = differ(access.place, access.element) if home is access.stored else TRUE
        return witness((*access.where, wrong), self.premises)

    def touches(self, comparison: Comparison, at: Mapping[Sym, Expr]) -> Iterator[Access]:
        """The accesses of an instance of a written statement, with the indices `at`: reads, then the write."""
        given, meant = comparison.given, comparison.meant
        for read in comparison.operands:
            own, only = [self.means(comparison, read, at, False)], [rename(f, {**comparison.data, **at}) for f in read.only]
            yield from self.of_holes(own, only) if only else own
        yield self.means(comparison, Operand(given.target, given.spot, meant.target, meant.spot, {}), at, True)

    def means(self, comparison: Comparison, touch: Operand, at: Mapping[Sym, Expr], write: bool) -> Access:
        """An access with its meaning in the written program."""
        meant, names = comparison.meant, {**comparison.data, **at}
        names = {**names, **{sym: e.substitute(names) for sym, e in touch.inner.items()}}
        targets = meant.stmt.targets if isinstance(meant.stmt, ir.Bind) and meant.update is not None else ()
        times = when(touch.spot, names, int(write))
        return replace(
            self.touched(touch.given, touch.site, comparison.given, write),
            stored=home_of(touch.meant),
            element=tuple(e.substitute(names) for e in place_of(touch.meant, touch.spot, self.written)),
            meant=times,
            does=meant,
            is_update=any(touch.meant is target for target in targets),
            is_own=bool(targets) and not write and touch.meant is meant.target,
            legal=times if write and not touch.spot.tests else (),
            is_one=tuple(rename(fact, names) for fact in flat(touch.spot.domain)),
        )

    def touched(self, place: Load | Ref, site: Spot, action: Action, write: bool) -> Access:
        """An access, with data-dependent integers as in the written program."""
        own = touched(place, site, action, self.laid, write)
        at, where = tuple(e.substitute(self.numbers) for e in own.place), tuple(rename(f, self.numbers) for f in own.where)
        return replace(own, place=at, where=where)

    def copy(self, action: Action) -> bool:
        """Matches a copy, if the element at its source is known by now."""
        write = self.touched(action.target, action.spot, action, True)
        if action.update is not None or not write.is_certain:
            return False
        if isinstance(action.value, Literal):
            self.accesses.append(replace(write, stored=fill(action.value), hole=self.instead_of(action)))
            return True
        if not isinstance(action.value, Load | Ref):
            return self.instead(action, write)
        read = self.touched(action.value, action.spot, action, False)
        sides = (known for wholly in (True, False) for each in (read, write) for known in self.element_at(each, wholly))
        first = next(sides, None)
        if first is None:
            return False
        stored, element, *_ = first
        some = chain((first,), islice(sides, SIDES))
        legal, is_one = next(((when, facts) for other, _, when, facts in some if other is stored and when), ((), ()))
        of = {"stored": stored, "element": element, "legal": legal, "is_one": is_one}
        filled = self.fills.get(read.home) if isinstance(read.home, Buffer) else None
        if filled is None or not isinstance(stored, Buffer) or read.home in self.given:
            self.accesses += (replace(each, **of) for each in (read, write))
            return True
        inside = conj(within(element[len(element) - stored.rank :], stored.shape))
        for each in (read, write):  # a copy of memory with holes also copies these
            self.accesses.append(replace(each, **of, where=(*each.where, *flat([inside]))))
            self.accesses.append(replace(each, stored=fill(filled), where=(*each.where, negate(inside)), hole=element))
        return True

    def instead_of(self, filling: Action) -> tuple[Expr, ...]:
        """The place from which another arm of the branch copies to the target of a fill; empty if there is none."""
        for other in self.laid.actions:
            if other.stored is filling.stored and isinstance(other.value, Load) and not other.stmt.instance:
                alike = other.spot.loops == filling.spot.loops and isinstance(other.target, Load)
                if alike and isinstance(filling.target, Load) and other.target == filling.target:
                    return tuple(e.substitute(self.numbers) for e in place_of(other.value, other.spot, self.laid))
        return ()

    def join(self, action: Action) -> bool:
        """Matches the combination of a partial sum, if memory holds one, or a copy of one."""
        if action.update is None or not isinstance(action.stmt, ir.Bind) or not isinstance(action.stmt.values[0], Load):
            return False
        source, write = action.stmt.values[0], self.touched(action.target, action.spot, action, True)
        own, read = (self.touched(place, action.spot, action, False) for place in (action.target, source))
        copy = self.only_copy(source.buffer)
        memory = {source.buffer, copy[0].home} if copy else {source.buffer}
        touched = [a for a in self.accesses if a.home in memory and a.action not in {each.action for each in copy}]
        spare = {a.action: self.spare[a.action][-1] for a in touched if a.action in self.spare}
        part = Part(touched, write, own, read, self.premises, copy, spare)
        local = all(isinstance(each, Buffer) and each.role == "local" for each in memory)
        if not local or len(action.stmt.targets) != 1 or not write.is_certain or not part.is_one():
            return False
        self.accesses = [*(a for a in self.accesses if a.home not in memory), *part.accesses()]
        self.joined |= memory
        self.asked += part.questions()
        return True

    def only_copy(self, buffer: Buffer) -> tuple[Access, ...]:
        """The read and the write of the only statement that writes a memory, if that is a copy of another one."""
        writers = [each for each in self.laid.actions if each.stored is buffer]
        if len(writers) != 1 or writers[0].update is not None or writers[0].stmt.instance:
            return ()
        (copy,) = writers
        if not isinstance(copy.value, Load):
            return ()
        made = tuple(self.touched(place, copy.spot, copy, write) for place, write in ((copy.value, False), (copy.target, True)))
        return made if all(each.is_certain for each in made) else ()

    def instead(self, action: Action, write: Access) -> bool:
        """Matches a store in place of a copy, if it computes the value of the one statement that writes the element."""
        known = next((known for wholly in (True, False) for known in self.element_at(write, wholly)), None)
        if known is None or not isinstance(known[0], Buffer):
            return False
        try:
            meant, at = writer(self.written, known[0], known[1])
        except Unlike:
            return False
        self.statement(action, meant, at, anew=True)
        return True

    def element_at(self, access: Access, wholly: bool) -> Iterator[tuple[Home, tuple[Expr, ...], When, tuple[Formula, ...]]]:
        """The elements that may be at a place, by the role of a parameter or by other accesses; with the time and conditions of
        their write, if that is an instance.

        `wholly`: only elements that the subscripts determine completely.
        """
        if isinstance(access.home, Buffer) and access.home in self.given:
            yield self.given[access.home], access.place, (), ()
            return
        own = placed(access, {s: expr(s) for s in access.dims})
        loops = access.action.spot.loops
        simple = Simplifier(Known({x.sym: (0, x.extent.constant - 1) for x in loops if x.extent.is_constant}))
        for other in sorted(self.accesses, key=lambda a: not a.write):
            if other.home == access.home and other.stored is not None and not is_fill(other.stored):
                each = named(other, "○")
                known = found(each, [*zip(each.place, own.place, strict=True)])
                names = {each.only(s): s for s in other.dims}
                known = {**nearest(each.place, own.place, names), **known}
                here = placed(other, {s: known.get(mine, expr(s if s in access.dims else 0)) for mine, s in names.items()})
                if any(map(is_false, same(here.place, own.place))):
                    continue  # another place
                if not wholly or {s for e in each.element for s in e.syms()} & names.keys() <= known.keys():
                    said = {s for step in each.legal if not isinstance(step, int) for s in step[1].syms()}
                    legal = here.legal if said & names.keys() <= known.keys() else ()
                    yield other.stored, tuple(map(simple, here.element)), legal, here.is_one

    def covered(self) -> Iterator[Asked]:
        """Every instance is executed, an update once; except those that are substituted wherever they are read."""
        done = {*self.given.values(), *(a.stored for a in self.accesses if a.write and a.does is not None)}
        for meant in self.written.actions:
            if not isinstance(meant.stmt, ir.Let) and meant.stored in done:
                about = f"{meant.stored.name}, line {meant.span.line}"
                yield Claim("each instance is done", about, "no index is left out", meant.span), self.left_out, (meant,)
                for one, other in combinations_with_replacement(self.done[meant], 2) if meant.update is not None else ():
                    yield Claim("no update is done twice", about, "indices differ", meant.span), self.twice, (one, other)

    def left_out(self, meant: Action) -> Point | None:
        """An instance of a written statement that nothing executes."""
        own = {sym: expr(Sym(f"{sym.name}●")) for sym in indices(meant.spot)}
        every = [(named(access, "○"), at) for access, at in self.done[meant]]
        done = [there(each, None, [(each.names(e), own[sym]) for sym, e in at.items()]) for each, at in every]
        return nowhere([rename(f, own) for f in meant.spot.domain], done, self.premises, solving=True)

    def twice(self, one: Done, other: Done) -> Point | None:
        """Two executions of one instance."""
        (a, at), (b, to) = ((named(access, mark), at) for (access, at), mark in ((one, "◁"), (other, "▷")))
        both = zip(*((a.names(e), b.names(to[sym])) for sym, e in at.items()), strict=True)
        facts = [*a.where, *b.where, *(same(*both) if at else ())]
        loops = indices(a.access.action.spot)
        apart = [differ(map(a.names, loops), map(b.names, loops))] if one is other else []
        return witness((*facts, *apart), self.premises)


def _name(let: Action) -> str:
    """The name of the integer that a `let` binds."""
    assert isinstance(let.target, Ref)
    return let.target.sym.name
