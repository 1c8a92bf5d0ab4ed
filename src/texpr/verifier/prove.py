"""The proof of a plan, obligation by obligation."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeVarTuple, Unpack

from texpr.ir import kernel as k
from texpr.ir import program as ir
from texpr.ir.value import Buffer, Load
from texpr.presburger.formula import Formula, compare, conj
from texpr.presburger.linear import NotAffine
from texpr.presburger.raw import Undecided
from texpr.support.span import Span
from texpr.verifier.actions import Action, Program, actions
from texpr.verifier.events import Event, Reading, read
from texpr.verifier.flow import Access, Flow, Home
from texpr.verifier.logic import MOST, Point
from texpr.verifier.match import Match, Matcher
from texpr.verifier.proof import Obligation, Proof, Verdict

Ts = TypeVarTuple("Ts")


def prove(function: ir.Function, plan: k.Plan) -> Proof:
    """What can be shown of `plan`: that it does what `function`, laid out and legal, says, for all sizes that are allowed."""
    program = actions(function)
    extents = [loop.extent for action in program.actions for loop in action.spot.loops]
    reading = read(plan, program.lets, list(dict.fromkeys(extents)))
    premises = _premises(plan, reading)
    prover = _Prover(program, reading, premises, Flow(program, reading, premises), Matcher(program, reading, premises))
    prover.run()
    return Proof(plan.name, tuple(_told(plan)), tuple(prover.found))


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
    by_home: dict[Home, list[tuple[Access, Match]]] = field(default_factory=lambda: defaultdict(list["tuple[Access, Match]"]))

    def run(self) -> None:
        self.match()
        for stmt, site, why in self.reading.strange:
            self.say(
                site.launch.kernel.name, "understood", type(stmt).__name__, Verdict.UNDECIDED, why, getattr(stmt, "span", None)
            )
        self.covered()
        for match in self.matches.values():
            for access in self.flow.accesses(match):
                self.by_home[access.home].append((access, match))
        self.memory()
        self.reads()

    def say(self, kernel: str, what: str, about: str, verdict: Verdict, how: str, span: Span | None = None) -> None:
        self.found.append(Obligation(kernel, what, about, verdict, how, *(() if span is None else (span,))))

    def ask(self, told: tuple[str, str, str, str, Span], question: Callable[[Unpack[Ts]], Point | None], *args: *Ts) -> None:
        """An obligation (kernel, what, about, why, where) that holds where `question` of `args` finds no point."""
        kernel, what, about, how, span = told
        try:
            point = question(*args)
        except (Undecided, NotAffine) as why:
            self.say(kernel, what, about, Verdict.UNDECIDED, str(why), span)
            return
        if point is None:
            self.say(kernel, what, about, Verdict.PROVED, how, span)
        else:
            values = ", ".join(f"{sym.name} = {value}" for sym, value in point.items() if not sym.name.startswith("⟪"))
            self.say(kernel, what, about, Verdict.REFUSED, f"not at {values}", span)

    def match(self) -> None:
        """Which statement each event does."""
        for event in sorted(self.reading.events, key=lambda e: not e.let):
            found = self.matcher.match(event, self.candidates(event))
            kernel = event.site.launch.kernel.name
            if found is None:
                self.say(
                    kernel, "is a statement", described(event), Verdict.UNDECIDED, "of none that could be found", event.span
                )
                continue
            self.matches[event] = found
            self.by_action[found.action].append(found)
            how = ", ".join(f"{sym} = {value}" for sym, value in found.indices.items())
            self.say(kernel, "is a statement", described(event), Verdict.PROVED, f"with {how}" if how else "once", event.span)

    def candidates(self, event: Event) -> list[Action]:
        """Statements that an event may be, likely ones first."""
        if event.let and not isinstance(event.target, Load):
            let = self.program.lets.get(self.reading.variables[event.target.sym].name)
            return [] if let is None else [let]
        every = list(self.program.actions)
        if isinstance(event.target, Load) and any(a.stored == event.target.buffer for a in every):
            every = [a for a in every if a.stored == event.target.buffer]
        name = (
            event.target.buffer.name if isinstance(event.target, Load) else self.reading.variables[event.target.sym].name.name
        )
        return sorted(every, key=lambda a: (a.span != event.span, a.stored.name != name))

    def covered(self) -> None:
        """Each statement is done for each of its indices, once."""
        for action in self.program.actions:
            found = self.by_action[action]
            kernel = ", ".join(dict.fromkeys(m.event.site.launch.kernel.name for m in found))
            about, span = f"line {action.span.line}, {action.stored.name}", action.span
            told = (kernel, "each instance is done", about, "no index is left out", span)
            self.ask(told, self.flow.uncovered, action.spot, found)
            for at, one in enumerate(found):
                for two in found[at:]:
                    self.ask((kernel, "no instance is done twice", about, "indices differ", span), self.flow.twice, one, two)

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
            written = [(access, match) for access, match in touched if access.write]
            for access, _ in touched:
                if access.write or self.plain(home, writers[access.stored]):
                    continue
                needed = [(a.spot, a.target) for a in writers[access.stored]]
                kernel, span = access.site.launch.kernel.name, access.event.span
                told = (kernel, "what is read is there", str(access), "written before, in the same memory", span)
                self.ask(told, self.flow.missing, access, needed, written)

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
