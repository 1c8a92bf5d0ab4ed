"""The proof of a plan, obligation by obligation."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from itertools import chain, combinations_with_replacement, product
from typing import TypeVarTuple, Unpack

from texpr.affine.expr import Sym
from texpr.ir import kernel as k
from texpr.ir import program as ir
from texpr.ir.kernel.shared import overlaps
from texpr.ir.kernel.verify import verify
from texpr.ir.proof import Obligation, Proof, Verdict
from texpr.ir.proof.tags import Hole, Moved, Statement, Step, Tag, Tags
from texpr.ir.value import Buffer, Load, Ref
from texpr.isa.levels import Space
from texpr.presburger.formula import Formula, compare, conj, negate
from texpr.presburger.questions import Point, witness
from texpr.proof.common.asked import Asked, Claim
from texpr.proof.common.launches import overtaking
from texpr.proof.common.values import Unlike
from texpr.proof.plan import columns
from texpr.proof.plan.alike import families, pairs
from texpr.proof.plan.copies import copied, untouched
from texpr.proof.plan.flow import Access, Flow, at_end
from texpr.proof.plan.landing import never_lands
from texpr.proof.plan.match import Match, Pairing, claim, element, home_of
from texpr.proof.plan.once import Coverage
from texpr.proof.plan.overflow import overflows
from texpr.proof.plan.sums import Sums, Wrong
from texpr.proof.plan.together import diverging
from texpr.proof.read.actions import Action, Program, actions, bound, named_by
from texpr.proof.read.events import Event, Reading, plainly
from texpr.proof.read.reader import read
from texpr.support.diagnostic import CompilerBug
from texpr.support.limits import LARGEST_INT
from texpr.support.record import Mutable, Record, field, replace
from texpr.support.span import NOWHERE

Ts = TypeVarTuple("Ts")


class Question(Record):
    """The claim about a plan: the program, the events of the plan, and the premises."""

    program: Program
    reading: Reading
    premises: Formula


def question(function: ir.Function, plan: k.Plan) -> Question:
    """The claim that `plan` implements `function`, scheduled and legal, for all sizes."""
    program = actions(bound(function, plan))
    reading = read(plan, program)
    return Question(program, reading, _premises(plan, reading))


def prove(asked: Question, plan: k.Plan, tags: Tags) -> Proof:
    """The proof of the claim `asked` about `plan`, with the untrusted `tags`."""
    prover = _Prover(Flow(asked.program, asked.reading, asked.premises, tags))
    prover.form(plan)
    prover.run()
    prover.interface(plan)
    prover.found += _overflows(plan)
    found = prover.found
    unknown = any(o.verdict is Verdict.UNDECIDED and o.what in ("is a statement", "each instance is done") for o in found)
    if asked.reading.strange or unknown:  # a refusal is undecided where a value is opaque
        found = [o._replace(verdict=Verdict.UNDECIDED) if o.verdict is Verdict.REFUSED else o for o in found]
    return Proof(plan.name, tuple(_told(plan)), tuple(found))


@lru_cache(maxsize=4)
def _overflows(plan: k.Plan) -> tuple[Obligation, ...]:
    """Overflow depends on the plan alone, so it is cached for proofs with several sets of tags."""
    return overflows(plan)


def _premises(plan: k.Plan, reading: Reading) -> Formula:
    sizes = [*plan.sizes, *{a.base for launch in reading.launches for a in launch.kernel.axes if a.base is not None}]
    bounds = [f for size in sizes for f in (compare(">=", size, 0), compare("<=", size, LARGEST_INT))]
    return conj((*bounds, *(compare(c.op, c.left, c.right) for c in plan.requires)))


def _told(plan: k.Plan) -> Iterator[str]:
    yield "the program is legal: iterations of a par are independent, subscripts in bounds, nothing read before it is written"
    yield from (f"0 <= {size} < 2**31" for size in plan.sizes)
    yield from (f"{c.left} {c.op} {c.right}: checked before a launch" for c in plan.requires)


def grouped(matches: Iterable[Match]) -> dict[Action, list[Match]]:
    """Matches by statement."""
    found = defaultdict[Action, list[Match]](list)
    for match in matches:
        found[match.action].append(match)
    return found


class _Prover(Mutable):
    """The state of a proof. `done`: the accesses by which each statement is executed; `copies`: those by which elements are
    copied."""

    flow: Flow
    found: list[Obligation] = field(default_factory=list[Obligation])
    matches: dict[Event, Match] = field(default_factory=dict[Event, Match])
    sums: Sums = field(init=False)
    copies: list[Access] = field(default_factory=list[Access])
    done: dict[Action, list[Access]] = field(default_factory=lambda: defaultdict(list[Access]))

    def run(self) -> None:
        """Matches each event, then proves all obligations."""
        for stmt, site, why in self.flow.reading.strange:
            told = Claim("understood", type(stmt).__name__, "", stmt.span, site.launch.kernel.name)
            self.say(told, Verdict.UNDECIDED, why)
        self.match()
        of_threads, of_memory = (self.meeting(), self.flow.phases.questions()), (self.bounds(), self.memory(), self.arenas())
        for told, question, args in chain(*of_threads, self.covered(), *of_memory, self.reads(), columns.questions(self.flow)):
            self.ask(told, question, *args)

    def say(self, told: Claim, verdict: Verdict, how: str) -> None:
        """Records the verdict on an obligation."""
        self.found.append(told.told(verdict, how))

    def ask(self, told: Claim, question: Callable[[Unpack[Ts]], Point | None], *args: *Ts) -> None:
        """Records an obligation that holds if `question` of `args` finds no point."""
        self.found.append(told.decided(question, args, (ValueError, LookupError)))  # tags may refer to items that do not exist

    def form(self, plan: k.Plan) -> None:
        """The plan is well formed, which its reading depends on."""
        told = Claim("well formed", plan.name, "names, types, marks", plan.span)
        try:
            verify(plan)
        except CompilerBug as why:
            self.say(told, Verdict.REFUSED, str(why))
        else:
            self.say(told, Verdict.PROVED, told.how)
        for told, why in overtaking(plan):
            self.say(told, Verdict.REFUSED if why else Verdict.PROVED, why or told.how)

    def interface(self, plan: k.Plan) -> None:
        """The plan has the interface of the function; assumptions about data are checked at run time."""
        function = self.flow.program.function
        same = (plan.params, plan.results, plan.sizes) == (function.params, function.results, function.sizes)
        same = same and {*function.where} <= {*plan.requires} and {*function.assumes} == {*plan.assumes}  # no further promises
        told = Claim("same interface", plan.name, "", plan.span)
        self.say(told, Verdict.PROVED if same else Verdict.REFUSED, "parameters, results and sizes, in order; what is promised")
        used = [each.instr for each in ir.walk(function.body) if isinstance(each, ir.Instruction) and each.instr]
        for instr in (instr for kernel in dict.fromkeys(k.kernels(plan.steps)) for instr in kernel.instrs):
            told = Claim("same instruction", instr.name, "operands, fragments, templates and meaning", plan.span)
            known = any(map(instr.alike, used))
            self.say(told, Verdict.PROVED if known else Verdict.REFUSED, told.how if known else "the program has none like it")
        for assume in plan.assumes:
            told = Claim("assumed of data", f"{type(assume).__name__.lower()} {assume.buffer.name}", "", assume.span)
            self.say(told, Verdict.RUN, "by `_validate`, by the interpreter and the emulator")

    def match(self) -> None:
        """Proves the tag of each event, and collects the accesses of events."""
        events, tags = self.flow.reading.events, self.flow.tags.events
        if len(tags) != len(events):
            raise ValueError("tags of another plan")
        # an exchange is no plain copy, whatever its tag
        tagged = {e: t if e.kind != "exchange" or isinstance(t, Step) else None for e, t in zip(events, tags, strict=True)}
        self.sums = Sums(self.flow)
        for event, tag in tagged.items():
            if isinstance(tag, Statement):
                self.statement(event, tag)
        parted: list[tuple[object, Access]] = []
        try:
            self.sums.take(tagged, self.matches)
            for told, question, args in self.sums.questions(tagged):
                self.ask(told, question, *args)
            self.matches |= self.sums.narrowed()
            parted += self.sums.touched()
        except Wrong as why:
            self.say(Claim("a sum in parts", "", "", NOWHERE), Verdict.REFUSED, str(why))
        for event, tag in tagged.items():
            if not isinstance(tag, Statement):
                why = self.other(event, tag)
                if why is not None or not event.let:  # a `let` is a name that may be substituted
                    verdict = Verdict.PROVED if why else Verdict.UNDECIDED
                    self.say(claim(event, "is a statement", ""), verdict, why or "of none that could be found")
        for match in (*self.matches.values(), *self.sums.made):
            self.touch(*(touched := [*self.flow.accesses(match)]))
            if all(match.action is not each.action for each in self.sums.made) and not isinstance(match.action.stmt, ir.Let):
                self.done[match.action].append(touched[-1])
        for home in self.sums.parts:
            self.flow.by_home.pop(home, None)
        for memory, access in parted:  # steps of sums have an order of their own
            self.flow.by_home[memory].append(access)

    def touch(self, *accesses: Access) -> None:
        """Records accesses, which must be ordered with others of their memory."""
        for access in accesses:
            self.flow.by_home[access.home].append(access)

    def other(self, event: Event, tag: Tag | None) -> str | None:
        """The role of an event that executes no statement, None if unknown."""
        named = self.flow.reading.named.get(home_of(event.target))
        if named is not None and not isinstance(tag, Moved):
            return ""  # the program's `let` alone, or a copy of it
        if event in self.sums.joins or home_of(event.target) in self.sums.parts:
            return "a step of a sum in parts"
        if isinstance(tag, Hole) and isinstance(event.target, Load):
            action = self.flow.program.actions[tag.action]
            indices = {loop.sym: e for loop, e in zip(action.spot.loops, tag.indices, strict=False)}
            self.touch(*(holes := self.flow.holes(event, event.site, action, indices)))
            return "a hole of a tile, which nobody reads" if holes else None
        if isinstance(tag, Moved):
            source, _ = self.sums.origin(event)
            copy = copied(event, source, tag, self.flow) if isinstance(source, Load | Ref) else ()
            self.touch(*copy)
            self.copies += copy[1:]
            lets, tables = self.flow.program.lets, self.flow.program.tables
            read = ((lets[a.stored], a.copies) for a in copy if isinstance(a.stored, Sym))
            if named is not None and not any(named is named_by(*each, tables) for each in read):
                return ""
            return "a copy of an element" if copy else None
        is_first = event.first
        return "a first value that nobody reads" if is_first else None

    def statement(self, event: Event, tag: Statement) -> None:
        """Records an event as instances of a statement."""
        action = self.flow.program.actions[tag.action]
        pairing = Pairing(self.flow.program, self.flow.reading, event, action, partial=tag.partial)
        indices = pairing.named(tag.indices)
        told = claim(event, "is a statement", ", ".join(f"{sym} = {value}" for sym, value in indices.items()) or "once")
        try:
            if len(tag.indices) != len(action.spot.loops):
                raise Unlike
            pairing.run()
        except Unlike:
            self.say(told, Verdict.UNDECIDED, f"not built as line {action.span.line}")
            return
        indices = pairing.named(tag.indices)
        self.ask(told, witness, pairing.doubts(indices), self.flow.premises)
        self.matches[event] = pairing.matched(indices, tag.inverse)
        if idle := pairing.idle(indices):
            rest = replace(event.site, domain=(*event.site.domain, negate(conj(idle))))
            self.touch(*(holes := self.flow.holes(event, rest, action, indices)))
            if not holes:
                self.say(told, Verdict.UNDECIDED, "what it writes elsewhere is none of the tile's holes")

    def meeting(self) -> Iterator[Asked]:
        """Threads reach barriers uniformly, and wait for what they started."""
        for each in self.flow.reading.together:
            told = Claim("threads meet", each.what, "all, as often", each.span, each.site.launch.kernel.name)
            yield told, diverging, (each, [*self.matches.values()], self.flow.premises)
        for stmt, site, needs in self.flow.reading.needed:
            told = Claim("can be moved", type(stmt).__name__.lower(), "aligned, in place", stmt.span, site.launch.kernel.name)
            yield told, witness, ((*site.where, negate(needs)), self.flow.premises)
        for event in self.flow.reading.events:
            if event.kind == "async" and event.signal is None:
                told = claim(event, "a copy lands", "a wait comes behind it")
                yield told, never_lands, (event, self.flow.landed, self.flow.premises)

    def covered(self) -> Iterator[Asked]:
        """Each statement is executed once for each of its indices; copies move what is written in the same iterations."""
        matched, made = grouped(self.matches.values()), grouped(self.sums.made)
        every = [("each instance is done", action, matched.get(action, [])) for action in self.flow.program.actions]
        every += [("each sum is made", action, group) for action, group in made.items()]
        for what, action, group in every:
            kernel = ", ".join(dict.fromkeys(m.event.site.launch.kernel.name for m in group))
            about, done = f"line {action.span.line}, {action.stored.name}", Coverage(self.flow, action, group, self.sums.parts)
            if not isinstance(action.stmt, ir.Let):  # a name that may be substituted
                yield Claim(what, about, "no index is left out", action.span, kernel), done.uncovered, ()
            for one, two in combinations_with_replacement(group, 2):
                told = Claim("no instance is done twice", about, "indices differ", action.span, kernel)
                yield told, done.twice, (one, two)
        for write in self.copies:
            told = claim(write.event, "a copy keeps to its iterations", "the program writes there")
            yield told, untouched, (write, self.flow, self.copies)

    def memory(self) -> Iterator[Asked]:
        """Accesses to one place are in program order, and of one element at a time."""
        for accesses in self.flow.by_home.values():
            names, groups = {a: f"{a} of line {a.event.span.line}" for a in accesses}, [*families(accesses)]
            for one, two in product(groups, groups):
                for a, b in pairs(one, two) if one[0].write or two[0].write or self.flow.lent(one[0], two[0]) else ():
                    about, how = f"{names[a]} and {names[b]}", "one comes first, or they never meet"
                    yield claim(a.event, "in order", how, about), self.flow.misordered, (a, b)
                if one[0].write:
                    about = f"{names[one[0]]} and {names[two[0]]}"
                    told = claim(one[0].event, "one element", "a place holds one at a time", about)
                    yield told, self.flow.confused, (one[0], two[0])
            for a in accesses if self.flow.space(accesses[0].home) is Space.CLUSTER else ():
                told = claim(a.event, "a block is there", "it ends behind a barrier of its cluster", str(a))
                yield told, self.flow.strayed, (a.site, a.index, a.write)

    def bounds(self) -> Iterator[Asked]:
        """Accesses of kernels are in bounds; those of the program's own elements, in memory of its shape, follow from its
        legality."""
        every, whole = chain(*self.flow.by_home.values()), {*self.flow.reading.events}  # unused values included
        whole -= {final.event for final in self.sums.made}  # these may exist where the program has no update
        known = {(a.home, a.index, a.site.where) for a in every if a.is_plain and a.event in whole}
        for load, site, span in self.flow.reading.touched:
            index = tuple(plainly(e, site) for e in load.index)
            if (load.buffer, index, site.where) not in known:
                known.add((load.buffer, index, site.where))
                told = Claim("in bounds", element(load.buffer, index), "for all indices", span, site.launch.kernel.name)
                yield told, self.flow.outside, (load.buffer, index, site)

    def reads(self) -> Iterator[Asked]:
        """What was written before a read was written to the place of the read, and results are stored at the end."""
        function = self.flow.program.function
        results = dict.fromkeys((*function.results, *(b for b in function.params if b.role == "inout")))
        for home in dict.fromkeys((*self.flow.by_home, *results)):
            accesses = self.flow.by_home[home]
            writes = [a for a in accesses if a.write]
            kinds = {w.stored for w in writes}
            some = [a.event for a in writes[:1]] or self.flow.reading.events[:1]
            ends = [at_end(home, event) for event in some if isinstance(home, Buffer) and home in results]
            for reader in (*families([a for a in accesses if not a.write]), *zip(ends, strict=True)):
                access = reader[0]
                sources, what = self.sources(access), "a result is there" if access in ends else "what is read is there"
                told = claim(access.event, what, "written before, in the same memory", str(access))
                elsewhere = [a for a in sources if not (a in self.done and self.flow.direct(access, self.done[a]))]
                if sources and not elsewhere:
                    self.say(told, Verdict.PROVED, told.how)
                for each, action in product(reader, elsewhere):
                    yield told, self.flow.missing, (each, action, writes)
                spoiled = claim(access.event, "nothing else is read", "written again before", str(access))
                others = [w for w in writes if w.stored != access.stored] if kinds != {access.stored} else []
                for other, each, action in product(others, reader, sources):
                    yield spoiled, self.flow.spoiled, (other, each, action)

    def sources(self, read: Access) -> list[Action | None]:
        """The sources of elements in the memory that is read: statements, and None for the caller if they are stored
        elsewhere."""
        called = read.stored in self.flow.program.function.params and read.stored != read.home
        return [*self.flow.giving.get(read.stored, ()), *([None] if called else [])]

    def arenas(self) -> Iterator[Asked]:
        """Arrays with common bytes are not accessed in each other's live ranges."""
        for kernel in dict.fromkeys(launch.kernel for launch in self.flow.reading.launches):
            pairs = [(x.buffer, y.buffer) for x, y in overlaps(kernel)]
            for one, other in (*pairs, *((y, x) for x, y in pairs)):
                mine, theirs = self.flow.by_home[one], self.flow.by_home[other]
                about, how = f"{one.name} and {other.name}", "one is done with before"
                told = Claim("apart in memory", about, how, kernel.span, kernel.name)
                if {one, other} & self.sums.parts:
                    self.say(told, Verdict.UNDECIDED, "parts of sums have bytes in common with something")
                for a, b in product(mine, theirs):
                    yield told, self.flow.misordered, (a, b)
                for c, b in product([c for c in theirs if c.write], [b for b in mine if not b.write]):
                    for action in self.sources(b):
                        yield told, self.flow.spoiled, (c, b, action)
