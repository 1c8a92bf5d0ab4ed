"""What the words of a schedule name: loops and buffers of its function and of those it calls, and results of directives."""

from __future__ import annotations

from collections.abc import Iterator

from texpr.editor.names.body import Inside, Items
from texpr.editor.names.scopes import Scope
from texpr.editor.names.symbols import Symbol
from texpr.frontend import tree as t


def resolve_schedules(tree: t.Tree, items: Items) -> None:
    """Notes the names in every schedule of a file."""
    for item in tree.items:
        if isinstance(item, t.Schedule):
            _schedule(item, items)
    items.names.index()


def _schedule(item: t.Schedule, items: Items) -> None:
    found = items.file.get(item.function.name)
    if found is not None:
        found.places.append((item.function.span.start, item.function.span.end))
    reader = _Reader(item, items)
    for directive in item.directives:
        for argument in directive.args:
            reader.value(argument.value)
        for result in directive.results:
            reader.scope.declare(result, "result", directive.span, result.span.end)
    reader.doubts()


class _Reader:
    """Reads the words of one schedule. `unknown`: those that name nothing known here."""

    def __init__(self, item: t.Schedule, items: Items):
        self.item, self.items = item, items
        self.scope = Scope(items.names, item.function.name, item.span.end)
        self.own = items.inside.get(item.function.name, Inside())
        self.every = tuple(self._reached(item.function.name))
        self.unknown: list[tuple[str, int, int]] = []

    def _reached(self, name: str) -> Iterator[Inside]:
        """The function, and those that it calls, directly or not."""
        seen: set[str] = set()
        left = [name]
        while left:
            one = left.pop()
            inside = self.items.inside.get(one)
            if one not in seen and inside is not None:
                seen.add(one)
                left += sorted(inside.calls)
                yield inside

    def value(self, value: t.DirectiveValue) -> None:
        """Notes the names in an argument."""
        match value:
            case t.Word():
                self._word(value.text, value.span.start)
            case t.Text():
                for symbol in self._candidates(value.value):
                    symbol.doubt = symbol.doubt or (value.span.start, value.span.end)
            case t.Group():
                for argument in value.args:
                    self.value(argument.value)
            case t.Unary() | t.Binary() | t.Call():
                for name in t.names_in(value):
                    self._size(name)
            case t.Number():
                pass

    def _size(self, name: t.Ident) -> None:
        for size in self.own.sizes:
            if size.name == name.name:
                size.places.append((name.span.start, name.span.end))

    def _word(self, text: str, start: int) -> None:
        """A word; what comes before a point or a prime is the name."""
        if " " in text or not text[:1].isidentifier():
            return
        whole, _, _ = text.partition(".")
        name, prime, number = whole.partition("'")
        place = (start, start + len(name))
        result = self.scope.find(name)
        found = [result] if result is not None else self._candidates(name)
        if not found:
            self.unknown.append((name, *place))
        elif len(found) == 1 and not prime:
            found[0].places.append(place)
        elif prime and number.isdigit() and int(number) < len(found) and all(each in self.own.loops for each in found):
            found[int(number)].places.append(place)
        else:
            for symbol in found:
                symbol.doubt = symbol.doubt or place

    def _candidates(self, name: str) -> list[Symbol]:
        """The loops, buffers and sizes that a word may name."""
        sizes = [size for size in self.own.sizes if size.name == name]
        if sizes:
            return sizes
        return [each for each in self._nameable() if each.name == name]

    def _nameable(self) -> Iterator[Symbol]:
        """The loops and buffers of the function after its calls: parameters of those are what it gives them."""
        for inside in self.every:
            yield from inside.loops
            yield from (each for each in inside.buffers if inside is self.own or each.kind != "parameter")

    def doubts(self) -> None:
        """Marks the names that others are made of: `tile_1` is made of `tile`, `i_o` of `i`."""
        if not self.unknown:
            return
        known = {symbol.name: symbol for symbol in self._nameable()}
        known |= self.scope.names
        for word, start, end in self.unknown:
            at = word.rfind("_")
            while at > 0:
                symbol = known.get(word[:at])
                if symbol is not None:
                    symbol.doubt = symbol.doubt or (start, end)
                at = word.rfind("_", 0, at)
