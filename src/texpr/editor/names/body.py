"""The names of functions, combiners and instructions, and of what is in them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import assert_never

from texpr.editor.names.scopes import Scope, declared
from texpr.editor.names.symbols import Names, Symbol
from texpr.frontend import tree as t
from texpr.support.record import Mutable, field
from texpr.support.span import Span


class Inside(Mutable, eq=False):
    """What a schedule can name of a function: loops by index and by label, buffers, sizes; and the functions that it calls."""

    loops: list[Symbol] = field(default_factory=lambda: list[Symbol]())
    buffers: list[Symbol] = field(default_factory=lambda: list[Symbol]())
    sizes: list[Symbol] = field(default_factory=lambda: list[Symbol]())
    calls: set[str] = field(default_factory=lambda: set[str]())


class Items:
    """Reads the items of a file into `names`."""

    def __init__(self) -> None:
        self.names = Names()
        self.file: dict[str, Symbol] = {}
        self.params: dict[tuple[str, str], Symbol] = {}
        self.inside: dict[str, Inside] = {}
        self._keys: list[tuple[str, t.Ident]] = []
        self._now = Inside()

    def read(self, tree: t.Tree) -> None:
        """Every item that is no schedule: first their names, which may be used before they are declared."""
        whole = (0, len(tree.items[0].span.source.text)) if tree.items else (0, 0)
        for item in tree.items:
            if not isinstance(item, t.Schedule):
                kind = "function" if isinstance(item, t.Fn) else "combiner" if isinstance(item, t.Combine) else "instruction"
                made = declared(item.name, kind, item.span, whole)
                self.names.symbols.append(made)
                self.file.setdefault(item.name.name, made)
        for item in tree.items:
            if not isinstance(item, t.Schedule):
                self._now = self.inside.setdefault(item.name.name, Inside())
                scope = Scope(self.names, item.name.name, item.span.end)
                self._params(scope, item)
                self._item(scope, item)
        for callee, key in self._keys:
            found = self.params.get((callee, key.name))
            if found is not None:
                found.places.append((key.span.start, key.span.end))

    def _params(self, scope: Scope, item: t.Fn | t.Combine | t.Instr) -> None:
        """Consts first, then sizes in the order in which shapes name them, then parameters."""
        for param in item.params:
            if isinstance(param, t.ConstParam):
                self._now.sizes.append(self._param(scope, item, param.name, "const", param.span))
        for param in item.params:
            for e in (*param.type.shape, *(param.stride or ())) if isinstance(param, t.Param) else ():
                for name in t.names_in(e):
                    if scope.find(name.name) is None:
                        self._now.sizes.append(scope.declare(name, "size", param.span, item.span.start))
                self._exp(scope, e)
        for param in item.params:
            if isinstance(param, t.Param):
                self._now.buffers.append(self._param(scope, item, param.name, "parameter", param.span))
            elif param.default is not None:
                self._exp(scope, param.default)

    def _param(self, scope: Scope, item: t.Fn | t.Combine | t.Instr, name: t.Ident, kind: str, span: Span) -> Symbol:
        made = scope.declare(name, kind, span, item.span.start)
        self.params.setdefault((item.name.name, name.name), made)
        return made

    def _item(self, scope: Scope, item: t.Fn | t.Combine | t.Instr) -> None:
        match item:
            case t.Fn():
                self._exps(scope, (e for result in item.results for e in result.shape))
                self._exps(scope, item.where)
                for clause in item.assumes:
                    scope.use(clause.name)
                    if isinstance(clause, t.AssumeRange):
                        self._exps(scope, (clause.lo, clause.hi))
                self._block(scope, item.body)
            case t.Combine():
                self._exp(scope, item.identity)
                self._block(scope, item.body)
            case t.Instr():
                for operand, _ in item.fragments:
                    scope.use(operand)
                self._block(scope, item.meaning)
                for param in item.params:
                    found = scope.find(param.name.name)
                    if found is not None and any(f"{{{param.name.name}" in text for _, text in item.asm):
                        found.doubt = (item.name.span.start, item.name.span.end)
            case _:
                assert_never(item)

    def _block(self, scope: Scope, body: Sequence[t.Statement]) -> None:
        for statement in body:
            self._statement(scope, statement)

    def _statement(self, scope: Scope, s: t.Statement) -> None:
        match s:
            case t.Loop():
                self._loop(scope, s)
            case t.StaticFor():
                self._exps(scope, (s.lo, s.hi))
                inner = scope.inner(s.span.end)
                inner.declare(s.index, "index", s.span, s.index.span.end)
                self._block(inner, s.body)
            case t.New() | t.Reg():
                self._exps(scope, (() if s.type is None else s.type.shape))
                self._exps(scope, () if s.value is None else (s.value,))
                self._now.buffers.append(scope.declare(s.name, "local" if isinstance(s, t.New) else "registers", s.span))
            case t.Let():
                self._exp(scope, s.value)
                for name in s.names:
                    scope.declare(name, "value", s.span)
            case t.Bind():
                self._exps(scope, (*s.targets, *s.values))
                if s.op is not None:
                    self._global(s.op)
            case t.If():
                self._exp(scope, s.condition)
                self._block(scope.inner(s.span.end), s.then)
                self._block(scope.inner(s.span.end), s.orelse)
            case t.Anchor():
                self._exp(scope, s.value)
            case t.CallStatement():
                self._exp(scope, s.call)
            case t.Asm():
                self._exps(scope, s.operands)
            case t.Instruct():
                self._global(s.name)
                self._exps(scope, s.operands)
                self._block(scope.inner(s.span.end), s.body)
            case t.Return():
                self._exps(scope, s.values)
            case _:
                assert_never(s)

    def _loop(self, scope: Scope, s: t.Loop) -> None:
        self._exp(scope, s.extent)
        for name in (*s.reduce, *s.scan):
            scope.use(name)
        for pragma in s.pragmas:
            for argument in pragma.args:
                if isinstance(argument.value, t.Word):
                    scope.use(t.Ident(argument.value.text, argument.value.span))
        inner = scope.inner(s.span.end)
        self._now.loops.append(inner.declare(s.index, "index", s.span, s.index.span.end))
        if s.label is not None:
            self._label(scope, s, s.label)
        self._block(inner, s.body)

    def _label(self, scope: Scope, s: t.Loop, label: str) -> None:
        """Declares a label, which has no span in the tree: it is the first of its text after the index."""
        at = s.span.source.text.find(f"'{label}", s.index.span.end) + 1
        if at:
            span = Span(s.span.source, at, at + len(label))
            made = declared(t.Ident(label, span), "label", s.span, (at, at), scope.owner)
            self.names.symbols.append(made)
            self._now.loops.append(made)

    def _exps(self, scope: Scope, exps: Iterable[t.Exp]) -> None:
        for e in exps:
            self._exp(scope, e)

    def _exp(self, scope: Scope, e: t.Exp) -> None:
        stack: list[t.Exp | t.Slice] = [e]
        while stack:
            node = stack.pop()
            if isinstance(node, t.Name):
                scope.use(node)
            elif isinstance(node, t.Call) and self._global(node.name):
                self._now.calls.add(node.name.name)
                self._keys += ((node.name.name, key) for key, _ in node.keys)
            stack.extend(t.parts(node))

    def _global(self, name: t.Ident) -> bool:
        """Notes a use of an item; whether it is one of the file."""
        found = self.file.get(name.name)
        if found is not None:
            found.places.append((name.span.start, name.span.end))
        return found is not None
