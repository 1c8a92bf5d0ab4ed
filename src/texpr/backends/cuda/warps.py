"""The number of a thread's warp in CUDA text, where the compiler must know that a warp has only one.

nvcc computes what all lanes of a warp have in common in registers of the warp, and so addresses of tiles that a warpgroup
multiplies are ready where its instruction wants them; but that threads divided by 32 are the same in a warp it does not see. A
shuffle's result it takes to be the same in all lanes (CUTLASS has its numbers of warps by one, for that reason:
`canonical_warp_idx_sync` in cutlass/arch/barrier.h and cutlass.h).
"""

from __future__ import annotations

from texpr.affine.expr import Sym, expr
from texpr.backends.c.scope import Scope
from texpr.backends.c.text import Binds, Text
from texpr.ir.kernel import If, Kernel, Role, walk
from texpr.ir.kernel.roles import thread_of
from texpr.ir.operation import Operation


def counted(kernel: Kernel) -> Sym | None:
    """The coordinate whose warps are worth a variable: that of threads, where warps have roles or multiply tiles together that
    registers of a warp address. None where there is no such thing, or the last warp is not whole."""
    thread = thread_of(kernel)
    if thread is None or kernel.threads % kernel.warp:
        return None
    maps = kernel.map_of
    for each in walk(kernel.body):
        roles = isinstance(each, If) and each.role is not None
        if roles or (isinstance(each, Operation) and each.together and each.completion(maps) is not None):
            return thread
    return None


def numbered(kernel: Kernel, thread: Sym, scope: Scope) -> tuple[Scope, str]:
    """The scope in which the number of a thread's warp has a name, and divisions are by that; and its declaration."""
    warp, threads = kernel.warp, kernel.threads
    name = scope.taken.take("warp")
    quotients = {expr(thread) // size: _quotient(name, size // warp) for size in range(warp, threads, warp)}
    line = f"int const {name} = tx_warp({scope.names[thread]});"
    return scope.dividing(quotients), line


def takes(role: Role, kernel: Kernel, scope: Scope) -> str | None:
    """The test that a warp has a role; None where warps are not numbered."""
    thread = thread_of(kernel)
    name = None if thread is None else scope.quotients.get(expr(thread) // kernel.warp)
    if name is None:
        return None
    end = role.first + role.warps
    tests = [f"{name} >= {role.first}"] if role.first else []
    tests += [f"{name} < {end}"] if end * kernel.warp < kernel.threads else []
    return " && ".join(tests) or None


def _quotient(name: str, by: int) -> Text:
    return Text(name) if by == 1 else Text(f"{name} / {by}", Binds.MULTIPLY)
