"""Roles: warps of a block that have work of their own (docs/theory/channels.md).

    for ko in 0..n {                                      if (thread >= 256) role copy 8 1 {
        if (thread >= 256) role copy 8 1 { A }                for ko in 0..n { A }
        if (thread < 256) role compute 0 8 { B }    →     }
    }                                                     if (thread < 256) role compute 0 8 {
    if (thread < 256) role compute 0 8 { C }                  for ko in 0..n { B }
    barrier cluster                                           C
                                                          }
                                                          barrier cluster

On the left is the text of a kernel: the order in which one thread after the other could do all of it. On the right each role
has its statements together: each thread executes what it does on the left, in the same order, as roles are of different
threads, and what stands between them only declares variables.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from texpr.affine.expr import Expr, Sym, expr
from texpr.ir import kernel as k
from texpr.ir.kernel.turns.groups import gathered
from texpr.ir.operation import Operation
from texpr.ir.value import Index, Literal, Op, Value, conjunction
from texpr.ir.value.scanner import Scanner
from texpr.ir.value.types import BOOL, I32
from texpr.isa.cuda import REGISTERS_BY, WARPGROUP, registers_at_launch
from texpr.isa.levels import Level
from texpr.support.record import replace

if TYPE_CHECKING:
    from texpr.ir.kernel.place import Place


LEAST, MOST = 24, 256
"""Registers of a thread that a role may keep (PTX ISA, "setmaxnreg")."""


def role_of(scan: Scanner) -> k.Role:
    """Parses a role: `copy 8 4 registers 24`."""
    name, first, warps = scan.name(), scan.integer(), scan.integer()
    return k.Role(name, first, warps, scan.integer() if scan.accept("registers") else 0)


def shared_anew(kernel: k.Kernel) -> bool:
    """Whether roles of a kernel share its registers anew."""
    return any(isinstance(each, k.If) and each.role and each.role.registers for each in k.walk(kernel.body))


def condition(role: k.Role, thread: Expr, threads: int, warp: int) -> Value | None:
    """The condition that a thread is in a role, of a block of so many threads; None if all are."""
    first, end = role.first * warp, (role.first + role.warps) * warp
    index = Index(thread, I32)
    tests = [Op("ge", (index, Literal(first, I32)), BOOL)] if first else []
    return conjunction([*tests, *([Op("lt", (index, Literal(end, I32)), BOOL)] if end < threads else [])])


def thread_of(kernel: k.Kernel) -> Sym | None:
    """The number of a thread in a block of one dimension, the first: lanes are counted along it."""
    axes = [axis for axis in kernel.axes if axis.level is k.Level.BLOCK]
    return axes[0].sym if [axis.dim for axis in axes] == ["x"] else None


def roles_are_of_warps(stmt: k.Stmt, at: Place) -> Iterator[str]:
    """A role is of existing warps, as its condition says, and in no other branch; two roles have no warp in common."""
    if not isinstance(stmt, k.If) or stmt.role is None:
        return
    kernel, role, thread = at.kernel, stmt.role, thread_of(at.kernel)
    end = (role.first + role.warps) * kernel.warp
    if thread is None or role.first < 0 or role.warps < 1 or end > kernel.threads:
        yield f"role {role.name} is of no warps of {kernel.threads} threads"
    elif stmt.condition != condition(role, expr(thread), kernel.threads, kernel.warp):
        yield f"the condition of role {role.name} does not say which warps it is of"
    if stmt.orelse or any(isinstance(each, k.If) for each in at.around):
        yield f"role {role.name} is in a branch, or has another arm"
    for other in {each.role for each in k.walk(kernel.body) if isinstance(each, k.If) and each.role} - {role}:
        if other.name == role.name or (other.first < role.first + role.warps and role.first < other.first + other.warps):
            yield f"roles {role.name} and {other.name} have warps in common"


def registers_are_those_of_the_block(stmt: k.Stmt, at: Place) -> Iterator[str]:
    """Roles that share registers anew are all warps, in whole warpgroups, and ask for no more than the block has. So one that
    asks for more only waits until the others, which do nothing before, have given theirs up."""
    if not isinstance(stmt, k.If) or stmt.role is None or not stmt.role.registers:
        return
    kernel = at.kernel
    every = {each.role for each in k.walk(kernel.body) if isinstance(each, k.If) and each.role}
    group = WARPGROUP // kernel.warp
    if any(each.first % group or each.warps % group for each in every):
        yield f"role {stmt.role.name} shares registers, and not every role is of whole warpgroups"
    if any(not LEAST <= each.registers <= MOST or each.registers % REGISTERS_BY for each in every):
        yield f"registers of roles are not {LEAST} to {MOST} a thread, by {REGISTERS_BY}"
    threads, have = kernel.threads, registers_at_launch(kernel.threads, kernel.min_blocks)
    if sum(each.warps for each in every) * kernel.warp != threads:
        yield f"roles that share registers are not all of the {threads} threads"
    if sum(each.warps * kernel.warp * each.registers for each in every) > threads * have:
        yield f"roles ask for more registers than {threads} threads have, with {have} each"


def between_roles_is_nothing(stmt: k.Stmt, at: Place) -> Iterator[str]:
    """What stands beside a role, from the first one on, is declarations, loops of roles, and roles; and behind the last one of
    the kernel barriers of a cluster."""
    if isinstance(stmt, k.If) and stmt.role is not None:
        body, inner = at.kernel.body, [each.body for each in at.around if isinstance(each, k.For)]
        beside = all(
            k.declares(each) or _first((each,)) == 0 for block in (body[_first(body) : _end(body)], *inner) for each in block
        )
        if not (beside and all(isinstance(each, Operation) and each.joined is Level.CLUSTER for each in body[_end(body) :])):
            yield f"beside role {stmt.role.name} is what other threads do"


def parted(body: tuple[k.Stmt, ...]) -> tuple[k.Stmt, ...]:
    """The statements of a kernel, each role's together."""
    at, end = _first(body), _end(body)
    own = body[at:end]
    branches = [each for each in k.walk(own) if isinstance(each, k.If) and each.role]
    once = {branch.role: branch for branch in reversed(branches)}
    apart = (replace(once[role], then=gathered(_of(role, own))) for role in dict.fromkeys(b.role for b in branches))
    return (*body[:at], *apart, *body[end:])


def _first(body: tuple[k.Stmt, ...]) -> int:
    """The first statement of a list that is a role, or a loop of some."""
    found = (at for at, each in enumerate(body) if any(isinstance(s, k.If) and s.role for s in k.walk((each,))))
    return next(found, len(body))


def _end(body: tuple[k.Stmt, ...]) -> int:
    """The end of the statements up to the last that is a role, or a loop of some; of all, where there is none."""
    return len(body) - _first(body[::-1]) or len(body)


def _of(role: k.Role | None, body: tuple[k.Stmt, ...]) -> tuple[k.Stmt, ...]:
    """What threads of a role execute of some statements."""
    found: list[k.Stmt] = []
    for stmt in body:
        match stmt:
            case k.If() if stmt.role is not None:
                found += stmt.then if stmt.role == role else ()
            case k.For() if not _first((stmt,)):
                inner = _of(role, stmt.body)
                found += (replace(stmt, body=inner),) if not all(map(k.declares, inner)) else ()
            case _:
                found.append(stmt)
    return tuple(found)
