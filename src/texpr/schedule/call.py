"""One directive of a schedule with its arguments parsed: loops and buffers by name, sizes, words; with the errors for invalid
ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from difflib import get_close_matches
from itertools import count

from texpr.affine.expr import Expr, Sym, expr
from texpr.frontend.tokens import is_name
from texpr.ir import program as ir
from texpr.ir.program.marked import mark
from texpr.ir.program.marks import Tensor
from texpr.ir.value import Buffer
from texpr.schedule.edits import Offers, Said, instead, left_out, staged_by, words
from texpr.schedule.state import State
from texpr.schedule.tree import called, exactly, loops, path_to
from texpr.support.diagnostic import Note, TexprError, error
from texpr.support.record import Record, replace
from texpr.support.span import NOWHERE, Span


class Rule(Record):
    """A directive: its syntax, and the rewrite that it performs. Each lives in a file of `texpr.schedule.directives`."""

    name: str
    form: str
    apply: Callable[[Call], State]


class Call(Record):
    """A use of a rule at a state of the program. Every accessor raises TexprError at the directive or at the argument."""

    rule: Rule
    directive: ir.Directive
    state: State

    def refuse(
        self, code: str, message: str, *notes: Note, at: ir.Argument | None = None, help: str | None = None, offers: Offers = ()
    ) -> TexprError:
        """The error by which this directive is refused; `offers`: changes of the text to try, best first."""
        span = self.directive.span if at is None else at.span
        if code == "E0916" and help is None:
            offers = (*offers, *self.by("ld"), *left_out(self.directive.span))
        return error(code, span, message, *notes, help=help, offers=offers)

    def instead(self, help: str, change: Callable[[Said], object]) -> Offers:
        """The offer to replace this directive by the result of `change`; `%` in `help` is that."""
        return instead(self.directive.span, help, change)

    def before(self, help: str, new: str) -> Offers:
        """The offer to insert another directive before this one; `%` in `help` is that."""
        return self.instead(help.replace("%", f"`{new}`"), lambda said: f"{new}  {said}")

    def by(self, *vias: str) -> Offers:
        """The offers of other ways to stage."""
        return staged_by(self.directive.span, *vias)

    def split(self, loop: ir.Loop, factor: int, change: Callable[[Said, str, str], object], help: str) -> Offers:
        """The offer to split a loop first: `change` gives the directive for the names of the new loops."""
        outer, inner = (self.state.fresh(f"{loop.sym.base}_{which}") for which in "oi")
        name = exactly(loop.sym.name, self.state.function.body)
        new = f"split({name}, {factor}) -> ({outer}, {inner})"
        return self.instead(f"{help}: `{new}`", lambda said: f"{new}  {change(said, outer, inner)}")

    def wrong(self, reason: str, at: ir.Argument | None = None, offers: Offers = ()) -> TexprError:
        """The error for invalid arguments."""
        form = f"it is written `{self.rule.form}`"
        return self.refuse("E0902", f"`{self.rule.name}` {reason}", at=at, help=form, offers=offers)

    @property
    def plain(self) -> tuple[ir.Argument, ...]:
        """The arguments without a key."""
        return tuple(a for a in self.directive.args if a.key is None)

    def expect(self, least: int, most: int | None = None, keys: Sequence[str] = ()) -> None:
        """Raises for too few or too many positional arguments, and for unknown or repeated keys."""
        most = least if most is None else most
        seen: set[str] = set()
        for argument in self.directive.args:
            if argument.key is None:
                continue
            if argument.key not in keys:
                listed = ", ".join(f"`{k}=`" for k in keys)
                raise self.wrong(f"has no `{argument.key}=`" + (f"; it has {listed}" if keys else ""), argument)
            if argument.key in seen:
                raise self.wrong(f"has `{argument.key}=` twice", argument)
            seen.add(argument.key)
        if not least <= len(self.plain) <= most:
            wanted = str(least) if least == most else f"{least} or {most}" if most == least + 1 else f"{least} to {most}"
            kind = f"argument{'s' if most != 1 else ''}{' without a key' if keys else ''}"
            raise self.wrong(f"takes {wanted} {kind}, not {len(self.plain)}")

    def key(self, key: str) -> ir.Argument | None:
        """The argument `key=…`."""
        return next((a for a in self.directive.args if a.key == key), None)

    def word(self, argument: ir.Argument, choices: Sequence[str] = (), what: str = "a word") -> str:
        """A name or word, one of `choices` where there are any; `what`: what it denotes."""
        if not isinstance(argument.value, str):
            raise self.wrong(f"takes {what} here", argument)
        if choices and argument.value not in choices:
            listed = ", ".join(f"`{c}`" for c in choices)
            near = _near(argument.value, choices, argument)
            raise self.wrong(f"takes one of {listed} here, not `{argument.value}`", argument, near)
        return argument.value

    def size(self, argument: ir.Argument) -> Expr:
        """An integer, a size, or an expression of sizes."""
        index = argument.index
        if index is not None:
            return index
        function = self.state.function
        if isinstance(argument.value, str):
            for size in (*function.sizes, *(s for s, _ in function.consts)):
                if size.name == argument.value:
                    return expr(size)
        raise self.wrong(f"takes an integer or an expression of sizes here, not `{argument.value}`", argument)

    def number(self, argument: ir.Argument, least: int = 1) -> int:
        """An integer, at least `least`."""
        value = argument.value
        if not isinstance(value, int):
            raise self.wrong("takes an integer here", argument)
        if value < least:
            raise self.wrong(f"takes an integer of {least} or more here, not {value}", argument)
        return value

    def loop(self, argument: ir.Argument) -> ir.Loop:
        """The loop with that index or label. E0903 where there is none, E0904 where there are several."""
        name = self.word(argument, what="the name of a loop")
        every = loops(self.state.function.body)
        very = name.removesuffix("'0")
        made = next((t.outputs for t in self.state.transforms if any(d.sym.name == very for d in t.inputs)), ())
        found = called(name, self.state.function.body)
        if made and all(loop.sym.name != very for loop in found):
            found = ()  # if the loop of exactly that name is gone, another one of that base is not meant
        found = found or tuple(loop for loop in every if loop.label == name)
        if len(found) == 1:
            self._require_not_copied(found[0], argument)
            return found[0]
        if found:
            notes = tuple(Note(f"a loop over `{name}`", loop.span) for loop in found)
            reason = f"`{name}` stands for {len(found)} loops"
            exact = [exactly(loop.sym.name, self.state.function.body) for loop in found]
            help = f"their names are {' and '.join(f'`{each}`' for each in exact)}, in the order of the text"
            raise self.refuse("E0904", reason, *notes, at=argument, help=help)
        names = [loop.sym.name for loop in every]
        hint, near = f"the loops are {', '.join(names) or 'none'}", _near(name, names, argument)
        became = f"there is no loop `{name}` any more: it became {' and '.join(f'`{d.sym.name}`' for d in made)}"
        raise self.refuse("E0903", became if made else f"there is no loop `{name}`", at=argument, help=hint, offers=near)

    def _require_not_copied(self, loop: ir.Loop, argument: ir.Argument) -> None:
        """Refuses the loops of a copy by the engine, which no thread runs."""
        path = path_to(self.state.function.body, loop) or ()
        if any(isinstance(step, ir.Par) and mark(step, Tensor) for step in path):
            reason = f"the tensor memory accelerator runs the loop over `{loop.sym.base}`, which must stay as `stage` made it"
            raise self.refuse("E0916", reason, at=argument, help="`box=` and `swizzle=` of `stage` shape such a copy")

    def buffer(self, argument: ir.Argument) -> Buffer:
        """The buffer of that name. E0903 where there is none."""
        name = self.word(argument, what="the name of a buffer")
        every = dict.fromkeys((*ir.buffers(self.state.function), *self.state.function.results))
        for buffer in every:
            if buffer.name == name:
                return buffer
        names = [b.name for b in every]
        hint, near = f"the buffers are {', '.join(names)}", _near(name, names, argument)
        raise self.refuse("E0903", f"there is no buffer `{name}`", at=argument, help=hint, offers=near)

    def results(self, *bases: str) -> tuple[Sym, ...]:
        """The names after `->`, as many as `bases`, or fresh ones based on `bases` where none are given."""
        given = self.directive.results
        if not given:
            return tuple(Sym(self.state.fresh(base)) for base in bases)
        if len(given) != len(bases):
            raise self.wrong(f"gives {len(bases)} name{'s' if len(bases) != 1 else ''}, not {len(given)}")
        taken = self.state.taken()
        for number, name in enumerate(given):
            if not is_name(name):
                raise self.refuse(
                    "E0107", f"`{name}` cannot be a name", help="a name is of letters, digits and _, and no keyword"
                )
            if name in taken or name in given[:number]:
                reason = f"the name `{name}` is taken" if name in taken else f"two results are called `{name}`"
                raise self.refuse("E0907", reason, offers=self.renamed(number, name))
        return tuple(map(Sym, given))

    def renamed(self, number: int, name: str) -> Offers:
        """The offer of another name for a result."""
        free = next(each for each in map(f"{name}{{}}".format, count(2)) if each not in self.state.taken())

        def change(said: Said) -> Said:
            return replace(said, results=(*said.results[:number], free, *said.results[number + 1 :]))

        return self.instead(f"call it `{free}`", change)

    def require_memory(self, space: str, argument: ir.Argument | None) -> None:
        """Raises E0908 for memory that the target lacks: shared memory, that of a cluster, or lanes of warps."""
        target = self.state.target
        there = {"shared": target.has_blocks, "lanes": target.has_warps, "cluster": target.has_clusters}
        if space in ("shared", "lanes") and not there[space]:
            missing = "shared memory" if space == "shared" else "warps"
            span = argument.span if argument is not None else NOWHERE
            registers = words(span, "write `registers`", span.text.replace(space, "registers"))
            raise self.refuse("E0908", f"{target.name} has no {missing}", at=argument, offers=registers)
        if space == "cluster" and not there[space]:
            other = "targets from sm_90 on have them" if target.has_blocks else None
            raise self.refuse("E0908", f"{target.name} has no clusters of blocks", at=argument, help=other)

    def no_results(self) -> None:
        """Raises where names are given though the rule has no results."""
        if self.directive.results:
            raise self.wrong("makes nothing that could be named")


def _near(name: str, known: Sequence[str], argument: ir.Argument) -> Offers:
    """The offers of similar names, at the end of an argument."""
    span = argument.span
    place = Span(span.source, max(0, span.end - len(name)), span.end) if span.text.endswith(name) else NOWHERE
    near = get_close_matches(name, known, n=3)
    return tuple(offer for each in near for offer in words(place, f"did you mean `{each}`?", each))
