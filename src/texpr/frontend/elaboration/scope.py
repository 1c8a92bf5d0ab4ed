"""Scopes: the meaning of each name where it is used, and its unique symbol."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TypeAlias

from texpr.frontend.elaboration.drafts import Draft
from texpr.frontend.elaboration.views import View
from texpr.frontend.tree import Ident
from texpr.support.diagnostic import Edit, Note, Proposal, TexprError, error
from texpr.support.record import Mutable, Record, field
from texpr.support.span import Span


class Broken(Record):
    """The meaning of a name with an erroneous declaration, which was reported, so that its uses are not."""


Entity: TypeAlias = Draft | View | Broken


class Binding(Record):
    """A name's meaning, the span of its declaration, and its kind (`the loop index`, `the parameter`, …)."""

    entity: Entity
    span: Span
    what: str


class Scope:
    """The visible names at a place; inner scopes inherit those of outer ones and may not shadow them."""

    def __init__(self, parent: Scope | None = None):
        self.parent = parent
        self.names: dict[str, Binding] = {}
        # Names of scopes that have ended, for messages; shared by all scopes of a function.
        self.past: dict[str, Binding] = parent.past if parent is not None else {}

    def find(self, name: str) -> Binding | None:
        """The binding of `name`, if it is visible."""
        scope: Scope | None = self
        while scope is not None:
            found = scope.names.get(name)
            if found is not None:
                return found
            scope = scope.parent
        return None

    def visible(self) -> list[str]:
        """Every visible name."""
        return [*self.names, *(self.parent.visible() if self.parent is not None else ())]

    def declare(self, name: Ident, entity: Entity, what: str) -> None:
        """Binds `name`; refuses a name that is bound here."""
        self.check_free(name)
        binding = Binding(entity, name.span, what)
        self.names[name.name] = binding
        self.past[name.name] = binding

    def check_free(self, name: Ident) -> None:
        """Refuses `name` if it is bound here."""
        before = self.find(name.name)
        if before is not None:
            note = Note(f"{before.what} `{name.name}` is declared here", before.span)
            message = f"`{name.name}` is declared already"
            size = "a size is found in the shapes, and needs no declaration of its own"
            help = size if before.what == "the size" else "shadowing is not allowed; choose another name"
            raise error("E0203", name.span, message, note, help=help)

    def resolve(self, name: str, span: Span, help: str | None = None) -> Draft | View:
        """The meaning of `name`, used at `span`; `help` is given where no known name is similar."""
        binding = self.find(name)
        if binding is None:
            raise self._unknown(name, span, help)
        if isinstance(binding.entity, Broken):
            raise TexprError([])
        return binding.entity

    def _unknown(self, name: str, span: Span, help: str | None) -> TexprError:
        past = self.past.get(name)
        if past is not None:
            note = Note(f"{past.what} `{name}` was declared here, and its block has ended", past.span)
            return error("E0202", span, f"`{name}` is not visible here", note)
        return error("E0201", span, f"unknown name `{name}`", help=did_you_mean(name, self.visible()) or help)


def did_you_mean(name: str, known: list[str]) -> Proposal | None:
    """A suggestion of the known name closest to `name`."""
    close = get_close_matches(name, known, 1, 0.7) or [k for k in known if k.lower() == name.lower()]
    return Proposal(f"did you mean `{close[0]}`?", Edit(close[0])) if close else None


class Namer(Mutable):
    """Gives each declaration of a function a unique symbol: `i`, then `i'1`, `i'2`, …

    Symbols of loads inside an index are `I'd1`, `I'd2`, …: no name in the source has that form.
    """

    taken: set[str] = field(default_factory=lambda: set[str]())
    counts: dict[str, int] = field(default_factory=lambda: dict[str, int]())

    def unique(self, name: str) -> str:
        """`name`, or `name'k` where it is taken."""
        if name in self.taken:
            base = name.split("'", 1)[0]
            count = self.counts.get(base, 0)
            while name in self.taken:
                count += 1
                name = f"{base}'{count}"
            self.counts[base] = count
        self.taken.add(name)
        return name

    def data(self, base: str) -> str:
        """A symbol for a load from `base` inside an index."""
        base = base.split("'", 1)[0]
        count = self.counts["'d"] = self.counts.get("'d", 0) + 1
        return f"{base}'d{count}"
