"""Parses the text of a plan or a kernel; the grammar is in `texpr.ir.kernel.text`."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TypeVar

from texpr.affine.expr import ONE, ZERO, Sym
from texpr.ir import kernel as k
from texpr.ir.instr import Instr
from texpr.ir.instr.text import read_instr
from texpr.ir.kernel.operation_text import read_operation
from texpr.ir.kernel.roles import role_of
from texpr.ir.kernel.shared import USUAL_ALIGNMENT
from texpr.ir.kernel.text import USUAL_ROLE
from texpr.ir.program import Assume, Compare, Injective, InRange, Monotone
from texpr.ir.value import Buffer
from texpr.ir.value.parse import ValueParser, dtype, index, index_list, integer_list, named, separated
from texpr.ir.value.scanner import Scanner
from texpr.ir.value.structure import same
from texpr.isa.levels import WARP

_Item = TypeVar("_Item")
_COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")


def parse_plan(text: str, name: str = "<plan>") -> k.Plan:
    """The plan of `text`. Raises E0581 if the text is none."""
    return PlanParser(Scanner(text, name)).plan()


def parse_kernel(text: str, name: str = "<kernel>") -> k.Kernel:
    """The kernel of `text`. Raises E0581 if the text is none."""
    scan = Scanner(text, name)
    found = KernelParser(scan, {}).kernel()
    _expect_end(scan)
    return found


def _expect_end(scan: Scanner) -> None:
    if scan.next.kind != "end":
        scan.fail(f"expected the end of the text, found `{scan.next.text}`")


def declaration(scan: Scanner, clause: str) -> Buffer:
    """Parses the declaration of a buffer in a clause."""
    start = scan.next.start
    name = scan.name()
    scan.expect(":")
    of, shape = dtype(scan), index_list(scan)
    strides = index_list(scan) if scan.accept("strides") else None
    align = scan.integer() if scan.accept("align") else None
    role = scan.name("a role") if scan.accept("role") else USUAL_ROLE[clause]
    return Buffer(name, of, shape, role, strides, align, scan.span(start))


def fact(scan: Scanner) -> Compare:
    """Parses a comparison of index expressions."""
    start = scan.next.start
    left = index(scan)
    if not scan.sees(*_COMPARISONS):
        scan.fail(f"expected a comparison, found `{scan.next.text}`")
    op = scan.take().text
    right = index(scan)
    return Compare(op, left, right, scan.span(start))


def assume(scan: Scanner, buffers: dict[str, Buffer]) -> Assume:
    """Parses an assumption about the data in one of `buffers`."""
    start, values = scan.next.start, ValueParser(scan, buffers, {})
    if scan.sees("injective", "monotone") and scan.second.text == "(":
        kind = Injective if scan.take().text == "injective" else Monotone
        scan.expect("(")
        buffer = values.buffer()
        scan.expect(")")
        return kind(buffer, scan.span(start))
    buffer = values.buffer()
    scan.expect("in")
    lo = index(scan)
    scan.expect("..")
    hi = index(scan)
    return InRange(buffer, lo, hi, scan.span(start))


class PlanParser:
    """Parses one plan. Steps name kernels that follow them in the text, so kernels are parsed first."""

    def __init__(self, scan: Scanner):
        self.scan = scan
        self.buffers: dict[str, Buffer] = {}
        self.kernels: dict[str, k.Kernel] = {}

    def plan(self) -> k.Plan:
        """Parses the whole text as a plan."""
        scan, start = self.scan, self.scan.next.start
        scan.expect("plan")
        name = scan.name()
        params, results, workspace, sizes = list[Buffer](), list[Buffer](), list[Buffer](), list[Sym]()
        fixed, assumes = list[tuple[Sym, int]](), list[Assume]()
        requires, bounds = list[Compare](), list[Compare]()
        while not scan.accept("{"):
            match scan.name("a clause of a plan"):
                case "param":
                    params.append(self._declared("param"))
                case "result":
                    shared = self.buffers.get(scan.next.text) if scan.second.text != ":" else None
                    results.append(self._declared("result") if shared is None else shared)
                    if shared is not None:
                        scan.take()
                case "workspace":
                    workspace.append(self._declared("workspace"))
                case "size":
                    sizes.extend(separated(scan, named))
                case "fix":
                    fixed.append(self._fix())
                case "require":
                    requires.append(fact(self.scan))
                case "bound":
                    bounds.append(fact(self.scan))
                case "assume":
                    assumes.append(assume(self.scan, self.buffers))
                case other:
                    scan.reject(f"`{other}` begins no clause of a plan")
        steps_at = scan.position
        scan.skip_block()
        span = scan.span(start)
        while scan.sees("kernel"):
            kernel = KernelParser(scan, self.buffers).kernel()
            if kernel.name in self.kernels:
                scan.reject(f"kernel `{kernel.name}` is there already")
            self.kernels[kernel.name] = kernel
        _expect_end(scan)
        scan.position = steps_at
        return k.Plan(
            name, tuple(params), tuple(results), tuple(sizes), tuple(fixed), tuple(workspace), tuple(requires),
            tuple(assumes), self._steps(), span, tuple(bounds),
        )  # fmt: skip

    def _declared(self, clause: str) -> Buffer:
        buffer = declaration(self.scan, clause)
        self.buffers[buffer.name] = buffer
        return buffer

    def _fix(self) -> tuple[Sym, int]:
        symbol = named(self.scan)
        self.scan.expect("=")
        return symbol, self.scan.integer()

    def _steps(self) -> tuple[k.HostStep, ...]:
        found: list[k.HostStep] = []
        while not self.scan.accept("}"):
            found.append(self._step())
        return tuple(found)

    def _step(self) -> k.HostStep:
        scan = self.scan
        match scan.name("a step"):
            case "launch":
                kernel = self.kernels.get(scan.next.text)
                if kernel is None:
                    scan.fail(f"there is no kernel `{scan.next.text}`")
                scan.take()
                return k.Launch(kernel, scan.accept("dependent"))
            case "loop":
                symbol = named(scan)
                scan.expect("<")
                extent = index(scan)
                together = self._together() if scan.accept("together") else None
                scan.expect("{")
                return k.HostLoop(symbol, extent, self._steps(), together)
            case "if":
                facts = [fact(self.scan)]
                while scan.accept("and"):
                    facts.append(fact(self.scan))
                scan.expect("{")
                return k.HostIf(tuple(facts), self._steps())
            case other:
                scan.reject(f"`{other}` begins no step")

    def _together(self) -> k.Together:
        name = self.scan.name()
        self.scan.expect("in")
        return k.Together(name, ValueParser(self.scan, self.buffers, {}).buffer())


class KernelParser:
    """Parses a kernel, or parts of one. `outside`: buffers of the plan, by name."""

    def __init__(self, scan: Scanner, outside: dict[str, Buffer]):
        self.scan = scan
        self.outside = outside
        self.values = ValueParser(scan, {}, {})

    def kernel(self) -> k.Kernel:
        scan, start = self.scan, self.scan.next.start
        scan.expect("kernel")
        name = scan.name()
        axes, buffers, scalars = list[k.Axis](), list[Buffer](), list[Buffer]()
        sizes, arrays, written, min_blocks, warp = list[Sym](), list[k.Array](), list[str](), 0, WARP
        maps, instrs = list[k.TensorMap](), list[Instr]()
        while not scan.accept("{"):
            match scan.name("a clause of a kernel"):
                case "buffer":
                    buffers.append(self.declared("buffer"))
                case "scalar":
                    scalars.append(self.declared("scalar"))
                case "size":
                    sizes.extend(separated(scan, named))
                case "writes":
                    written.extend(separated(scan, Scanner.name))
                case "blocks":
                    min_blocks = scan.integer()
                case "warp":
                    warp = scan.integer()
                case "axis":
                    axes.append(self.axis())
                case "array":
                    arrays.append(self.array())
                case "map":
                    maps.append(self.map(maps))
                case "instr":
                    instrs.append(read_instr(scan))
                case other:
                    scan.reject(f"`{other}` begins no clause of a kernel")
        body = self.rest_of_block()
        return k.Kernel(
            name, tuple(axes), tuple(buffers), tuple(scalars), tuple(sizes), tuple(arrays), body, frozenset(written),
            scan.span(start), min_blocks, tuple(maps), warp, tuple(instrs),
        )  # fmt: skip

    def declared(self, clause: str) -> Buffer:
        """Parses a declaration, and adds the buffer to those in scope."""
        buffer = declaration(self.scan, clause) if clause == "array" else self._known(declaration(self.scan, clause))
        self.values.buffers[buffer.name] = buffer
        return buffer

    def _known(self, buffer: Buffer) -> Buffer:
        """The plan's buffer of that name, if there is one, so that both are the same object."""
        outer = self.outside.get(buffer.name)
        return outer if outer is not None and same(outer, buffer) else buffer

    def _level(self) -> k.Level:
        try:
            level = k.Level(self.scan.next.text)
        except ValueError:
            self.scan.fail(f"`{self.scan.next.text}` is no level")
        self.scan.take()
        return level

    def axis(self) -> k.Axis:
        """Parses a hardware coordinate."""
        scan = self.scan
        level = self._level()
        dim = scan.name() if scan.accept(".") else "x"
        symbol = named(scan)
        scan.expect("<")
        extent = index(scan)
        return k.Axis(symbol, level, extent, dim, named(scan) if scan.accept("base") else None)

    def array(self) -> k.Array:
        """Parses an array of the kernel."""
        try:
            space = k.Space(self.scan.next.text)
        except ValueError:
            self.scan.fail(f"`{self.scan.next.text}` is no space")
        self.scan.take()
        buffer = self.declared("array")
        align = self.scan.integer() if self.scan.accept("at") else USUAL_ALIGNMENT
        start = self.scan.integer() if self.scan.accept("from") else None
        barrier = self.scan.accept("barriers")
        halved = self.scan.integer() if self.scan.accept("halved") else None
        reason = str(json.loads(self.scan.take().text)) if self.scan.next.kind == "string" else ""
        return k.Array(buffer, space, reason, align, barrier, start, halved)

    def map(self, earlier: list[k.TensorMap]) -> k.TensorMap:
        """Parses a map, of a buffer that is declared by one of the `earlier` maps or here."""
        scan, start = self.scan, self.scan.next.start
        name = scan.name()
        scan.expect("of")
        if scan.second.text == ":":
            buffer = self._known(declaration(scan, "map"))
        else:
            mapped = {map.buffer.name: map.buffer for map in earlier}
            buffer = mapped.get(scan.next.text) or self.values.buffer()
            if buffer.name in mapped:
                scan.take()
        offset = index(scan) if scan.accept("from") else ZERO
        sizes, strides = self._after("sizes", index_list), self._after("strides", index_list)
        box, steps = self._after("box", integer_list), self._after("steps", integer_list)
        lower = integer_list(scan) if scan.accept("lower") else ()
        corners = tuple(zip(lower, self._after("upper", integer_list), strict=True)) if lower else ()
        swizzle = scan.integer() if scan.accept("swizzle") else 0
        interleave = scan.integer() if scan.accept("interleave") else 0
        fill = scan.name() if scan.accept("fill") else "zero"
        kind = scan.name() if scan.accept("as") else ""
        return k.TensorMap(
            name, buffer, sizes, strides, box, steps, swizzle, interleave, fill, offset, kind, corners,
            scan.span(start),
        )  # fmt: skip

    def _after(self, word: str, read: Callable[[Scanner], _Item]) -> _Item:
        self.scan.expect(word)
        return read(self.scan)

    def _block(self) -> tuple[k.Stmt, ...]:
        self.scan.expect("{")
        return self.rest_of_block()

    def rest_of_block(self) -> tuple[k.Stmt, ...]:
        """The statements up to the brace that closes a block, after its opening brace."""
        found: list[k.Stmt] = []
        while not self.scan.accept("}"):
            found.append(self._stmt())
        return tuple(found)

    def _stmt(self) -> k.Stmt:
        """A word followed by `=` or `[` is a name, even if it is a keyword."""
        named = self.scan.second.text in ("=", "[")
        match self.scan.next.text:
            case "for" if not named:
                return self._for()
            case "if" if not named:
                return self._if()
            case _:
                return read_operation(self.values)

    def _for(self) -> k.For:
        scan, start = self.scan, self.scan.take().start
        symbol = named(scan)
        scan.expect("in")
        lo = index(scan)
        scan.expect("..")
        hi = index(scan)
        step = index(scan) if scan.accept("by") else ONE
        kind = scan.take().text if scan.sees("unroll", "simd") else "serial"
        factor = scan.integer() if kind == "unroll" and scan.next.kind == "number" else 0
        reductions: list[tuple[Sym, str]] = []
        if scan.accept("reduce"):
            scan.expect("(")
            reductions = separated(scan, lambda scan: (named(scan), scan.name("an operation")))
            scan.expect(")")
        first, last = (scan.integer(), scan.integer()) if scan.accept("apart") else (0, 0)
        uniform = scan.accept("uniform")
        span = scan.span(start)
        return k.For(symbol, lo, hi, self._block(), step, kind, tuple(reductions), uniform, span, factor, first, last)

    def _if(self) -> k.If:
        scan, start = self.scan, self.scan.take().start
        condition = self.values.value()
        uniform = scan.accept("uniform")
        role = role_of(scan) if scan.accept("role") else None
        span = scan.span(start)
        then = self._block()
        return k.If(condition, then, self._block() if scan.accept("else") else (), uniform, span, role)
