"""Parses the text of the steps form; the grammar is in `texpr.ir.steps.text`."""

from __future__ import annotations

import json
import re
from typing import ClassVar

from texpr.affine.expr import Expr, Sym
from texpr.ir import kernel as k
from texpr.ir import program as ir
from texpr.ir.instr import Instr
from texpr.ir.instr.text import read_instr
from texpr.ir.kernel.origin import Origin, Placed
from texpr.ir.kernel.parse import KernelParser, assume, declaration, fact
from texpr.ir.kernel.roles import role_of
from texpr.ir.operation import Agent, Group
from texpr.ir.program.updates import Accumulator, accumulators
from texpr.ir.steps import (
    Along,
    AtBarrier,
    Branch,
    Completion,
    Dealt,
    InGroup,
    Loop,
    Node,
    Part,
    Proxy,
    Reduction,
    Step,
    Steps,
    Touch,
    Vectors,
)
from texpr.ir.steps.digits import Digit
from texpr.ir.steps.place import Parts, Place, RegisterLayout
from texpr.ir.steps.statements import StatementParser
from texpr.ir.steps.threads import Threads
from texpr.ir.steps.work import Decide, End, Issue, Middle, Order, Partial, Points, Run, Spread, Together, Total, Work
from texpr.ir.value import Buffer, Ref
from texpr.ir.value.parse import ValueParser, dtype, index, index_list, integer_list, named, separated
from texpr.ir.value.scanner import Scanner
from texpr.isa.levels import WARP
from texpr.support.record import replace
from texpr.support.span import Span

_PLAIN: dict[str, Work] = {"run": Run(), "points": Points(), "spread": Spread()}


def parse_steps(text: str, name: str = "<steps>") -> Steps:
    """The form of `text`. Raises E0581 if the text is none."""
    return _Parser(_Scanner(text, name, Origin(name))).steps()


class _Scanner(Placed):
    """The scanner of kernels, with the marks of loops."""

    pattern: ClassVar[re.Pattern[str]] = re.compile(
        r"""
          (?P<space>  (?: \s+ | --[^\n]* )+ )
        | (?P<name>   [^\W\d][\w']* )
        | (?P<number> \d+ (?: \.\d+ )? (?: [eE][+-]?\d+ )? )
        | (?P<string> "(?: [^"\\\n] | \\. )*" )
        | (?P<mark>   \.\. | [=!<>]= | [][(){}<>=+*/%,:;.^|\#-] )
        """,
        re.VERBOSE,
    )


class _Parser:
    """`machine`: the memory that operations name; `values`: the memory that statements name, locals included."""

    def __init__(self, scan: Scanner):
        self.scan = scan
        self.machine = KernelParser(scan, {})
        self.values = ValueParser(scan, {}, {})
        self.combiners: dict[str, ir.Combiner] = {}
        self.statements = StatementParser(self.values, self.combiners)
        self.shares: dict[Sym, ir.Par] = {}

    def steps(self) -> Steps:
        """Parses the whole text as a form."""
        scan, start = self.scan, self.scan.next.start
        scan.expect("steps")
        name = scan.name()
        scan.expect("of")
        function, span = scan.name(), scan.span(start)
        head = _Head(self, name, function, span)
        while not scan.accept("{"):
            head.clause()
        begin = self._nodes("iteration")
        scan.expect("{")
        body, end = self._nodes("}"), self._nodes("}")
        if scan.next.kind != "end":
            scan.fail(f"expected the end of the text, found `{scan.next.text}`")
        return head.made(begin, body, end)

    def _nodes(self, last: str) -> tuple[Node, ...]:
        found: list[Node] = []
        while not self.scan.accept(last):
            found.append(self._node(found))
        return tuple(found)

    def _node(self, before: list[Node]) -> Node:
        scan, start = self.scan, self.scan.next.start
        if scan.accept("repeat"):
            loop = self.statements.loop()
            if not isinstance(loop, ir.Seq):
                scan.reject("a loop that all threads run together is a `seq`")
            span = scan.span(start)
            scan.expect("{")
            return Loop(replace(loop, span=span), self._nodes("}"))
        if scan.accept("role"):
            role = role_of(scan)
            scan.expect("{")
            return Part(role, self._nodes("}"))
        if scan.accept("choose"):
            decided = named(scan)
            test = next((step.stmt for step in reversed(before) if isinstance(step, Step) and _decides(step, decided)), None)
            if not isinstance(test, ir.If):
                scan.reject(f"`{decided}` is not decided before")
            scan.expect("{")
            then = self._nodes("}")
            orelse: tuple[Node, ...] = ()
            if scan.accept("else"):
                scan.expect("{")
                orelse = self._nodes("}")
            return Branch(test, decided, then, orelse)
        return self._step(self._threads(), start)

    def _threads(self) -> Threads:
        scan = self.scan
        match scan.name("threads"):
            case "all":
                return Threads()
            case "thread":
                first = scan.integer()
                return Threads(first, first + 1)
            case "threads":
                first = scan.integer()
                scan.expect("..")
                end = scan.integer() if scan.next.kind == "number" else None
                return Threads(first, end, scan.integer() if scan.accept("by") else 1)
            case other:
                scan.reject(f"`{other}` begins no step")

    def _step(self, threads: Threads, start: int) -> Step:
        scan = self.scan
        word = scan.name("a kind of work")
        match word:
            case "order":
                return Step(threads, Order(self._operations()))
            case "together":
                return Step(threads, Together(self._operations()))
            case "end":
                return Step(threads, End())
            case "decide":
                return self._decide(threads, start)
            case "middle" | "total":
                return self._join(threads, Middle if word == "middle" else Total)
            case "partial":
                each = scan.accept("each")
                step = self._effects(Step(threads, Partial((), each)))
                (par,) = stmts = self.statements.block()
                if not isinstance(par, ir.Par):
                    scan.reject("a share of a reduction is that of a `par`")
                self.shares[par.sym] = par
                return replace(step, work=Partial(_accumulators(par), each), stmts=stmts)
            case "issue":
                scan.expect("by")
                scan.expect("engine")
                step = self._effects(Step(threads, Issue(), agent=Agent.ENGINE))
                stmts = self.statements.block()
                scan.expect("by")
                return replace(step, work=Issue(self._operations()), stmts=stmts)
            case _ if word in _PLAIN:
                step = self._effects(Step(threads, _PLAIN[word]))
                return replace(step, stmts=self.statements.block())
            case other:
                scan.reject(f"`{other}` is no kind of work")

    def _decide(self, threads: Threads, start: int) -> Step:
        symbol, alike = named(self.scan), self.scan.accept("alike")
        step = self._effects(Step(threads, Decide(symbol, alike)))
        self.scan.expect("if")
        condition = self.values.value()
        return replace(step, stmts=(ir.If(condition, (), (), self.scan.span(start)),))

    def _join(self, threads: Threads, kind: type[Middle | Total]) -> Step:
        symbol = named(self.scan)
        par = self.shares.get(symbol)
        if par is None:
            self.scan.reject(f"no share of a reduction over `{symbol}` comes before")
        each = self.scan.accept("each")
        return self._effects(Step(threads, kind(_accumulators(par), each), (par,)))

    def _operations(self) -> tuple[k.Stmt, ...]:
        self.scan.expect("{")
        return self.machine.rest_of_block()

    def _effects(self, step: Step) -> Step:
        scan, found = self.scan, dict[str, tuple[Touch, ...]](reads=(), writes=())
        completion: Completion | None = None
        while scan.sees("reads", "writes", "completes"):
            word = scan.take().text
            if word == "completes":
                completion = self._completion()
                continue
            buffers = separated(scan, lambda _: self.values.buffer())
            proxy = self._proxy() if scan.accept("through") else Proxy.GENERIC
            found[word] = (*found[word], *(Touch(buffer, proxy) for buffer in buffers))
        return replace(step, reads=found["reads"], writes=found["writes"], completion=completion)

    def _proxy(self) -> Proxy:
        name = self.scan.name("a proxy")
        found = next((proxy for proxy in Proxy if proxy.value == name), None)
        return found if found is not None else self.scan.reject(f"`{name}` is no proxy")

    def _completion(self) -> Completion:
        scan = self.scan
        if scan.accept("at"):
            return AtBarrier(self.machine.values.buffer())
        scan.expect("group")
        name = scan.name("a kind of group")
        found = next((group for group in Group if group.name.lower() == name), None)
        return InGroup(found) if found is not None else scan.reject(f"`{name}` is no kind of group")


def _decides(step: Step, symbol: Sym) -> bool:
    return isinstance(step.work, Decide) and step.work.symbol == symbol


def _accumulators(par: ir.Par) -> tuple[Accumulator, ...]:
    return accumulators(par.body, frozenset(par.reduce))


class _Head:
    """The clauses of a form, in any order."""

    def __init__(self, outer: _Parser, name: str, function: str, span: Span):
        self.scan, self.machine, self.values = outer.scan, outer.machine, outer.values
        self.statements, self.combiners = outer.statements, outer.combiners
        self.name, self.function, self.span = name, function, span
        self.numbers = {"threads": 1, "team": 0, "warp": WARP, "blocks": 0, "budget": 0}
        self.vectors: Vectors | None = None
        self.avoid: tuple[str, ...] = ()
        self.buffers, self.sizes, self.hosts = list[Buffer](), list[Sym](), list[tuple[Sym, Expr]]()
        self.where, self.assumes, self.lets = list[ir.Compare](), list[ir.Assume](), list[ir.Let]()
        self.axes, self.arrays, self.maps = list[k.Axis](), list[k.Array](), list[k.TensorMap]()
        self.coordinates: tuple[k.Stmt, ...] = ()
        self.instrs = list[Instr]()
        self.grid, self.loops, self.digits = list[Along](), list[Dealt](), tuple[tuple[int, int], ...]()
        self.places, self.unrolled, self.reductions = list[tuple[Buffer, Place]](), tuple[Sym, ...](), list[Reduction]()

    def made(self, begin: tuple[Node, ...], body: tuple[Node, ...], end: tuple[Node, ...]) -> Steps:
        """The form of these clauses and nodes."""
        numbers = self.numbers
        return Steps(
            self.name, self.function, tuple(self.buffers), tuple(self.sizes), tuple(self.hosts), tuple(self.where),
            tuple(self.assumes), tuple(self.lets), numbers["threads"], numbers["team"] or numbers["threads"],
            tuple(self.axes), self.coordinates, tuple(self.grid), tuple(self.loops), self.digits, tuple(self.places),
            tuple(self.arrays), self.unrolled, tuple(self.maps), tuple(self.reductions), begin, body, end,
            numbers["warp"], numbers["blocks"], self.avoid, self.vectors, self.span, tuple(self.instrs),
            numbers["budget"],
        )  # fmt: skip

    def clause(self) -> None:
        """Parses one clause."""
        scan, start = self.scan, self.scan.next.start
        match scan.name("a clause of steps"):
            case "buffer":
                self.buffers.append(self._memory("buffer"))
            case "size":
                self.sizes.extend(separated(scan, named))
            case "avoid":
                self.avoid = tuple(separated(scan, Scanner.name))
            case "host":
                symbol = named(scan)
                scan.expect("<")
                self.hosts.append((symbol, index(scan)))
            case "where":
                self.where.append(fact(scan))
            case "assume":
                self.assumes.append(assume(scan, self.machine.values.buffers))
            case "let":
                scan.position -= 1
                self.lets.append(self.statements.let())
            case "combine":
                self._combiner(start)
            case "threads" | "team" | "warp" | "blocks" | "budget" as word:
                self.numbers[word] = scan.integer()
            case "vectors":
                lanes = scan.integer()
                scan.expect("line")
                self.vectors = Vectors(lanes, scan.integer())
            case "axis":
                self.axes.append(self.machine.axis())
            case "array":
                self.arrays.append(array := self.machine.array())
                if array.barrier:  # statements name those of the text
                    self.values.buffers[array.buffer.name] = array.buffer
            case "map":
                self.maps.append(self.machine.map(self.maps))
            case "instr":
                self.instrs.append(read_instr(scan))
            case "coordinates":
                scan.expect("{")
                self.coordinates = self.machine.rest_of_block()
            case other:
                self._mapped(other, start)

    def _mapped(self, word: str, start: int) -> None:
        """Parses a clause about loops or locals."""
        scan = self.scan
        match word:
            case "along":
                self.grid.append(self._along(start))
            case "dealt":
                symbol = named(scan)
                digits = self._digits() if scan.accept("by") else ()
                self.loops.append(Dealt(symbol, digits, scan.accept("meets")))
            case "digits":
                self.digits = tuple((digit.radix, digit.stride) for digit in self._digits())
            case "unroll":
                self.unrolled = tuple(separated(scan, named))
            case "place":
                self._place()
            case "local":
                buffer = declaration(scan, "array")
                self.values.buffers[buffer.name] = buffer
            case "reduction":
                self.reductions.append(self._reduction())
            case other:
                scan.reject(f"`{other}` begins no clause of steps")

    def _memory(self, clause: str) -> Buffer:
        """Global memory: its name is the same in operations and statements."""
        buffer = self.machine.declared(clause)
        self.values.buffers[buffer.name] = buffer
        return buffer

    def _combiner(self, start: int) -> None:
        scan, name = self.scan, self.scan.name()
        scan.expect("(")
        a, b = separated(scan, named)
        scan.expect(")")
        scan.expect(":")
        of = dtype(scan)
        values = ValueParser(scan, {}, {a: of, b: of})
        scan.expect("identity")
        identity = values.value()
        scan.expect("=")
        self.combiners[name] = ir.Combiner(name, a, b, of, identity, values.value(), scan.span(start))

    def _along(self, start: int) -> Along:
        scan, loop = self.scan, self.statements.loop()
        if not isinstance(loop, ir.Par):
            scan.reject("a loop of the grid is a `par`")
        scan.expect("block")
        block = named(scan)
        tile = scan.integer() if scan.accept("tile") else 1
        digits = self._digits() if scan.accept("by") else ()
        lane, ragged = scan.accept("lane"), scan.accept("ragged")
        return Along(replace(loop, span=scan.span(start)), block, tile, digits, lane, ragged)

    def _digits(self) -> tuple[Digit, ...]:
        return tuple(separated(self.scan, _digit))

    def _place(self) -> None:
        scan, buffer = self.scan, declaration(self.scan, "array")
        if scan.accept("register"):
            place = Place(k.Space.LOCAL, buffer, register=named(scan))
        else:
            scan.expect("in")
            home = self.machine.values.buffer()
            space = next((array.space for array in self.arrays if array.buffer is home), k.Space.GLOBAL)
            place = self._changes(Place(space, home))
        reason = str(json.loads(scan.take().text)) if scan.next.kind == "string" else ""
        self.values.buffers[buffer.name] = buffer
        self.places.append((buffer, replace(place, reason=reason)))

    def _changes(self, place: Place) -> Place:
        scan = self.scan
        if scan.accept("leading"):
            place = replace(place, leading=index_list(scan))
        if scan.accept("trailing"):
            place = replace(place, trailing=index_list(scan))
        if scan.accept("slots"):
            place = replace(place, slots=integer_list(scan))
        if scan.accept("parts"):
            place = replace(place, parts=self._parts())
        if scan.accept("dealt"):
            names = index_list(scan)
            scan.expect("thread")
            thread = index(scan)
            scan.expect("slots")
            slots = index_list(scan)
            scan.expect("of")
            symbols = tuple(name.as_sym or scan.reject("expected names of subscripts") for name in names)
            place = replace(place, dealt=RegisterLayout(symbols, thread, slots, integer_list(scan)))
        return place

    def _parts(self) -> Parts:
        scan = self.scan
        dim = scan.integer() if scan.accept("dim") else None
        scan.expect("run")
        run = scan.integer()
        scan.expect("of")
        blocks = scan.integer()
        scan.expect("rank")
        rank, known = named(scan), dict[tuple[Expr, ...], tuple[Expr, ...]]()
        if scan.accept("known"):
            while scan.sees("["):
                own = index_list(scan)
                scan.expect("is")
                known[own] = index_list(scan)
        return Parts(dim, run, blocks, rank, known)

    def _reduction(self) -> Reduction:
        symbol = named(self.scan)
        own, warps, blocks = list[tuple[Ref, ...]](), list[tuple[Buffer, ...]](), list[tuple[Buffer, ...]]()
        while True:
            self.scan.expect("own")
            own.append(tuple(separated(self.scan, lambda _: self.values.ref())))
            for word, found in (("warps", warps), ("blocks", blocks)):
                if self.scan.accept(word):
                    found.append(tuple(separated(self.scan, lambda _: self.machine.values.buffer())))
            if not self.scan.accept(";"):
                return Reduction(symbol, tuple(own), tuple(warps), tuple(blocks))


def _digit(scan: Scanner) -> Digit:
    radix = scan.integer()
    scan.expect(":")
    stride = scan.integer()
    return Digit(radix, stride, scan.integer() if scan.accept("*") else 1)
