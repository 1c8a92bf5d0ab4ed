"""Tags as text: a claim about each event of a plan. `texpr.ir.proof.tags_parse` reads it back to equal tags.

tags      = "tags" NAME "events" INT "statements" INT "steps" INT "signals" INT "{" {event} {signal} "}"
event     = "event" INT [tag] {"lands" end}
tag       = "does" statement
          | "moves" INT list ("before" | "behind") "element" list ["at" list]
          | "hole" INT list
          | "step" ["at" list]
          | "joins" update ["at" list] ["ends" statement, …]
statement = INT list ["at" list] ["partly"]
update    = OP | "combiner" NAME
end       = instance ["groups" instance, …]
signal    = "signal" INT ["begun" instance, …] ["seen" instance, …] {"parcel" parcel} ["turn" list]
parcel    = ["copies" instance, …] "box" list "bytes" index
instance  = INT list ["where" list]
list      = "[" [index, …] "]"
    index     = an index expression of `texpr.ir.kernel.text`, with these names, too: "element" INT, "turn" INT,
                a name with "." or "#" in it, NAME "⟨" [index, …] "⟩" for a data-dependent integer

Numbered items are named in a comment, after `--`; "at" is the `inverse` of a tag.

Names that the verifier creates (`i●`, `⌊i / 4⌋`, …) are no tokens, so that tags cannot refer to them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import assert_never

from texpr.affine.expr import Expr
from texpr.ir.program import Combiner, Update
from texpr.ir.proof.tags import End, Hole, Instance, Joined, Moved, Numbered, Parcel, Statement, Step, Tag, Tags
from texpr.ir.value.text import list_text


def tags_text(tags: Tags, numbered: Numbered) -> str:
    """The text of tags, with a comment for each line."""
    return "\n".join(_lines(tags, numbered)) + "\n"


def _lines(tags: Tags, numbered: Numbered) -> Iterator[str]:
    counted = (("events", tags.events), ("statements", numbered.statements), ("steps", numbered.steps), ("signals", tags.turns))
    yield " ".join((f"tags {numbered.plan}", *(f"{what} {len(each)}" for what, each in counted)))
    for what, words in (("statement", numbered.statements), ("step", numbered.steps)):
        yield from (f"-- {what} {at}: {said}" for at, said in enumerate(words))
    yield "{"
    ends = tags.ends or ((),) * len(tags.events)
    for at, (tag, own, said) in enumerate(zip(tags.events, ends, numbered.events, strict=True)):
        yield f"    event {at}{_tag(tag)}  -- {said}"
        yield from (f"        lands {_end(each)}" for each in own)
    for at, (turn, said) in enumerate(zip(tags.turns, numbered.signals, strict=True)):
        yield f"    signal {at}{_several('begun', turn.begun)}{_several('seen', turn.seen)}  -- {said}"
        yield from (f"        parcel{_parcel(each)}" for each in turn.parcels)
        if turn.turn:
            yield f"        turn {list_text(turn.turn)}"
    yield "}"


def _tag(tag: Tag | None) -> str:
    match tag:
        case None:
            return ""
        case Statement():
            return f" does {_statement(tag)}"
        case Moved(action, indices, side, element, inverse):
            where = "before" if side < 0 else "behind"
            return f" moves {action} {list_text(indices)} {where} element {list_text(element)}{_perhaps('at', inverse)}"
        case Hole(action, indices):
            return f" hole {action} {list_text(indices)}"
        case Step(inverse):
            return f" step{_perhaps('at', inverse)}"
        case Joined(update, of, inverse):
            ends = f" ends {', '.join(map(_statement, of))}" if of else ""
            return f" joins {_update(update)}{_perhaps('at', inverse)}{ends}"
        case _:
            assert_never(tag)


def _statement(tag: Statement) -> str:
    return f"{tag.action} {list_text(tag.indices)}{_perhaps('at', tag.inverse)}{' partly' if tag.partial else ''}"


def _update(update: Update) -> str:
    return f"combiner {update.name}" if isinstance(update, Combiner) else update


def _perhaps(word: str, values: tuple[Expr, ...]) -> str:
    return f" {word} {list_text(values)}" if values else ""


def _several(word: str, some: Sequence[Instance]) -> str:
    return f" {word} {', '.join(map(_instance, some))}" if some else ""


def _instance(one: Instance) -> str:
    return f"{one.of} {list_text(one.at)}{_perhaps('where', one.where)}"


def _end(end: End) -> str:
    return f"{_instance(end.step)}{_several('groups', end.groups)}"


def _parcel(parcel: Parcel) -> str:
    return f"{_several('copies', parcel.copies)} box {list_text(parcel.box)} bytes {parcel.bytes}"
