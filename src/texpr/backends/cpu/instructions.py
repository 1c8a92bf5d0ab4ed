"""Instructions that a core does by itself, each as a function of where its rows begin: its template where the compiler has the
features, its meaning elsewhere.

TX_FN void tx_instr_vdpbf16ps(tx_bf16 const *a, tx_bf16 const *b, float *c) {
#if defined(__AVX512BF16__) && defined(__AVX512VNNI__)
    tx_row(*c) = …
#else
    for (…) c[j] = tx_to<float>(a[k]) * tx_to<float>(b[k + 2 * j]) + c[j];
#endif
}
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from texpr.affine.expr import ONE, ZERO, expr
from texpr.backends.c.body import INDENT, Body, Dialect, signature
from texpr.backends.c.scope import Scope
from texpr.backends.c.text import comment
from texpr.backends.c.types import C_NAMES
from texpr.ir import kernel as k
from texpr.ir.instr import Instr, Operand, Step, Turn
from texpr.ir.instr.registers import PLACE
from texpr.ir.ops.collective import function_name
from texpr.ir.program.rewrite import replace_loads
from texpr.ir.program.updates import combine
from texpr.ir.value import Buffer, Load
from texpr.isa.target import Target
from texpr.support.diagnostic import CompilerBug


def instr_lines(instr: Instr, target: Target | None, dialect: Dialect) -> Iterator[str]:
    """The function of an instruction. Raises CompilerBug if `target` lacks it."""
    template = instr.template(target) if target is not None else None
    if target is None or template is None:
        raise CompilerBug(f"{instr.name} has no template for {target}")
    given = [f"{C_NAMES[o.dtype]}{'' if o.is_written else ' const'} *{o.name}" for o in instr.operands]
    yield f"// {comment(f'{instr.name}, by a core')}"
    yield from signature(f"TX_FN void {function_name(instr.name)}", given)
    if target.macros:
        yield f"#if {' && '.join(f'defined({macro})' for macro in target.macros)}"
        yield INDENT + _text(instr, template)
        yield "#else"
        yield from (INDENT + line for line in _meaning(instr, dialect))
        yield "#endif"
    else:
        yield INDENT + _text(instr, template)
    yield "}"


def _text(instr: Instr, template: str) -> str:
    """A template, with the names of operands for its places."""
    names = {operand.name for operand in instr.operands}
    unknown = [name for name in PLACE.findall(template) if name not in names]
    if unknown:
        raise CompilerBug(f"the template of {instr.name} names `{{{unknown[0]}}}`, which is no operand")
    return PLACE.sub(lambda found: found[1], template)


def _meaning(instr: Instr, dialect: Dialect) -> Iterator[str]:
    rows = {o.memory: (o, Buffer(o.name, o.dtype, (expr(o.fragment.registers),), "local")) for o in instr.operands}
    body = tuple(_statement(step, rows) for step in instr.meaning)
    scope = Scope.empty()
    for _, row in rows.values():
        scope, _ = scope.name(row)
    kernel = k.Kernel(instr.name, (), tuple(row for _, row in rows.values()), (), (), (), body, frozenset())
    yield from Body.of(kernel, dialect).lines(body, scope, 0)


def _statement(step: Step, rows: Mapping[Buffer, tuple[Operand, Buffer]]) -> k.Stmt:
    if isinstance(step, Turn):
        return k.For(step.sym, ZERO, expr(step.extent), tuple(_statement(each, rows) for each in step.body), ONE)

    def element(load: Load) -> Load:
        operand, row = rows[load.buffer]
        return Load(row, (operand.fragment.register(load.index),))

    target, value = element(step.target), replace_loads(step.value, element)
    return k.assign(target, value if step.update is None else combine(step.update, (target,), (value,))[0])
