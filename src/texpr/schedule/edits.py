"""Changes of the source text that helps for a schedule propose: of a directive, of the head of a loop, of the head of a
function.

Each is offered only where the changed construct has source text: those built in Python, or by a pragma, have none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from texpr.ir import program as ir
from texpr.ir.program.uses import loads
from texpr.ir.value import Buffer
from texpr.support.diagnostic import Edit, Proposal
from texpr.support.record import Record, replace
from texpr.support.span import NOWHERE, Span

Offers = tuple[Proposal, ...]


class Said(Record):
    """A directive as written: its name, the text of each argument, the names after `->`."""

    name: str
    args: tuple[str, ...]
    results: tuple[str, ...] = ()

    def __str__(self) -> str:
        made = f" -> ({', '.join(self.results)})" if len(self.results) > 1 else f" -> {self.results[0]}" if self.results else ""
        return f"{self.name}({', '.join(self.args)}){made}"

    def without(self, *keys: str) -> Said:
        """The same without the arguments with these keys."""
        return replace(self, args=tuple(a for a in self.args if key_of(a) not in keys))

    def having(self, key: str, value: object) -> Said:
        """The same with `key=value`, replacing another value of that key."""
        new = f"{key}={value}"
        if any(key_of(a) == key for a in self.args):
            return replace(self, args=tuple(new if key_of(a) == key else a for a in self.args))
        return replace(self, args=(*self.args, new))

    def plain(self, number: int, value: object) -> Said:
        """The same with positional argument `number` replaced; past the last one it is appended."""
        at = [n for n, a in enumerate(self.args) if key_of(a) is None]
        place = at[number] if number < len(at) else at[-1] + 1
        return replace(self, args=(*self.args[:place], str(value), *self.args[place + (number < len(at)) :]))


def key_of(argument: str) -> str | None:
    """The key of an argument, if it has one."""
    key, equal, _ = argument.partition("=")
    return key.strip() if equal and key.strip().isidentifier() else None


def said(span: Span) -> Said | None:
    """The directive at a span of a schedule."""
    text = "" if span is NOWHERE else span.text
    name, bracket, rest = text.partition("(")
    if not bracket or not name.strip().isidentifier():
        return None
    end = closing(rest)
    results = rest[end + 1 :].partition("->")[2].strip(" ()\n")
    names = tuple(each.strip() for each in results.split(",") if each.strip())
    return Said(name.strip(), tuple(parts(rest[:end])), names)


def closing(text: str) -> int:
    """The position of the bracket that closes the one at the start of `text`; its end where there is none."""
    depth = 0
    for at, char in enumerate(text):
        depth += (char in "([{") - (char in ")]}")
        if depth < 0:
            return at
    return len(text)


def parts(text: str) -> Iterable[str]:
    """`text` split at commas outside of brackets."""
    start = depth = 0
    for at, char in enumerate(text):
        depth += (char in "([{") - (char in ")]}")
        if char == "," and not depth:
            yield text[start:at].strip()
            start = at + 1
    if text[start:].strip():
        yield text[start:].strip()


def instead(span: Span, help: str, change: Callable[[Said], object]) -> Offers:
    """The offer to replace a directive by the result of `change`; `%` in `help` is that."""
    old = said(span)
    if old is None:
        return ()
    new = str(change(old))
    return (Proposal(help.replace("%", f"`{new}`"), Edit(new, span)),)


def left_out(span: Span, help: str = "leave it out") -> Offers:
    """The offer to remove a directive."""
    return () if said(span) is None else (Proposal(help, Edit("", span)),)


def words(span: Span, help: str, text: str) -> Offers:
    """The offer to write `text` at a span; `…` in it is the old text."""
    return () if span is NOWHERE or not span.text else (Proposal(help, Edit(text, span)),)


def promise(function: ir.Function, clause: str, help: str = "add") -> Offers:
    """The offer to add a promise to the head of the function."""
    place = _brace(function.span)
    return () if place is None else (Proposal(f'{help} "{clause}"', Edit(f"\n    {clause}\n…", place)),)


def aligned(buffer: Buffer, bytes: int, help: str) -> Offers:
    """The offer to promise the alignment of a parameter."""
    span = buffer.span
    if span is NOWHERE or span.text != buffer.name or buffer.role not in ("input", "inout"):
        return ()
    rest = span.source.text[span.end :]
    end = span.end + min(closing(rest), len(rest) - len(rest.lstrip()) + len(next(iter(parts(rest)), "")))
    whole = Span(span.source, span.end, end)
    start, old, _ = whole.text.partition(" align(")
    new = f"{start} align({bytes})" if old else f"…{' '}align({bytes})"
    return (Proposal(help, Edit(new, whole)),)


def head(loop: ir.Loop) -> Span | None:
    """The head of a loop that is written by itself, up to its brace."""
    brace = None if loop.span is NOWHERE else _brace(loop.span)
    place = None if brace is None else Span(brace.source, loop.span.start, brace.start)
    return place if place is not None and place.text[:3] in ("par", "seq") else None


def freed(loop: ir.Loop, help: str, buffers: Iterable[Buffer] = ()) -> Offers:
    """The offer to make a sequential loop a `par`, which reduces into `buffers`."""
    place = head(loop)
    if place is None or not place.text.startswith("seq"):
        return ()
    named = ", ".join(dict.fromkeys(b.name for b in buffers))
    text = place.text.rstrip()
    new = text if "reduce(" in text or not named else f"{text} reduce({named})"
    return (Proposal(help, Edit(f"par{new[3:]} ", place)),)


def any_order(loops: Iterable[ir.Loop], buffer: Buffer, help: str, clause: str = "reduce") -> Offers:
    """The offer to free the order of updates, or by `scan` of terms, on each of these loops, outermost first."""
    places = [place for loop in loops if (place := head(loop)) is not None and f"{clause}(" not in place.text]
    if not places:
        return ()
    source, start = places[0].source, places[0].start
    new, at = "", start
    for place in places:
        new += source.text[at : place.start] + f"{place.text.rstrip()} {clause}({buffer.name}) "
        at = place.end
    return (Proposal(help, Edit(new, Span(source, start, at))),)


def _brace(span: Span) -> Span | None:
    """The position of the brace that opens the body of what begins at `span`."""
    if span is NOWHERE:
        return None
    at = span.source.text.find("{", span.start, span.end)
    return None if at < 0 else Span(span.source, at, at + 1)


OF_THE_ENGINE = ("box", "stride", "swizzle", "save_traffic", "multicast")
"""The arguments of `stage` that a copy by threads does not have."""


def staged_by(span: Span, *vias: str) -> Offers:
    """The offers to stage in another way: by threads, or by another copy of the engine."""
    found: list[Proposal] = []
    for via in vias:
        kept = OF_THE_ENGINE if via in ("ld", "cp_async", "bulk") else ()
        found += instead(
            span, f"stage it by via={via}", lambda said, via=via, kept=kept: said.without(*kept).having("via", via)
        )
    return tuple(found)


def in_registers(span: Span) -> Offers:
    """The offer to stage in registers, by threads."""
    return instead(span, "stage it in registers", lambda said: said.without(*OF_THE_ENGINE, "via").having("in", "registers"))


def staged_at(span: Span, loops: Iterable[str]) -> Offers:
    """The offers to stage at other loops."""
    return tuple(
        offer
        for name in loops
        for offer in instead(span, f"stage it at={name}", lambda said, name=name: said.having("at", name))
    )


def without(span: Span, key: str) -> Offers:
    """The offer to remove an argument of a directive."""
    return instead(span, f"leave `{key}=` out", lambda said: said.without(key))


def begins_at(buffer: Buffer, bytes: int) -> Offers:
    """The offer to promise that a tensor is aligned to so many bytes."""
    return aligned(buffer, bytes, f"promise where it begins: `{buffer.name}: {buffer.dtype}[…] align({bytes})`")


def updated(loop: ir.Loop) -> tuple[Buffer, ...]:
    """What iterations of a loop update, their own locals aside."""
    own = {stmt.buffer for stmt in ir.walk(loop.body) if isinstance(stmt, ir.New)}
    binds = (stmt for stmt in ir.walk(loop.body) if isinstance(stmt, ir.Bind) and stmt.update is not None)
    return tuple(dict.fromkeys(t.buffer for stmt in binds for t in stmt.targets if t.buffer not in own))


def touching(body: Iterable[ir.Stmt], name: str) -> tuple[ir.Loop, ...]:
    """The loops that access a buffer, inner ones first."""

    def touches(loop: ir.Loop) -> bool:
        inside = list(ir.walk(loop.body))
        if any(isinstance(stmt, ir.New) and stmt.buffer.name == name for stmt in inside):
            return False
        targets = {t.buffer.name for stmt in inside if isinstance(stmt, ir.Bind) for t in stmt.targets}
        return name in targets or any(load.buffer.name == name for stmt in inside for load in loads(stmt))

    return tuple(reversed([stmt for stmt in ir.walk(tuple(body)) if isinstance(stmt, ir.Par | ir.Seq) and touches(stmt)]))
