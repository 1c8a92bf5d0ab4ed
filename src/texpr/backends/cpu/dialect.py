"""The CPU's dialect of C."""

from __future__ import annotations

from collections.abc import Iterable

from texpr.affine.expr import Sym
from texpr.backends.c.body import Rows
from texpr.backends.c.printing import Here
from texpr.backends.c.scope import Scope
from texpr.backends.c.text import comment
from texpr.backends.c.types import OPERATOR_TYPES, SMALL_FLOATS
from texpr.backends.cpu.ahead import fetch_ahead
from texpr.backends.cpu.lanes import head, rows
from texpr.ir.kernel import For, Role, walk
from texpr.ir.kernel.vector.lanes import lanes_of
from texpr.ir.operation import Operation
from texpr.ir.value import Buffer
from texpr.ir.value.types import BOOL, DType
from texpr.support.diagnostic import CompilerBug
from texpr.support.span import Source


class Cpu:
    """Loops over lanes by OpenMP, atomics by compare-and-swap of whole words."""

    tracked = False
    machine = "a CPU"
    parted = None

    def __init__(self, source: Source, near: frozenset[Buffer] = frozenset()):
        """`near`: the arrays that are local to a core."""
        self._source = source
        self._near = near

    def place(self, line: int) -> str:
        """The line of the `.te`, as a comment."""
        return f"// {line}: {comment(self._source.line(line))}"

    def takes_role(self, role: Role, scope: Scope) -> str | None:
        """None: no kernel of a CPU has roles."""
        return None

    def in_role(self, role: Role) -> list[str]:
        """There are none."""
        raise CompilerBug(f"role {role.name} on a CPU")

    def before_loop(self, loop: For, scope: Scope) -> list[str]:
        """The pragma of an unrolled loop, or of one over lanes; and of one around instructions: what is written out in it fills
        the registers, and compilers would write the loop out, too."""
        match loop.kind:
            case "serial":
                return ["TX_ROLLED"] if any(isinstance(s, Operation) and s.FILLS for s in walk(loop.body)) else []
            case "unroll":
                trips = -((loop.lo - loop.hi) // loop.step)
                return [f"TX_UNROLL({loop.factor or max(trips.constant, 1)})"]
            case "simd":
                return _simd(loop, scope)
            case _:
                raise CompilerBug(f"a {loop.kind} loop in a CPU kernel")

    def rows(self, loop: For, scope: Scope) -> Rows | None:
        """A loop over lanes by operations on whole vectors, if it can be vectorised."""
        lanes = lanes_of(loop)
        if lanes is None:
            return None
        count, step = head(lanes)
        return Rows(f"TX_UNROLL({count})", step, tuple(rows(lanes, scope, self._near)))

    def in_loop(self, loop: For, scope: Scope) -> list[str]:
        """Prefetches for later iterations."""
        return list(fetch_ahead(loop, self._near, scope))

    def hides(self, stmt: Operation) -> bool:
        """Never."""
        return False

    def operation(self, stmt: Operation, here: Here) -> Iterable[str]:
        """The lines of an operation on a core, which executes one thread."""
        return stmt.cpu(here)


def _simd(loop: For, scope: Scope) -> list[str]:
    """The pragma of a loop over lanes; none if a type has no reduction over lanes, as the written order is one of those
    allowed."""
    clauses: list[str] = []
    for sym, op in loop.reductions:
        reducer = _reducer(op, _dtype(loop, sym))
        if reducer is None:
            return []
        clauses.append(f" reduction({reducer} : {scope.named[sym]})")
    return ["#pragma omp simd" + "".join(clauses)]


def _dtype(loop: For, sym: Sym) -> DType:
    for stmt in walk(loop.body):
        for new in stmt.assigns if isinstance(stmt, Operation) else ():
            if new.sym == sym:
                return new.dtype
    raise CompilerBug(f"a loop reduces {sym}, which it does not assign")


def _reducer(op: str, dtype: DType) -> str | None:
    """OpenMP's operator or one of texpr_cpu.h; None if there is none. A sum that may overflow uses a function of
    texpr_cpu.h."""
    if dtype in SMALL_FLOATS:
        return None
    match op:
        case "add" | "sub":
            return "+" if dtype in OPERATOR_TYPES else "tx_add"
        case "mul":
            return "*" if dtype in OPERATOR_TYPES else "tx_mul"
        case "max" | "min":
            return f"tx_{op}" if dtype.is_float else op
        case "and":
            return "&&" if dtype == BOOL else "&"
        case "or":
            return "||" if dtype == BOOL else "|"
        case _:
            return None
