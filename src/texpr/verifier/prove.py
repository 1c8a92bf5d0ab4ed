"""The proof of a plan, obligation by obligation."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from typing import TypeVarTuple, Unpack

from texpr.ir import kernel as k
from texpr.ir import program as ir
from texpr.ir.proof import Obligation, Proof, Verdict
from texpr.ir.rewrite import Rewriter, replace_loads
from texpr.ir.shared import overlaps
from texpr.ir.value import Buffer, Literal, Load, Value
from texpr.presburger.formula import Formula, compare, conj, negate
from texpr.presburger.linear import NotAffine
from texpr.presburger.questions import MOST, Point, witness
from texpr.presburger.raw import Undecided
from texpr.reading.actions import Action, Program, actions
from texpr.reading.events import Event, Reading, read
from texpr.support.span import NOWHERE, Span
from texpr.verifier.copies import Copy, copy_of, untouched
from texpr.verifier.flow import Access, Flow, Home, Sources
from texpr.verifier.landing import diverging, never_lands
from texpr.verifier.match import Match, Pairing, Unlike, home_of
from texpr.verifier.reductions import Reductions, Wrong
from texpr.verifier.tags import Hole, Leaf, Moved, Statement, Tag, Tags
from texpr.verifier.totals import Totals

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
    reading = read(plan, [a.stored.name for a in program.actions if not isinstance(a.target, Load) or not a.target.index])
    return Question(program, reading, _premises(plan, reading))


def prove(asked: Question, plan: k.Plan, tags: Tags) -> Proof:
    """What can be shown of `plan`, of which `asked` is the question, with the help of `tags`, which are not believed."""
    reading = asked.reading
    prover = _Prover(asked.program, reading, asked.premises, tags, Flow(asked.program, reading, asked.premises, tags.waits))
    prover.run()
    prover.interface(plan)
    found = prover.found
    columns = any(map.corners for launch in reading.launches for map in launch.kernel.maps)  # of which little is understood yet
    unknown = any(o.verdict is Verdict.UNDECIDED and (columns or o.what == "is a statement") for o in found)
    if reading.strange or unknown:  # what seems wrong may be right by what is not understood
        verdicts = {Verdict.REFUSED: Verdict.UNDECIDED}
        found = [replace(each, verdict=verdicts.get(each.verdict, each.verdict)) for each in found]
    return Proof(plan.name, tuple(_told(plan)), tuple(found))


def bound(function: ir.Function, plan: k.Plan) -> ir.Function:
    """`function` over the buffers of `plan`, which are those of the same name, type and shape."""
    there = {b.name: b for b in (*plan.workspace, *plan.results, *plan.params)}

    def buffer(old: Buffer) -> Buffer:
        new = there.get(old.name)
        alike = new is not None and (new.dtype, new.shape, new.strides) == (old.dtype, old.shape, old.strides)
        return new if new is not None and alike else old

    def load(old: Load) -> Load:
        return replace(old, buffer=buffer(old.buffer), data=tuple((sym, value(meaning)) for sym, meaning in old.data))

    def value(old: Value) -> Value:
        return replace_loads(old, lambda found: replace(found, buffer=buffer(found.buffer)))

    if all(buffer(b) is b for b in ir.buffers(function)):
        return function
    body = Rewriter(value=value, target=load, buffer=buffer).block(function.body)
    params, results = tuple(map(buffer, function.params)), tuple(map(buffer, function.results))
    return replace(function, params=params, results=results, body=body)


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
    tagged: dict[Event, Tag | None] = field(default_factory=dict[Event, "Tag | None"])
    matches: dict[Event, Match] = field(default_factory=dict[Event, Match])
    by_action: dict[Action, list[Match]] = field(default_factory=lambda: defaultdict(list[Match]))
    totals: list[Match] = field(default_factory=list[Match])
    leaves: list[Match] = field(default_factory=list[Match])
    parts: set[Home] = field(default_factory=set[Home])
    by_home: dict[Home, list[tuple[Access, Match | None]]] = field(
        default_factory=lambda: defaultdict(list["tuple[Access, Match | None]"])
    )
    copies: dict[Event, Copy] = field(default_factory=dict[Event, Copy])
    holes: dict[Event, Access] = field(default_factory=dict[Event, Access])

    def run(self) -> None:
        self.match()
        for stmt, site, why in self.reading.strange:
            self.say(
                site.launch.kernel.name, "understood", type(stmt).__name__, Verdict.UNDECIDED, why, getattr(stmt, "span", None)
            )
        self.together()
        self.covered()
        for copy in self.copies.values():
            kernel = copy.event.site.launch.kernel.name
            told = (
                kernel,
                "a copy keeps to its iterations",
                described(copy.event),
                "the program writes there",
                copy.event.span,
            )
            self.ask(told, untouched, copy, self.flow)
            for access in (copy.read, copy.write):
                self.by_home[access.home].append((access, None))
        for match in (*self.matches.values(), *self.leaves, *self.totals):
            for access in self.flow.accesses(match):
                if access.home not in self.parts:
                    self.by_home[access.home].append((access, match))
        self.memory()
        self.reads()
        self.results()
        self.arenas()

    def arenas(self) -> None:
        """Of arrays in the same bytes, none is touched while another is wanted."""
        for kernel in dict.fromkeys(launch.kernel for launch in self.reading.launches):
            pairs = [(x.buffer, y.buffer) for x, y in overlaps(kernel)]
            for one, other in (*pairs, *((y, x) for x, y in pairs)):
                mine, theirs = ([access for access, _ in self.by_home[home]] for home in (one, other))
                told = (kernel.name, "apart in memory", f"{one.name} and {other.name}", "one is done with before", kernel.span)
                if one in self.parts or other in self.parts:
                    self.say(*told[:3], Verdict.UNDECIDED, "parts of sums have bytes in common with something", kernel.span)
                for a, b in product(mine, theirs):
                    self.ask(told, self.flow.crossed, a, b)
                for a, b in product(mine, mine):
                    for c in theirs if a.write and not b.write else ():
                        if c.write:
                            self.ask(told, self.flow.overwritten, a, b, c)

    def interface(self, plan: k.Plan) -> None:
        """The plan takes and gives what the function does; what the text assumes of data is checked where it runs."""
        function = self.program.function
        same = (plan.params, plan.results, plan.sizes) == (function.params, function.results, function.sizes)
        verdict = Verdict.PROVED if same else Verdict.REFUSED
        self.say("", "same interface", plan.name, verdict, "parameters, results and sizes, in order", plan.span)
        for assume in plan.assumes:
            about = f"{type(assume).__name__.lower()} {assume.buffer.name}"
            self.say(
                "", "assumed of data", about, Verdict.RUN, "by `_validate`, by the interpreter and the emulator", assume.span
            )

    def say(self, kernel: str, what: str, about: str, verdict: Verdict, how: str, span: Span | None = None) -> None:
        self.found.append(Obligation(kernel, what, about, verdict, how, *(() if span is None else (span,))))

    def ask(self, told: tuple[str, str, str, str, Span], question: Callable[[Unpack[Ts]], Point | None], *args: *Ts) -> None:
        """An obligation (kernel, what, about, why, where) that holds where `question` of `args` finds no point."""
        kernel, what, about, how, span = told
        try:
            point = question(*args)
        except (Undecided, NotAffine, ValueError) as why:
            self.say(kernel, what, about, Verdict.UNDECIDED, str(why), span)
            return
        if point is None:
            self.say(kernel, what, about, Verdict.PROVED, how, span)
        else:
            values = ", ".join(f"{sym.name} = {value}" for sym, value in point.items() if not sym.name.startswith("⟪"))
            self.say(kernel, what, about, Verdict.REFUSED, f"not at {values}", span)

    def match(self) -> None:
        """Proves of each event what its tag says."""
        if len(self.tags.events) != len(self.reading.events):
            raise ValueError("tags of another plan")
        self.tagged = dict(zip(self.reading.events, self.tags.events, strict=True))
        reductions = Reductions(self.reading, self.flow)
        leaves: dict[Event, Match] = {}
        for event, tag in self.tagged.items():
            if isinstance(tag, Statement | Leaf):
                into = leaves if isinstance(tag, Leaf) else self.matches
                self.statement(event, tag, into)
        self.sums(reductions, leaves)
        for found in (*self.matches.values(), *self.leaves):
            self.by_action[found.action].append(found)
        for event, tag in self.tagged.items():
            if isinstance(tag, Moved):
                copy = copy_of(event, reductions.source(event), self.program.actions[tag.action], tag, self.flow)
                if copy is not None:
                    self.copies[event] = copy
            if isinstance(tag, Hole):
                action = self.program.actions[tag.action]
                indices = {loop.sym: e for loop, e in zip(action.spot.loops, tag.indices, strict=False)}
                hole = self.flow.hole(event, event.site, action, indices)
                if hole is not None:
                    self.holes[event] = hole
        for event in self.reading.events:
            self.told(event, reductions)

    def statement(self, event: Event, tag: Statement | Leaf, into: dict[Event, Match]) -> None:
        """That an event is instances of a statement."""
        action = self.program.actions[tag.action]
        pairing = Pairing(self.program, self.reading, event, action, partial=isinstance(tag, Statement) and tag.partial)
        kernel, about = event.site.launch.kernel.name, described(event)
        try:
            pairing.run()
        except Unlike:
            self.say(kernel, "is a statement", about, Verdict.UNDECIDED, f"not built as line {action.span.line}", event.span)
            return
        indices = pairing.named(tag.indices)
        if len(tag.indices) != len(action.spot.loops):
            self.say(kernel, "is a statement", about, Verdict.UNDECIDED, "indices of other loops", event.span)
            return
        how = ", ".join(f"{sym} = {value}" for sym, value in indices.items())
        self.ask(
            (kernel, "is a statement", about, f"with {how}" if how else "once", event.span),
            witness,
            pairing.doubts(indices),
            self.premises,
        )
        into[event] = pairing.matched(indices, tag.inverse)
        if pairing.partial and event.engine and (idle := pairing.idle(indices)):
            rest = replace(event.site, domain=(*event.site.domain, negate(conj(idle))))
            try:
                hole = None if witness(rest.where, self.premises) is None else self.flow.hole(event, rest, action, indices)
            except Undecided:
                hole = self.flow.hole(event, rest, action, indices)
            if hole is not None:
                self.holes[event] = hole

    def sums(self, reductions: Reductions, leaves: Mapping[Event, Match]) -> None:
        """What threads sum in parts."""
        totals = Totals(reductions, self.flow)
        try:
            reductions.take(tuple(self.tagged.items()), leaves)
            for match in (*self.matches.values(), *leaves.values()):
                self.apart(match, reductions)
            totals.follow()
            for event, what, question, args in totals.questions():
                kernel = event.site.launch.kernel.name
                self.ask((kernel, what, described(event), "for all sizes", event.span), question, *args)
        except Wrong as why:
            self.say("", "a sum in parts", "", Verdict.REFUSED, str(why))
        self.totals, self.leaves, self.parts = totals.matches, list(reductions.leaves.values()), reductions.parts

    def apart(self, match: Match, reductions: Reductions) -> None:
        """That a statement reads no part of a sum but those that it updates, a tuple together. Raises Wrong."""
        event = match.event
        own = [e.target for e in reductions.together(event)] if event in reductions.leaves else []
        for operand in match.operands:
            if home_of(operand.read) in reductions.parts and operand.read not in own:
                raise Wrong(f"{described(event)} is computed from a part of a sum")

    def told(self, event: Event, reductions: Reductions) -> None:
        """Says what an event is."""
        kernel, about = event.site.launch.kernel.name, described(event)
        if isinstance(self.tagged[event], Statement | Leaf):
            return
        if event in reductions.joins or home_of(event.target) in reductions.parts:
            self.say(kernel, "is a statement", about, Verdict.PROVED, "a step of a sum in parts", event.span)
        elif event in self.holes:
            self.say(kernel, "is a statement", about, Verdict.PROVED, "a hole of a tile, which nobody reads", event.span)
        elif event in self.copies:
            self.say(kernel, "is a statement", about, Verdict.PROVED, "a copy of an element", event.span)
        elif event.let:
            return  # a name for what is written out
        elif isinstance(event.stmt, k.Declare) and isinstance(event.value, Literal):
            self.say(kernel, "is a statement", about, Verdict.PROVED, "a first value that nobody reads", event.span)
        else:
            self.say(kernel, "is a statement", about, Verdict.UNDECIDED, "of none that could be found", event.span)

    def together(self) -> None:
        """Threads reach barriers together, and wait for what they started."""
        known = (*self.matches.values(), *self.leaves)
        for stmt, site in self.reading.together:
            width = 0
            if isinstance(stmt, k.Exchange):
                width = 32
            elif isinstance(stmt, k.Barrier) and stmt.level is not k.Level.BLOCK:
                width = stmt.lanes if stmt.level is k.Level.WARP else -1
            kernel, span = site.launch.kernel.name, getattr(stmt, "span", NOWHERE)
            told = (kernel, "threads meet", type(stmt).__name__.lower(), "all of them, as often", span)
            self.ask(told, diverging, site, width, known, self.premises)
        for event in self.reading.events:
            kernel, about = event.site.launch.kernel.name, described(event)
            if event.needs is not None:
                told = (kernel, "a pixel of the box", about, "for all indices", event.span)
                self.ask(told, witness, (*event.site.where, negate(event.needs)), self.premises)
            if event.kind == "async" and event.barrier is None:
                told = (kernel, "a copy lands", about, "a wait comes behind it", event.span)
                self.ask(told, never_lands, event.site, self.flow.landed(event, False), self.premises)
        for told, question, args in self.flow.phases.questions():
            self.ask(told, question, *args)

    def covered(self) -> None:
        """Each statement is done for each of its indices, once."""
        for action in self.program.actions:
            found = self.by_action[action]
            kernel = ", ".join(dict.fromkeys(m.event.site.launch.kernel.name for m in found))
            about, span = f"line {action.span.line}, {action.stored.name}", action.span
            told = (kernel, "each instance is done", about, "no index is left out", span)
            self.ask(told, self.flow.uncovered, action.spot, found)
            summed = [m for m in self.totals if m.action is action]
            if summed:
                self.ask(
                    (kernel, "each sum is made", about, "no index is left out", span), self.flow.uncovered, action.spot, summed
                )
            for group in (found, summed):
                for at, one in enumerate(group):
                    for two in group[at:]:
                        own = one.event.target
                        told = (kernel, "no instance is done twice", about, "indices differ", span)
                        self.ask(told, self.flow.twice, one, two, home_of(own) in self.parts)

    def memory(self) -> None:
        """Accesses to one place come in the order of the program, of one element at a time, in bounds."""
        for touched in self.by_home.values():
            accesses = [access for access, _ in touched]
            kernel = ", ".join(dict.fromkeys(a.site.launch.kernel.name for a in accesses))
            for a in accesses:
                span = a.event.span
                self.ask((kernel, "in bounds", str(a), "for all indices", span), self.flow.outside, a)
                for b in accesses:
                    if not (a.write or b.write):
                        continue
                    about = f"{a} of line {span.line} and {b} of line {b.event.span.line}"
                    told = (kernel, "in order", about, "one comes first, or they never meet", span)
                    self.ask(told, self.flow.misordered, a, b)
                    if a.write:
                        told = (kernel, "one element", about, "a place holds one at a time", span)
                        self.ask(told, self.flow.confused, a, b)

    def reads(self) -> None:
        """What was written before a read was written where it is read."""
        writers = defaultdict[object, list[Action]](list)
        for action in self.program.actions:
            writers[action.stored].append(action)
        for home, touched in self.by_home.items():
            written = [(access, match) for access, match in touched if access.write and match is not None]
            copies = [access for access, match in touched if access.write and match is None]
            for access, _ in touched:
                if access.write or self.plain(home, writers[access.stored]):
                    continue
                kernel, span = access.site.launch.kernel.name, access.event.span
                told = (kernel, "what is read is there", str(access), "written before, in the same memory", span)
                for action in writers[access.stored]:
                    self.ask(told, self.flow.missing, access, action.spot, action.target, Sources(written, copies))
                if access.stored in self.program.function.params and access.stored != home:
                    place = Load(access.stored, access.meant)
                    self.ask(told, self.flow.missing, access, None, place, Sources(written, copies))

    def results(self) -> None:
        """What is written to results is there in the end."""
        function = self.program.function
        for result in dict.fromkeys((*function.results, *(b for b in function.params if b.role == "inout"))):
            found = self.by_home[result]
            written = [(access, match) for access, match in found if access.write and match is not None]
            copies = [access for access, match in found if access.write and match is None]
            for action in self.program.actions:
                if action.stored == result and isinstance(action.target, Load):
                    if not copies and all(home_of(m.event.target) == result for m in self.by_action[action]):
                        continue  # each instance is done, and there
                    told = ("", "a result is there", f"line {action.span.line}, {result.name}", "it is stored", action.span)
                    self.ask(told, self.flow.lost, result, action.spot, action.target, Sources(written, copies))

    def plain(self, home: Home, writers: Iterable[Action]) -> bool:
        """Whether all that is written to some memory of the program is written to `home`, which all threads share."""
        from_space = isinstance(home, Buffer) and home not in self.reading.spaces
        return from_space and all(
            m.event.target.buffer is home for a in writers for m in self.by_action[a] if isinstance(m.event.target, Load)
        )


def described(event: Event) -> str:
    """An event in a word."""
    if isinstance(event.target, Load):
        return f"{event.target.buffer.name}[{', '.join(map(str, event.target.index))}]"
    return event.target.sym.name.split("#")[0]
