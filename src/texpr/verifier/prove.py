"""The proof of a plan, obligation by obligation."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain, combinations_with_replacement, product
from typing import TypeVarTuple, Unpack

from texpr.ir import kernel as k
from texpr.ir import program as ir
from texpr.ir.proof import Obligation, Proof, Verdict
from texpr.ir.shared import overlaps
from texpr.ir.tags import Hole, Leaf, Moved, Statement, Tag, Tags
from texpr.ir.value import Buffer, Literal
from texpr.isa.levels import Space
from texpr.presburger.formula import Formula, compare, conj, negate
from texpr.presburger.linear import NotAffine
from texpr.presburger.questions import MOST, Point, witness
from texpr.presburger.raw import Undecided
from texpr.reading.actions import Action, Program, actions, bound
from texpr.reading.events import Event, Reading, read
from texpr.support.span import NOWHERE
from texpr.verifier.alike import families, pairs
from texpr.verifier.asked import Asked, Told
from texpr.verifier.copies import copied, untouched
from texpr.verifier.flow import Access, Flow, Home, at_end
from texpr.verifier.landing import never_lands
from texpr.verifier.match import Match, Pairing, Unlike, home_of, memory_of
from texpr.verifier.once import Done, manner
from texpr.verifier.shares import Shares, Wrong
from texpr.verifier.sums import Sums
from texpr.verifier.together import diverging

Ts = TypeVarTuple("Ts")


@dataclass(frozen=True, slots=True)
class Question:
    """What is to be proved of a plan: the program, what the plan does, and what both may rest on."""

    program: Program
    reading: Reading
    premises: Formula


def question(function: ir.Function, plan: k.Plan) -> Question:
    """What is to be proved of `plan`: that it does what `function`, laid out and legal, says, for all sizes."""
    program = actions(bound(function, plan))
    reading = read(plan, {a.stored for a in program.actions if not isinstance(a.stored, Buffer) or a.stored.role == "local"})
    return Question(program, reading, _premises(plan, reading))


def prove(asked: Question, plan: k.Plan, tags: Tags) -> Proof:
    """What can be shown of `plan`, of which `asked` is the question, with the help of `tags`, which are not believed."""
    reading = asked.reading
    prover = _Prover(asked.program, reading, asked.premises, tags, Flow(asked.program, reading, asked.premises, tags))
    prover.run()
    prover.interface(plan)
    found = prover.found
    unknown = any(o.verdict is Verdict.UNDECIDED and o.what in ("is a statement", "each instance is done") for o in found)
    if reading.strange or unknown:  # what seems wrong may be right by what is not understood
        verdicts = {Verdict.REFUSED: Verdict.UNDECIDED}
        found = [replace(each, verdict=verdicts.get(each.verdict, each.verdict)) for each in found]
    return Proof(plan.name, tuple(_told(plan)), tuple(found))


def _premises(plan: k.Plan, reading: Reading) -> Formula:
    bases = {axis.base for launch in reading.launches for axis in launch.kernel.axes if axis.base is not None}
    sizes = [*plan.sizes, *bases]
    bounds = [f for size in sizes for f in (compare(">=", size, 0), compare("<=", size, MOST))]
    return conj((*bounds, *(compare(c.op, c.left, c.right) for c in plan.requires)))


def _told(plan: k.Plan) -> Iterator[str]:
    yield "the program is legal: iterations of a par are independent, subscripts in bounds, nothing read before it is written"
    yield from (f"0 <= {size} < 2**31" for size in plan.sizes)
    yield from (f"{c.left} {c.op} {c.right}: checked before a launch" for c in plan.requires)


@dataclass(slots=True)
class _Prover:
    program: Program
    reading: Reading
    premises: Formula
    tags: Tags
    flow: Flow
    found: list[Obligation] = field(default_factory=list[Obligation])
    matches: dict[Event, Match] = field(default_factory=dict[Event, Match])
    totals: list[Match] = field(default_factory=list[Match])
    leaves: dict[Event, Match] = field(default_factory=dict[Event, Match])
    parts: set[Home] = field(default_factory=set[Home])
    kept: dict[Action, list[Match]] = field(default_factory=dict[Action, list[Match]])
    copies: list[tuple[Access, Access]] = field(default_factory=list[tuple[Access, Access]])
    done: dict[Action, list[Access]] = field(default_factory=lambda: defaultdict(list[Access]))
    parted: list[tuple[object, Access]] = field(default_factory=list["tuple[object, Access]"])
    others: list[Access] = field(default_factory=list[Access])
    by_home: dict[object, list[Access]] = field(default_factory=lambda: defaultdict(list[Access]))

    def run(self) -> None:
        """Says what each event is, then asks all that must hold."""
        for stmt, site, why in self.reading.strange:
            told = Told(site.launch.kernel.name, "understood", type(stmt).__name__, "", getattr(stmt, "span", NOWHERE))
            self.say(told, Verdict.UNDECIDED, why)
        self.match()
        every = (*self.matches.values(), *self.leaves.values(), *self.totals)
        touched = {match: [*self.flow.accesses(match)] for match in every}
        summed = {match.action for match in self.totals}
        for match in every:  # what is not a sum, nor a name
            if match.action not in summed and not isinstance(match.action.stmt, ir.Let):
                self.done[match.action].append(touched[match][-1])
        every = ((each.home, each) for each in chain(*self.copies, *touched.values(), self.others))
        for memory, access in (*(each for each in every if each[0] not in self.parts), *self.parted):
            self.by_home[memory].append(access)
        for told, question, args in chain(
            self.meeting(), self.flow.phases.questions(), self.covered(), self.memory(), self.reads(), self.arenas()
        ):
            self.ask(told, question, *args)

    def say(self, told: Told, verdict: Verdict, how: str) -> None:
        """What became of an obligation."""
        self.found.append(Obligation(told.kernel, told.what, told.about, verdict, how, told.span))

    def ask(self, told: Told, question: Callable[[Unpack[Ts]], Point | None], *args: *Ts) -> None:
        """An obligation that holds where `question` of `args` finds no point."""
        try:
            point = question(*args)
        except (Undecided, NotAffine, ValueError, LookupError) as why:  # as tags may name what there is not
            self.say(told, Verdict.UNDECIDED, str(why))
            return
        if point is None:
            self.say(told, Verdict.PROVED, told.how)
        else:
            values = ", ".join(f"{sym.name} = {value}" for sym, value in point.items() if not sym.name.startswith("⟪"))
            self.say(told, Verdict.REFUSED, f"not at {values}")

    def interface(self, plan: k.Plan) -> None:
        """The plan takes and gives what the function does; what the text assumes of data is checked where it runs."""
        function = self.program.function
        same = (plan.params, plan.results, plan.sizes) == (function.params, function.results, function.sizes)
        told = Told("", "same interface", plan.name, "", plan.span)
        self.say(told, Verdict.PROVED if same else Verdict.REFUSED, "parameters, results and sizes, in order")
        for assume in plan.assumes:
            told = Told("", "assumed of data", f"{type(assume).__name__.lower()} {assume.buffer.name}", "", assume.span)
            self.say(told, Verdict.RUN, "by `_validate`, by the interpreter and the emulator")

    def match(self) -> None:
        """Proves of each event what its tag says."""
        if len(self.tags.events) != len(self.reading.events):
            raise ValueError("tags of another plan")
        tagged = dict(zip(self.reading.events, self.tags.events, strict=True))
        shares, leaves = Shares(self.flow), dict[Event, Match]()
        for event, tag in tagged.items():
            if isinstance(tag, Statement | Leaf):
                self.statement(event, tag, leaves if isinstance(tag, Leaf) else self.matches)
        self.sums(shares, leaves, tagged)
        for event, tag in tagged.items():
            told, why = Told.of(event, "is a statement", ""), self.other(event, tag, shares)
            if why is not None:
                self.say(told, Verdict.PROVED, why)
            elif not isinstance(tag, Statement | Leaf) and not event.let:  # a `let` is a name for what is written out
                self.say(told, Verdict.UNDECIDED, "of none that could be found")

    def other(self, event: Event, tag: Tag | None, shares: Shares) -> str | None:
        """What an event is that does no statement, None where that is not known."""
        if isinstance(tag, Statement | Leaf):
            return None
        if event in shares.joins or home_of(event.target) in self.parts:
            return "a step of a sum in parts"
        if isinstance(tag, Hole):
            action = self.program.actions[tag.action]
            indices = {loop.sym: e for loop, e in zip(action.spot.loops, tag.indices, strict=False)}
            self.others += (holes := self.flow.holes(event, event.site, action, indices))
            return "a hole of a tile, which nobody reads" if holes else None
        if isinstance(tag, Moved):
            source = memory_of(shares.origin(event)[0])
            copy = None if source is None else copied(event, source, tag, self.flow)
            self.copies += [] if copy is None else [copy]
            return None if copy is None else "a copy of an element"
        if isinstance(event.stmt, k.Declare) and isinstance(event.value, Literal):
            return "a first value that nobody reads"
        return None

    def statement(self, event: Event, tag: Statement | Leaf, into: dict[Event, Match]) -> None:
        """That an event is instances of a statement."""
        action = self.program.actions[tag.action]
        pairing = Pairing(self.program, self.reading, event, action, partial=isinstance(tag, Statement) and tag.partial)
        indices = pairing.named(tag.indices)
        told = Told.of(event, "is a statement", ", ".join(f"{sym} = {value}" for sym, value in indices.items()) or "once")
        try:
            pairing.run()
        except Unlike:
            self.say(told, Verdict.UNDECIDED, f"not built as line {action.span.line}")
            return
        indices = pairing.named(tag.indices)
        self.ask(told, witness, pairing.doubts(indices), self.premises)
        into[event] = pairing.matched(indices, tag.inverse)
        if pairing.partial and event.engine and (idle := pairing.idle(indices)):
            rest = replace(event.site, domain=(*event.site.domain, negate(conj(idle))))
            self.others += self.flow.holes(event, rest, action, indices)

    def sums(self, shares: Shares, leaves: dict[Event, Match], tagged: Mapping[Event, Tag | None]) -> None:
        """What threads sum in parts."""
        sums = Sums(shares, self.flow)
        try:
            shares.take(tagged, leaves, self.matches.values())
            for told, question, args in sums.questions(tagged):
                self.ask(told, question, *args)
            self.parted = [*sums.touched()]
        except Wrong as why:
            self.say(Told("", "a sum in parts", "", "", NOWHERE), Verdict.REFUSED, str(why))
        self.totals, self.kept, self.leaves, self.parts = sums.made, sums.kept, leaves, shares.parts

    def meeting(self) -> Iterator[Asked]:
        """Threads reach barriers together, and wait for what they started."""
        known = (*self.matches.values(), *self.leaves.values())
        for stmt, site in self.reading.together:
            wide = {k.Level.WARP: stmt.lanes, k.Level.BLOCK: 0} if isinstance(stmt, k.Barrier) else {}
            width = wide.get(stmt.level, -1) if isinstance(stmt, k.Barrier) else 32
            span, how = getattr(stmt, "span", NOWHERE), "all of them, as often"
            told = Told(site.launch.kernel.name, "threads meet", type(stmt).__name__.lower(), how, span)
            yield told, diverging, (site, width, known, self.premises)
        for event in self.reading.events:
            if event.needs is not None:
                facts = (*event.site.where, negate(event.needs))
                yield Told.of(event, "a pixel of the box", "for all indices"), witness, (facts, self.premises)
            if event.kind == "async" and event.signal is None:
                told = Told.of(event, "a copy lands", "a wait comes behind it")
                yield told, never_lands, (event.site, self.flow.landed(event, False), self.premises)

    def covered(self) -> Iterator[Asked]:
        """Each statement is done for each of its indices, once; copies move what is written in the same iterations."""
        every, known = (*self.matches.values(), *self.leaves.values()), dict[object, Done]()
        for action in (*self.program.actions, *self.kept):
            found = self.kept.get(action, [m for m in every if m.action is action])
            summed = [m for m in self.totals if m.action is action]
            kernel = ", ".join(dict.fromkeys(m.event.site.launch.kernel.name for m in found))
            about, span = f"line {action.span.line}, {action.stored.name}", action.span
            for what, group in (("each instance is done", found), ("each sum is made", summed)):
                if not group and group is not found:
                    continue
                alike = what, manner(action, group) if all(home_of(m.event.target) in self.parts for m in group) else action
                if alike not in known:
                    known[alike] = Done(self.flow, action, group, self.parts)
                done = known[alike]
                if not isinstance(action.stmt, ir.Let):  # a name, that may be written out
                    yield Told(kernel, what, about, "no index is left out", span), done.uncovered, ()
                for one, two in combinations_with_replacement(done.found, 2):
                    told = Told(kernel, "no instance is done twice", about, "indices differ", span)
                    yield told, done.twice, (one, two)
        for _, write in self.copies:
            told = Told.of(write.event, "a copy keeps to its iterations", "the program writes there")
            yield told, untouched, (write, self.flow)

    def memory(self) -> Iterator[Asked]:
        """Accesses to one place come in the order of the program, of one element at a time, in bounds."""
        for accesses in self.by_home.values():
            kernel, groups = ", ".join(dict.fromkeys(a.site.launch.kernel.name for a in accesses)), [*families(accesses)]
            names = {a: f"{a} of line {a.event.span.line}" for a in accesses}
            for one in groups:
                span = one[0].event.span
                yield Told(kernel, "in bounds", str(one[0]), "for all indices", span), self.flow.outside, (one[0],)
                for two in groups if one[0].write else [each for each in groups if each[0].write]:
                    for a, b in pairs(one, two):
                        told = Told(
                            kernel,
                            "in order",
                            f"{names[a]} and {names[b]}",
                            "one comes first, or they never meet",
                            a.event.span,
                        )
                        yield told, self.flow.misordered, (a, b)
                    if one[0].write:
                        told = Told(
                            kernel, "one element", f"{names[one[0]]} and {names[two[0]]}", "a place holds one at a time", span
                        )
                        yield told, self.flow.confused, (one[0], two[0])
            for a in accesses if self.flow.space(accesses[0].home) is Space.CLUSTER else ():
                told = Told.of(a.event, "a block is there", "it ends behind a barrier of its cluster", str(a))
                yield told, self.flow.strayed, (a.site, a.index, a.write)

    def reads(self) -> Iterator[Asked]:
        """What was written before a read was written where it is read, and what is written to results is there in the end."""
        function = self.program.function
        results = dict.fromkeys((*function.results, *(b for b in function.params if b.role == "inout")))
        for home, accesses in list(self.by_home.items()):
            writes = [a for a in accesses if a.write]
            ends = [at_end(home, writes[0].event)] if isinstance(home, Buffer) and home in results and writes else []
            for reader in (*families([a for a in accesses if not a.write]), *zip(ends)):
                access = reader[0]
                writers = [a for a in self.program.actions if a.stored == access.stored]
                what = "a result is there" if access in ends else "what is read is there"
                told = Told.of(access.event, what, "written before, in the same memory", str(access))
                spoiled = Told.of(access.event, "no hole is read", "written again before", str(access))
                for hole, each, action in product([a for a in writes if a.is_hole], reader, writers):
                    yield spoiled, self.flow.spoiled, (hole, each, action)
                elsewhere = [a for a in writers if a not in self.done or not self.flow.direct(access, self.done[a])]
                if writers and not elsewhere:
                    self.say(told, Verdict.PROVED, told.how)
                for each, action in product(reader, elsewhere):
                    yield told, self.flow.missing, (each, action, writes)
                for each in reader if access.stored in function.params and access.stored != home else ():
                    yield told, self.flow.missing, (each, None, writes)

    def arenas(self) -> Iterator[Asked]:
        """Of arrays in the same bytes, none is touched while another is wanted."""
        for kernel in dict.fromkeys(launch.kernel for launch in self.reading.launches):
            pairs = [(x.buffer, y.buffer) for x, y in overlaps(kernel)]
            for one, other in (*pairs, *((y, x) for x, y in pairs)):
                mine, theirs = self.by_home[one], self.by_home[other]
                about, how = f"{one.name} and {other.name}", "one is done with before"
                told = Told(kernel.name, "apart in memory", about, how, kernel.span)
                if one in self.parts or other in self.parts:
                    self.say(told, Verdict.UNDECIDED, "parts of sums have bytes in common with something")
                for a, b in product(mine, theirs):
                    yield told, self.flow.misordered, (a, b)
                for c, b in product([c for c in theirs if c.write], [b for b in mine if not b.write]):
                    for action in (a for a in self.program.actions if a.stored == b.stored):
                        yield told, self.flow.spoiled, (c, b, action)
