"""Memory of a plan that holds partial sums, and the combining updates."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from texpr.affine.expr import Sym
from texpr.ir import program as ir
from texpr.ir.value import Buffer, Load, Ref
from texpr.proof.plan.match import Match, home_of
from texpr.proof.plan.sums import Sums, Wrong
from texpr.proof.read.actions import Action, Program
from texpr.proof.read.events import Event, Reading
from texpr.proof.search.indices import titles
from texpr.support.record import Mutable, field

Matching: TypeAlias = Callable[[Event, list[Action]], Match | None]
"""Which of some statements an event executes."""


class Parts(Mutable):
    """Memory that the program does not have. `joins`: events that combine partial sums, with the update and the operand."""

    reading: Reading
    program: Program
    sums: Sums
    joins: dict[Event, tuple[ir.Update, Load | Ref]] = field(default_factory=dict[Event, "tuple[ir.Update, Load | Ref]"])
    homes: set[Buffer | Sym] = field(default_factory=set["Buffer | Sym"])

    def find(self, matches: dict[Event, Match]) -> dict[Event, Match]:
        """Finds partial sums among events without a match; an event that was mistaken for an initialisation loses its match.

        Returns the updates of partial sums, which lose their matches, too.
        """
        own = {a.stored for a in self.program.actions} | {*self.program.function.params}
        updates = dict.fromkeys(a.update for a in self.program.actions if a.update is not None)
        loose = [e for e in self.reading.events if e not in matches]
        for event in loose:
            if event.kind == "exchange":
                self.homes |= {home_of(place) for place in (event.target, event.value) if isinstance(place, Load | Ref)}
            elif (join := self.join(event, updates)) is not None:
                self.joins[event] = join
                self.homes.add(home_of(join[1]))
        before = -1
        while before != len(self.homes):
            before = len(self.homes)
            for event in self.reading.events:  # those that were matched wrongly
                update = matches[event].action.update if event in matches else None
                source = self.source(event) if update is None else None
                if source is not None and home_of(event.target) in self.homes and home_of(event.target) not in own:
                    self.homes.add(home_of(source))
        self.homes -= {home for home in self.homes if home in own}
        leaves: dict[Event, Match] = {}
        for event in list(matches):
            if home_of(event.target) in self.homes:
                match = matches.pop(event)
                if match.action.update is not None:
                    leaves[event] = match
        return leaves

    def settled(self, leaves: Mapping[Event, Match], match: Matching) -> dict[Event, Match]:
        """The updates of partial sums, each of the memory that its sum is added to: several sums may have the same terms."""
        found = dict(leaves)
        for event, given in leaves.items():
            ends = self.ends(home_of(event.target))
            if ends and not any(self.is_of(home, given.action.stored) for home in ends):
                same = [a for a in self.program.actions if a.update == given.action.update]
                other = match(event, [a for a in same if any(self.is_of(home, a.stored) for home in ends)])
                found[event] = other or given
        return found

    def ends(self, home: Buffer | Sym) -> set[Buffer | Sym]:
        """The memory of the program that a partial sum is added to in the end."""
        ends, waiting, seen = set["Buffer | Sym"](), [home], {home}
        while waiting:
            part = waiting.pop()
            into = {home_of(e.target) for e, (_, source) in self.joins.items() if home_of(source) == part} - seen
            seen |= into
            waiting += [each for each in into if each in self.homes]
            ends |= {each for each in into if each not in self.homes}
        return ends

    def is_of(self, home: Buffer | Sym, stored: Buffer | Sym) -> bool:
        """Whether memory of the plan is called after memory of the program."""
        name = home.name if isinstance(home, Buffer) else self.reading.variables[home].name.name
        return home == stored or name in titles(stored)

    def join(self, event: Event, updates: Iterable[ir.Update]) -> tuple[ir.Update, Load | Ref] | None:
        """`event` as a combination of two places by one of the program's updates."""
        for update in updates:
            joined: ir.Update = "add" if update == "sub" else update
            try:
                source, _ = self.sums.join(event, joined)[event].origin
            except Wrong:
                continue
            if isinstance(source, Load | Ref):
                return joined, source
        return None

    def source(self, event: Event) -> Load | Ref | None:
        """The operand that an event copies or combines, None if it computes something else."""
        source = self.joins[event][1] if event in self.joins else self.sums.origin(event)[0]
        return source if isinstance(source, Load | Ref) else None
