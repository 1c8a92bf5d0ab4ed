"""The proof of a plan, obligation by obligation."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVarTuple, Unpack

from texpr.affine.expr import Sym
from texpr.ir import kernel as k
from texpr.ir import program as ir
from texpr.ir.rewrite import Rewriter, replace_loads
from texpr.ir.value import Buffer, Literal, Load, Value
from texpr.presburger.formula import Formula, compare, conj
from texpr.presburger.linear import NotAffine
from texpr.presburger.raw import Undecided
from texpr.support.span import NOWHERE, Span
from texpr.verifier.actions import Action, Program, actions
from texpr.verifier.copies import Copy, copy_of, untouched
from texpr.verifier.events import Event, Reading, read
from texpr.verifier.flow import Access, Flow, Home, Sources
from texpr.verifier.landing import diverging, landings, never_lands
from texpr.verifier.logic import MOST, Point
from texpr.verifier.match import Kept, Match, Matcher, home_of
from texpr.verifier.proof import Obligation, Proof, Verdict
from texpr.verifier.reductions import Reductions, Wrong
from texpr.verifier.totals import Totals

Ts = TypeVarTuple("Ts")


def prove(function: ir.Function, plan: k.Plan) -> Proof:
    """What can be shown of `plan`: that it does what `function`, laid out and legal, says, for all sizes that are allowed."""
    program = actions(bound(function, plan))
    reading = read(plan, [a.stored.name for a in program.actions if not isinstance(a.target, Load) or not a.target.index])
    premises = _premises(plan, reading)
    prover = _Prover(program, reading, premises, Flow(program, reading, premises), Matcher(program, reading, premises))
    prover.run()
    prover.interface(plan)
    found = prover.found
    if reading.strange:  # what seems wrong may be right by what is not understood
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
    flow: Flow
    matcher: Matcher
    found: list[Obligation] = field(default_factory=list[Obligation])
    matches: dict[Event, Match] = field(default_factory=dict[Event, Match])
    by_action: dict[Action, list[Match]] = field(default_factory=lambda: defaultdict(list[Match]))
    totals: list[Match] = field(default_factory=list[Match])
    leaves: list[Match] = field(default_factory=list[Match])
    parts: set[Home] = field(default_factory=set[Home])
    by_home: dict[Home, list[tuple[Access, Match | None]]] = field(
        default_factory=lambda: defaultdict(list["tuple[Access, Match | None]"])
    )
    copies: dict[Event, Copy] = field(default_factory=dict[Event, Copy])

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
        """Which statement each event does, or which part in a sum it has."""
        for round in range(4):  # by the line, by the name, then whatever fits: so the first ones can help the later ones
            for event in sorted(self.reading.events, key=lambda e: not e.let):
                if event.kind == "exchange" or event in self.matches:
                    continue
                found = self.matcher.match(event, self.candidates(event, round))
                if found is not None:
                    self.matches[event] = found
                    turns = self.matcher.turns.setdefault(event.site.launch, [])
                    turns.extend((s, e) for s, e in found.indices.items() if e.syms() and (s, e) not in turns and round < 2)
        self.consistent()
        updates = tuple(dict.fromkeys(a.update for a in self.program.actions if a.update is not None))
        reductions = Reductions(self.reading, self.flow, updates)
        reductions.find(self.matches)
        self.sums(reductions)
        for found in (*self.matches.values(), *self.leaves):
            self.by_action[found.action].append(found)
        loose = [e for e in self.reading.events if e not in self.matches and home_of(e.target) not in self.parts]
        known = [kept for match in self.matches.values() for kept in keeps(match, self.program.scopes)]
        for event in loose:
            found = None if event in reductions.joins else self.matcher.match(event, self.candidates(event), known)
            source = reductions.source(event)
            if found is not None:
                self.matches[event] = found
                self.by_action[found.action].append(found)
            elif source is not None and event not in reductions.joins:
                copy = copy_of(event, source, tuple(self.matches.values()), self.flow, self.matcher)
                if copy is not None:
                    self.copies[event] = copy
        for event in self.reading.events:
            self.told(event, reductions)

    def consistent(self) -> None:
        """Forgets matches that take a register or an array for memory of the program that nobody keeps there."""
        kept: dict[tuple[Home, object], bool] = {}
        before = -1
        while before != len(self.matches):
            before, kept = len(self.matches), {}
            for event in self.reading.events:
                match = self.matches.get(event)
                if match is not None:
                    kept[home_of(event.target), match.action.stored] = True
                elif isinstance(event.value, Load):
                    kept[home_of(event.target), event.value.buffer] = True
            for event, match in list(self.matches.items()):
                for operand in match.operands:
                    home, stored = home_of(operand.read), home_of(operand.meant)
                    if home != stored and (home, stored) not in kept:
                        self.matches.pop(event, None)

    def sums(self, reductions: Reductions) -> None:
        """What threads sum in parts."""
        totals = Totals(reductions, self.matcher, self.flow)
        try:
            totals.follow()
            for event, what, question, args in totals.questions():
                kernel = event.site.launch.kernel.name
                self.ask((kernel, what, described(event), "for all sizes", event.span), question, *args)
        except Wrong as why:
            self.say("", "a sum in parts", "", Verdict.REFUSED, str(why))
        self.totals, self.leaves, self.parts = totals.matches, list(reductions.leaves.values()), reductions.parts

    def told(self, event: Event, reductions: Reductions) -> None:
        """Says what an event is."""
        kernel, about = event.site.launch.kernel.name, described(event)
        found = self.matches.get(event) or reductions.leaves.get(event)
        if event.kind == "atomic" and (
            found is None or not any(found.action.stored in p.reduce for p in found.action.spot.loops)
        ):
            self.say(
                kernel, "order is free", about, Verdict.REFUSED, "an atomic update, and no `reduce` frees its order", event.span
            )
        if found is not None:
            how = ", ".join(f"{sym} = {value}" for sym, value in found.indices.items())
            self.say(kernel, "is a statement", about, Verdict.PROVED, f"with {how}" if how else "once", event.span)
        elif event in reductions.joins or home_of(event.target) in reductions.parts:
            self.say(kernel, "is a statement", about, Verdict.PROVED, "a step of a sum in parts", event.span)
        elif event in self.copies:
            self.say(kernel, "is a statement", about, Verdict.PROVED, "a copy of an element", event.span)
        elif event.let:
            return  # a name for what is written out
        elif isinstance(event.stmt, k.Declare) and isinstance(event.value, Literal):
            self.say(kernel, "is a statement", about, Verdict.PROVED, "a first value that nobody reads", event.span)
        else:
            self.say(kernel, "is a statement", about, Verdict.UNDECIDED, "of none that could be found", event.span)

    def candidates(self, event: Event, round: int = 3) -> list[Action]:
        """Statements that an event may be, likely ones first."""
        every = list(self.program.actions)
        if event.let and not isinstance(event.target, Load):
            let = self.program.lets.get(self.reading.variables[event.target.sym].name)
            own = [a for a in every if isinstance(a.target, Load) and not a.target.index and a.target.buffer.role == "local"]
            every = own if let is None else [let]
        if isinstance(event.target, Load) and any(a.stored == event.target.buffer for a in every):
            every = [a for a in every if a.stored == event.target.buffer]
        name = (
            event.target.buffer.name if isinstance(event.target, Load) else self.reading.variables[event.target.sym].name.name
        )
        if round < 3:
            every = [a for a in every if a.span.line == event.span.line or (round and name.startswith(a.stored.name))]
        return sorted(every, key=lambda a: (a.span != event.span, a.span.line != event.span.line, a.stored.name != name))

    def together(self) -> None:
        """Threads reach barriers together, and wait for what they started."""
        known = (*self.matches.values(), *self.leaves)
        for stmt, site in self.reading.together:
            width = 0
            if isinstance(stmt, k.Exchange):
                width = 32
            elif isinstance(stmt, k.Barrier) and stmt.level is k.Level.WARP:
                width = stmt.lanes
            kernel, span = site.launch.kernel.name, getattr(stmt, "span", NOWHERE)
            told = (kernel, "threads meet", type(stmt).__name__.lower(), "all of them, as often", span)
            self.ask(told, diverging, site, width, known, self.premises)
        for event in self.reading.events:
            if event.kind == "async":
                found = tuple(landings(event.site, self.reading.waits))
                kernel = event.site.launch.kernel.name
                told = (kernel, "a copy lands", described(event), "a wait comes behind it", event.span)
                self.ask(told, never_lands, event.site, found, self.premises)

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
                    told = ("", "a result is there", f"line {action.span.line}, {result.name}", "it is stored", action.span)
                    self.ask(told, self.flow.lost, result, action.spot, action.target, Sources(written, copies))

    def plain(self, home: Home, writers: Iterable[Action]) -> bool:
        """Whether all that is written to some memory of the program is written to `home`, which all threads share."""
        from_space = isinstance(home, Buffer) and home not in self.reading.spaces
        return from_space and all(
            m.event.target.buffer is home for a in writers for m in self.by_action[a] if isinstance(m.event.target, Load)
        )


def keeps(match: Match, scopes: Mapping[Buffer | Sym, int]) -> Iterator[Kept]:
    """What is known of memory by a match."""
    pairs = [(match.event.target, match.action.target), *((o.read, o.meant) for o in match.operands)]
    for given, meant in pairs:
        if isinstance(meant, Load):
            index = given.index if isinstance(given, Load) else ()
            element = tuple(e.substitute(match.indices) for e in meant.index)
            around = tuple(match.indices[loop.sym] for loop in match.action.spot.loops[: scopes[meant.buffer]])
            yield Kept(home_of(given), index, meant.buffer, (*around, *element))


def described(event: Event) -> str:
    """An event in a word."""
    if isinstance(event.target, Load):
        return f"{event.target.buffer.name}[{', '.join(map(str, event.target.index))}]"
    return event.target.sym.name.split("#")[0]
