"""Instructions with fragments, each as a function: under nvcc its template, under the emulator its meaning.

TX_FN void tx_instr_mma(unsigned lanes, A &a, int a0, B &b, int b0, C &c, int c0) {
#if defined(__CUDACC__)
    asm volatile("mma.sync… {%0, %1, %2, %3}, …" : "+f"(c[c0]), … : "r"(tx_packed<unsigned>(a[a0], a[a0 + 1])), …);
#else
        … for i, j, k: tx_c[i * 8 + j] += tx_a[i * 16 + k] * tx_b[k * 8 + j], over the registers of all lanes
#endif
}
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod

from texpr.affine.expr import ONE, ZERO, Expr, Sym, expr
from texpr.backends.c.body import INDENT, Body, Dialect, signature
from texpr.backends.c.index import index_text
from texpr.backends.c.scope import Scope
from texpr.backends.c.text import comment
from texpr.backends.c.types import C_NAMES
from texpr.ir import kernel as k
from texpr.ir.instr import ADDRESS, STORED, Give, Instr, Operand, Step, Turn
from texpr.ir.instr.descriptor import along, is_summed
from texpr.ir.instr.fragment import Fragment
from texpr.ir.instr.registers import MASK, PLACE, Packing, packed, places
from texpr.ir.ops.collective import function_name
from texpr.ir.program.updates import combine
from texpr.ir.value import Buffer, Index, Load, Op, walk
from texpr.ir.value.structure import same
from texpr.ir.value.types import BOOL, F8E8M0, I32
from texpr.isa.instructions.tcgen05 import PAIR
from texpr.isa.target import Target
from texpr.support.diagnostic import CompilerBug

LANE = Sym("lane")
"""The number of a lane in its group."""

LAZY = frozenset({"select", "and", "or"})
"""Operations that C++ evaluates only a part of: which elements are read depends on data."""

_BITS = {"r": "uint32_t", "h": "uint16_t", "l": "uint64_t", "f": "float", "d": "double"}
"""The C type of a register by its constraint (CUDA C++, "Inline PTX Assembly": constraints)."""


def instr_lines(instr: Instr, target: Target | None, dialect: Dialect) -> Iterator[str]:
    """The function of an instruction. Raises CompilerBug if `target` lacks it; without a target it has the first template."""
    template = instr.template(target) if target is not None else next((text for _, text in instr.asm), None)
    if template is None:
        raise CompilerBug(f"{instr.name} has no template for {target}")
    names = [operand.name for operand in instr.operands]
    described = {operand.name for operand in instr.operands if operand.is_described}
    types = ", ".join(f"class T_{name}{f', class H_{name}' if name in described else ''}" for name in names)
    given = [f"T_{name} &{name}, int {name}_at{f', H_{name} {name}_how' if name in described else ''}" for name in names]
    yield f"// {comment(f'{instr.name}, by {instr.lanes} lanes together')}"
    yield f"template <{types}>"
    yield from signature(f"TX_FN void {function_name(instr.name)}", ["unsigned lanes", *given])
    yield "#if defined(__CUDACC__)"
    yield from (INDENT + line for part in _assembler(instr, template) for line in part.split("\n"))
    yield "#else"
    emulated = _emulated if instr.group is None else launched if instr.is_alone else started
    yield from (INDENT + line for line in emulated(instr, dialect))
    yield "#endif"
    yield "}"


class _Registers:
    """The machine registers of an operand, as C text and as numbers in the template."""

    def __init__(self, operand: Operand, first: int):
        self.operand, self.packing = operand, packed(operand)
        self.numbers = tuple(range(first, first + self.packing.count))

    def text(self, place: int | None) -> str:
        """The placeholder's text: `{%0, %1}`, or one register."""
        if place is not None:
            return f"%{self.numbers[place]}"
        if len(self.numbers) == 1:
            return f"%{self.numbers[0]}"
        return "{" + ", ".join(f"%{number}" for number in self.numbers) + "}"

    def elements(self, at: int) -> list[str]:
        """The elements in one register."""
        per, name = self.packing.per, self.operand.name
        return [f"{name}[{name}_at + {at * per + each}]" for each in range(per)]


def _assembler(instr: Instr, template: str) -> Iterator[str]:
    written = [operand for operand in instr.operands if operand.is_written and not (operand.columns or operand.is_shared)]
    read = [operand for operand in instr.operands if operand not in written]
    found, first = dict[str, _Registers](), 0
    for operand in (*written, *read):
        found[operand.name] = _Registers(operand, first)
        first += found[operand.name].packing.count
    named = places(instr, template)
    texts = {name: found[place.operand.name].text(place.register) for name, place in named.items()}
    texts.setdefault(MASK, f"%{first}")
    parts = enumerate(PLACE.split(template))
    text = "".join(part.replace("%", "%%") if at % 2 == 0 else texts[part] for at, part in parts)
    masked = MASK not in named and f"{{{MASK}}}" in template
    for operand in written:
        yield from _held(found[operand.name])
    gap = f",\n{INDENT}{INDENT}"
    outs = [", ".join(_out(each, at) for at in range(each.packing.count)) for each in (found[o.name] for o in written)]
    ins = [_in(instr, each, at) for each in (found[o.name] for o in read) for at in range(each.packing.count)]
    ins += ['"r"(lanes)'] if masked else []
    if instr.is_pair:
        yield "if (!tx_leads_pair()) return;"
    memory = instr.effect or any(operand.is_shared or operand.columns for operand in instr.operands)
    clobbered = ' : "memory"' if memory else ""
    yield f"asm volatile({_quoted(text)}"
    yield f"{INDENT}: {gap.join(outs)}"
    yield f"{INDENT}: {gap.join(ins)}{clobbered}"
    yield ");"
    for operand in written:
        yield from _put_back(found[operand.name])
    yield "(void)lanes;"


_PLAIN = frozenset(" !#$%&'()*+,-./0123456789:;<=>@ABCDEFGHIJKLMNOPQRSTUVWXYZ[]^_`abcdefghijklmnopqrstuvwxyz{|}~")


def _quoted(text: str) -> str:
    """A template as a C string literal: characters other than plain printable ASCII are escaped as numbers."""
    return '"' + "".join(char if char in _PLAIN else "".join(f"\\{byte:03o}" for byte in char.encode()) for char in text) + '"'


def _name(registers: _Registers, at: int) -> str:
    return f"{registers.operand.name}_{at}"


def _held(registers: _Registers) -> Iterator[str]:
    """Declarations of local variables for the registers that are written."""
    for at in range(registers.packing.count):
        first = _packed(registers.packing, registers.elements(at)) if registers.operand.access == "update" else ""
        yield f"{_BITS[registers.packing.constraint]} {_name(registers, at)}{f' = {first}' if first else ''};"


def _packed(found: Packing, elements: list[str]) -> str:
    return f"tx_packed<{_BITS[found.constraint]}>({', '.join(elements)})"


def _out(registers: _Registers, at: int) -> str:
    sign = "+" if registers.operand.access == "update" else "="
    return f'"{sign}{registers.packing.constraint}"({_name(registers, at)})'


def _in(instr: Instr, registers: _Registers, at: int) -> str:
    name = registers.operand.name
    if registers.operand.columns:
        return f'"r"({"tx_column" if instr.is_alone else "tx_own_column"}({name}, {name}_at))'
    if registers.operand.is_described:
        return f'"l"({"tx_described_columns" if instr.is_alone else "tx_described"}(&{name}[0], {name}_at, {name}_how))'
    if registers.operand.is_address:
        return f'"r"((uint32_t)__cvta_generic_to_shared(&{name}[{name}_at]))'
    return f'"{registers.packing.constraint}"({_packed(registers.packing, registers.elements(at))})'


def _put_back(registers: _Registers) -> Iterator[str]:
    ctype = C_NAMES[registers.operand.dtype]
    for at in range(registers.packing.count):
        for part, element in enumerate(registers.elements(at)):
            yield f"{element} = tx_unpacked<{ctype}, {part}>({_name(registers, at)});"


def _emulated(instr: Instr, dialect: Dialect) -> Iterator[str]:
    """The meaning, with elements found in lanes and registers by the fragments."""
    scope = Scope.empty()
    for operand in instr.operands:
        yield from finder(operand)
    for operand in instr.operands:
        name, fragment = operand.name, operand.fragment
        scope, own = scope.name(operand.memory, f"held_{name}")
        if operand.columns:
            yield f"tx_emu::InColumns<{C_NAMES[operand.dtype]}, At_{name}> {own}({name}, {name}_at, {instr.lanes});"
            continue
        kind = "Stored" if operand.access == STORED else "Held"
        says = f", At_{name}::says((int)tx_emu::own_lane() % {instr.lanes})" if _is_said_again(operand) else ""
        typed = f"tx_emu::{kind}<{C_NAMES[operand.dtype]}, {fragment.registers}, At_{name}>"
        yield f"{typed} {own}({name}, {name}_at, {instr.lanes}, lanes{says});"
    scope, variable = scope.integer(LANE, (0, instr.lanes - 1))
    written = next((operand.name for operand in instr.operands if operand.is_written), None)
    if written is not None:
        yield f"int const {variable.text} = (int)held_{written}.lane;"
    if instr.copied > 1:
        yield f"for (int copy = 0; copy < {instr.copied}; ++copy) {{"
        yield from (
            f"{INDENT}held_{operand.name}.copy = (copy + (int)tx_emu::own_lane()) % {operand.fragment.copied};"
            for operand in instr.operands
            if not operand.is_address
        )
    yield from meaning_lines(instr, scope, dialect)
    if instr.copied > 1:
        yield "}"
    yield "tx_emu::done_together(lanes);"
    for operand in instr.operands:
        if operand.is_written and not operand.columns:
            yield f"held_{operand.name}.put_back({operand.name}, {operand.name}_at);"


def started(instr: Instr, dialect: Dialect) -> Iterator[str]:
    """What goes on by itself: the meaning, of a lane's own registers, of those that lanes lend, and of matrices, for later."""
    scope, registers = Scope.empty(), [operand for operand in instr.operands if operand.is_written]
    lent = [operand for operand in instr.operands if operand.access == "read"]
    if len(registers) != 1 or instr.copied > 1:
        raise CompilerBug(f"{instr.name} goes on by itself, and writes {len(registers)} operands in registers")
    (own,) = registers
    for operand in (own, *lent):
        yield from finder(operand)
    fields: list[str] = []
    for operand in instr.operands:
        name = operand.name
        scope, held = scope.name(operand.memory, f"held_{name}")
        if operand.is_described:
            fields.append(f"{_matrix(instr, operand)} {held};")
        elif operand in lent:
            fields.append(f"tx_emu::Lent<{C_NAMES[operand.dtype]}, At_{name}> {held};")
        else:
            fields.append(f"tx_emu::Own<{C_NAMES[operand.dtype]}, {operand.fragment.registers}, At_{name}> {held};")
    yield "struct Later final : tx_emu::Work {"
    yield from (INDENT + line for line in fields)
    yield f"{INDENT}void end() override {{ delete this; }}"
    if lent:
        borrowed = " ".join(f"held_{each.name}.all = lent[{at}];" for at, each in enumerate(lent))
        yield f"{INDENT}void borrow(void const *const *const *lent) override {{ {borrowed} }}"
    yield f"{INDENT}void run(void *registers) override {{"
    yield f"{INDENT}{INDENT}held_{own.name}.registers = static_cast<{C_NAMES[own.dtype]} *>(registers);"
    scope, variable = scope.integer(LANE, (0, instr.lanes - 1))
    yield f"{INDENT}{INDENT}int const {variable.text} = (int)held_{own.name}.lane;"
    yield from (f"{INDENT}{INDENT}{line}" for line in meaning_lines(instr, scope, dialect))
    yield f"{INDENT}}}"
    yield "};"
    yield "Later *later = new Later;"
    yield f"later->held_{own.name}.lane = tx_emu::own_thread() % {instr.lanes};"
    yield from (f"later->held_{each.name}.warp = later->held_{own.name}.lane / TX_WARP;" for each in lent)
    matrices = [operand.name for operand in instr.operands if operand.is_described]
    yield f"static std::vector<int> reads[{len(matrices)}][{instr.lanes}];"
    for at, name in enumerate(matrices):
        yield f"(void){name}_how;"
        yield f"later->held_{name}.begin({name}, {name}_at, reads[{at}][later->held_{own.name}.lane]);"
    count = own.fragment.registers
    held = ", ".join(f"later->held_{name}" for name in matrices)
    lazy = any(isinstance(node, Op) and node.name in LAZY for give in instr.gives for node in walk(give.value))
    yield f"tx_emu::learn_whole({held});" if lazy else f"tx_emu::learn<{C_NAMES[own.dtype]}, {count}>(*later, {held});"
    yield f"tx_emu::MatrixOrder const matrices[] = {{{', '.join(f'later->held_{name}.order()' for name in matrices)}}};"
    for each in lent:
        kind = f"tx_emu::Lending<{C_NAMES[each.dtype]}, {each.fragment.registers}>"
        yield f"{kind} lent_{each.name}({each.name}, {each.name}_at, lanes);"
    given = "".join(f", lent_{each.name}" for each in lent)
    yield f"tx_emu::start_work(lanes, later, {own.name}, {own.name}_at, {count}, matrices, {len(matrices)}{given});"


def launched(instr: Instr, dialect: Dialect) -> Iterator[str]:
    """What one thread starts for all lanes: the meaning, of columns and of matrices, for later."""
    scope, (own,) = Scope.empty(), [operand for operand in instr.operands if operand.is_written]
    there = [operand for operand in instr.operands if operand.columns]
    for operand in there:
        yield from finder(operand)
    yield "struct Later final : tx_emu::Work {"
    for operand in instr.operands:
        scope, held = scope.name(operand.memory, f"held_{operand.name}")
        yield f"{INDENT}{_matrix(instr, operand) if operand.is_described else _all_columns(operand)} {held};"
    yield f"{INDENT}void end() override {{ delete this; }}"
    yield f"{INDENT}void run(void *columns) override {{"
    for operand in there:
        yield f"{INDENT}{INDENT}held_{operand.name}.columns = static_cast<char *>(columns);"
    scope, variable = scope.integer(LANE, (0, instr.lanes - 1))
    turns = 1 if own.fragment.copied > 1 else instr.lanes  # else all is done in each turn
    yield f"{INDENT}{INDENT}for (int {variable.text} = 0; {variable.text} < {turns}; ++{variable.text}) {{"
    yield from (f"{INDENT}{INDENT}{INDENT}{line}" for line in meaning_lines(instr, scope, dialect))
    yield f"{INDENT}{INDENT}}}"
    yield f"{INDENT}}}"
    yield "};"
    yield "(void)lanes;"
    if not instr.is_pair:
        yield from _ordered(instr, own)
        return
    yield "if (!tx_emu::leads_pair()) return;"
    yield "for (unsigned pair = 1; pair <= 2; ++pair) {"  # each block's share
    yield from (INDENT + line for line in _ordered(instr, own))
    yield "}"


def _ordered(instr: Instr, own: Operand) -> Iterator[str]:
    """The launch of a `Later`, by a thread or, of a pair, for one block of it."""
    there = [operand for operand in instr.operands if operand.columns]
    described = [operand for operand in instr.operands if operand.is_described]
    begun = [each for operand in described for each in _begun(instr, operand)]
    yield "Later *later = new Later;"
    yield from (f"later->held_{operand.name}.begin({operand.name}, {operand.name}_at);" for operand in there)
    yield f"static std::vector<int> reads[{len(begun)}];"
    for at, (held, given, block) in enumerate(begun):
        yield f"(void){given.split(',')[0]}_how;"
        yield f"{held}.begin({given}, reads[{at}]{block});"
    yield f"tx_emu::learn_columns(*later, {', '.join(held for held, _, _ in begun)});"
    yield f"tx_emu::MatrixOrder const matrices[] = {{{', '.join(f'{held}.order()' for held, _, _ in begun)}}};"
    others = [_order(operand) for operand in there if operand is not own]
    if others:
        yield f"tx_emu::ColumnOrder const others[] = {{{', '.join(others)}}};"
    given = f"{'others' if others else 'nullptr'}, {len(others)}, {str(instr.is_copy).lower()}"
    pair = ", pair" if instr.is_pair else ""
    yield f"tx_emu::launch_work(later, {_order(own)}, matrices, {len(begun)}, {given}{pair});"


def _begun(instr: Instr, operand: Operand) -> Iterator[tuple[str, str, str]]:
    """The matrices that an operand is in shared memory, one or a half in each block of a pair: what each is called, what it
    begins with, and in which block."""
    held, given = f"later->held_{operand.name}", f"{operand.name}, {operand.name}_at"
    if operand.halved is None:
        yield held, given, ", pair" if instr.is_pair else ""
    else:
        yield from ((f"{held}.part[{at}]", given, f", {at + 1}") for at in range(PAIR))


def _all_columns(operand: Operand) -> str:
    """The C++ type of an operand in tensor memory, of all lanes."""
    name, ctype = operand.name, C_NAMES[operand.dtype]
    if operand.dtype != F8E8M0:
        return f"tx_emu::AllColumns<{ctype}, At_{name}>"
    return f"tx_emu::AllBytes<{ctype}, decltype(tx_emu::count_of({name}))::value, {operand.fragment.copied}, At_{name}>"


def _order(operand: Operand) -> str:
    """The columns of an operand."""
    return f"tx_emu::columns_in({operand.name}, {operand.name}_at, {operand.fragment.registers})"


def _matrix(instr: Instr, operand: Operand) -> str:
    """The C++ type of a matrix in shared memory."""
    rows, columns = (e.constant for e in operand.memory.shape)
    unit = along(operand)
    summed = str(is_summed(instr, operand, unit)).lower()
    if operand.halved is not None:
        sizes = f"{rows}, {columns}, {unit}, {summed}, {operand.halved}"
        return f"tx_emu::Halves<{C_NAMES[operand.dtype]}, H_{operand.name}, {sizes}>"
    return f"tx_emu::Matrix<{C_NAMES[operand.dtype]}, H_{operand.name}, {rows}, {columns}, {unit}, {summed}>"


def finder(operand: Operand) -> Iterator[str]:
    """Where an element is, by its number in the order of the operand's rows."""
    number, copy = Sym("e"), Sym("copy")
    index: list[Expr] = []
    shape = operand.fragment.shape
    for dim, extent in enumerate(shape):
        value = expr(number) // prod(shape[dim + 1 :])
        index.append(value % extent if dim else value)
    scope, _ = Scope.empty().integer(number, (0, max(1, prod(shape)) - 1))
    scope, _ = scope.integer(copy, (0, operand.fragment.copied - 1))
    places = operand.fragment.lane(index, expr(copy)), operand.fragment.register(index, expr(copy))
    lane, slot = (index_text(place, scope) for place in places)
    yield f"struct At_{operand.name} {{"
    yield f"{INDENT}static int lane(int e, int copy) {{ return (void)e, (void)copy, {lane}; }}"
    yield f"{INDENT}static int slot(int e, int copy) {{ return (void)e, (void)copy, {slot}; }}"
    if _is_said_again(operand):
        scope, _ = Scope.empty().integer(number, (0, operand.fragment.lanes - 1))
        copies = (digit.of(expr(number), operand.fragment.lanes) for digit in operand.fragment.copies if digit.of_lane)
        yield f"{INDENT}static bool says(int e) {{ return {index_text(sum(copies, ZERO), scope)} == 0; }}"
    yield "};"


def _is_said_again(operand: Operand) -> bool:
    """Whether several lanes say one address, of which the first reads what is there."""
    return operand.access == ADDRESS and bool(operand.fragment.copies)


def meaning_lines(instr: Instr, scope: Scope, dialect: Dialect) -> Iterator[str]:
    """The meaning, of operands that have names in a scope, as far as a lane, `LANE`, has the elements that get values."""
    body = _statements(instr.meaning, {operand.memory: operand.fragment for operand in instr.operands if operand.is_written})
    kernel = k.Kernel(instr.name, (), tuple(o.memory for o in instr.operands), (), (), (), body, frozenset())
    yield from Body.of(kernel, dialect).lines(body, scope, 0)


def _statements(steps: tuple[Step, ...], written: Mapping[Buffer, Fragment]) -> tuple[k.Stmt, ...]:
    return tuple(_statement(step, written) for step in steps)


def _statement(step: Step, written: Mapping[Buffer, Fragment]) -> k.Stmt:
    """A step; as soon as all of it is about one element, under the condition that the lane has it."""
    element = _element(step)
    fragment = None if element is None else written.get(element.buffer)
    if element is None or fragment is None or fragment.copied > 1:
        return _whole(step, written)
    has = Op("eq", (Index(fragment.lane(element.index), I32), Index(expr(LANE), I32)), BOOL)
    return k.If(has, (_whole(step, {}),))


def _element(step: Step) -> Load | None:
    """The only element that gets values in a step, in all turns of its loops."""
    first, *others = _given(step)
    apart = any(not same(first, other) for other in others) or any(index.syms() & _loops(step) for index in first.index)
    return None if apart else first


def _given(step: Step) -> list[Load]:
    """The elements that get values."""
    return [step.target] if isinstance(step, Give) else [each for part in step.body for each in _given(part)]


def _loops(step: Step) -> set[Sym]:
    """The symbols of loops."""
    return set() if isinstance(step, Give) else {step.sym, *(sym for part in step.body for sym in _loops(part))}


def _whole(step: Step, written: Mapping[Buffer, Fragment]) -> k.Stmt:
    match step:
        case Turn():
            return k.For(step.sym, ZERO, expr(step.extent), _statements(step.body, written), ONE)
        case Give():
            target = Load(step.target.buffer, step.target.index)
            value = step.value if step.update is None else combine(step.update, (target,), (step.value,))[0]
            return k.assign(target, value)
