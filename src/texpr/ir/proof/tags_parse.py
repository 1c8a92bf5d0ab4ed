"""Parses the text of tags; the grammar is in `texpr.ir.proof.tags_text`."""

from __future__ import annotations

import re
from typing import ClassVar

from texpr.affine.expr import Expr
from texpr.ir.program import Update
from texpr.ir.program.updates import UPDATES
from texpr.ir.proof.tags import End, Hole, Instance, Joined, Moved, Numbered, Parcel, Statement, Step, Tag, Tags, Turn
from texpr.ir.value.parse import index, index_list, separated
from texpr.ir.value.scanner import Scanner


class TagScanner(Scanner):
    """The scanner of plans, with additional names: `element 0`, `box1.0`, `x#2`."""

    pattern: ClassVar[re.Pattern[str]] = re.compile(
        r"""
          (?P<space>  (?: \s+ | --[^\n]* )+ )
        | (?P<name>   (?: element | turn )\ [0-7] (?! \d ) | [^\W\d][\w']* (?: [.\#][\w']+ )* )
        | (?P<number> \d+ )
        | (?P<mark>   [][(){}<>+*/%,⟨⟩-] )
        """,
        re.VERBOSE,
    )


def parse_tags(text: str, numbered: Numbered, name: str = "<tags>") -> Tags:
    """The tags of `text`, for the events and signals in `numbered`. Raises E0581 if the text is none."""
    scan = TagScanner(text, name)
    try:
        return _Parser(scan, numbered).tags()
    except RecursionError:
        scan.fail("what stands here is nested too deeply")


class _Parser:
    def __init__(self, scan: Scanner, numbered: Numbered):
        self.scan, self.numbered = scan, numbered

    def tags(self) -> Tags:
        scan, own = self.scan, self.numbered
        scan.expect("tags")
        if scan.name("the name of a plan") != own.plan:
            scan.reject(f"expected tags of `{own.plan}`")
        for what, there in (
            ("events", own.events), ("statements", own.statements), ("steps", own.steps), ("signals", own.signals),
        ):  # fmt: skip
            scan.expect(what)
            if scan.integer() != len(there):
                scan.reject(f"the tags are of another plan: this one has {len(there)} {what}")
        scan.expect("{")
        events = [self.event(at) for at in range(len(own.events))]
        turns = tuple(self.signal(at) for at in range(len(own.signals)))
        scan.expect("}")
        if scan.next.kind != "end":
            scan.fail(f"expected the end of the text, found `{scan.next.text}`")
        return Tags(tuple(tag for tag, _ in events), tuple(ends for _, ends in events), turns)

    def event(self, at: int) -> tuple[Tag | None, tuple[End, ...]]:
        self.counted("event", at)
        tag, ends = self.tag(), list[End]()
        while self.scan.accept("lands"):
            ends.append(End(self.instance("steps", "signals"), self.several("groups", "steps")))
        return tag, tuple(ends)

    def counted(self, what: str, at: int) -> None:
        self.scan.expect(what)
        if self.scan.integer() != at:
            self.scan.reject(f"expected {what} {at}")

    def tag(self) -> Tag | None:
        scan = self.scan
        if scan.accept("does"):
            return self.statement()
        if scan.accept("moves"):
            action, indices = self.number("statements"), index_list(scan)
            if not scan.sees("before", "behind"):
                scan.fail(f"expected `before` or `behind`, found `{scan.next.text}`")
            side = -1 if scan.take().text == "before" else 1
            scan.expect("element")
            return Moved(action, indices, side, index_list(scan), self.perhaps("at"))
        if scan.accept("hole"):
            return Hole(self.number("statements"), index_list(scan))
        if scan.accept("step"):
            return Step(self.perhaps("at"))
        if scan.accept("joins"):
            update, inverse = self.update(), self.perhaps("at")
            ended = separated(scan, lambda _: self.statement()) if scan.accept("ends") else []
            return Joined(update, tuple(ended), inverse)
        return None

    def statement(self) -> Statement:
        action, indices, inverse = self.number("statements"), index_list(self.scan), self.perhaps("at")
        return Statement(action, indices, inverse, self.scan.accept("partly"))

    def update(self) -> Update:
        scan = self.scan
        own = scan.accept("combiner")
        name = scan.name("an update")
        if own:
            found = self.numbered.combiners.get(name)
            return scan.reject(f"there is no combiner `{name}`") if found is None else found
        return name if name in UPDATES else scan.reject(f"no update is called `{name}`")

    def signal(self, at: int) -> Turn:
        self.counted("signal", at)
        begun, seen, parcels = self.several("begun", "signals"), self.several("seen", "signals", "steps"), list[Parcel]()
        while self.scan.accept("parcel"):
            parcels.append(self.parcel())
        return Turn(begun, seen, tuple(parcels), self.perhaps("turn"))

    def parcel(self) -> Parcel:
        copies = self.several("copies", "signals")
        self.scan.expect("box")
        box = index_list(self.scan)
        self.scan.expect("bytes")
        return Parcel(copies, box, index(self.scan))

    def several(self, word: str, *of: str) -> tuple[Instance, ...]:
        return tuple(separated(self.scan, lambda _: self.instance(*of))) if self.scan.accept(word) else ()

    def instance(self, *of: str) -> Instance:
        return Instance(self.number(*of), index_list(self.scan), self.perhaps("where"))

    def number(self, *of: str) -> int:
        """A number of an existing item of these kinds."""
        found, most = self.scan.integer(), max(len(getattr(self.numbered, each)) for each in of)
        return found if 0 <= found < most else self.scan.reject(f"there are {most} {' or '.join(of)} only, from 0 on")

    def perhaps(self, word: str) -> tuple[Expr, ...]:
        return index_list(self.scan) if self.scan.accept(word) else ()
