"""Launches of one plan that overlap: a kernel waits for the launches before it, and lets the next one start.

CUDA programming guide, "Programmatic Dependent Launch and Synchronization"; PTX ISA, "griddepcontrol".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from texpr.ir.operation import Operation
from texpr.ir.operation.form import Maybe, Names, Word
from texpr.isa.cuda import DEPENDENT

if TYPE_CHECKING:
    from texpr.ir.kernel import Stmt
    from texpr.ir.kernel.place import Place
    from texpr.ir.operation.printing import Printing


def arrays_are_the_kernels(stmt: Stmt, at: Place) -> Iterator[str]:
    """The arrays are in global memory, and the kernel has them as buffers or as tensors of maps."""
    if isinstance(stmt, AwaitLaunches):
        known = {each.name for each in (*at.kernel.buffers, *(map.buffer for map in at.kernel.maps))}
        yield from (f"{name} is no memory of the kernel" for name in stmt.arrays if name not in known)


class AwaitLaunches(Operation, eq=False):
    """This thread waits until the launch before has ended, and all it did to memory is visible.

    `arrays`: the buffers that earlier launches may still write, or read while this one writes. A compiler of C++ is not told
    that they never change, or only by this kernel.
    """

    FORM = (Word("await"), Word("launches"), Maybe("arrays", (), "of", (Names("arrays"),)))
    RULES = (arrays_are_the_kernels,)

    arrays: tuple[str, ...] = ()

    @property
    def needs(self) -> tuple[str, ...]:
        """The target feature."""
        return (DEPENDENT,)

    def cuda(self, to: Printing) -> Iterator[str]:
        """A call of a device function."""
        yield "tx_await_launches();"


def awaited(body: Iterable[Stmt]) -> tuple[str, ...] | None:
    """The arrays that the first wait among the statements of a list names; None where there is no wait."""
    return next((stmt.arrays for stmt in body if isinstance(stmt, AwaitLaunches)), None)


class AdmitLaunch(Operation, eq=False):
    """The next launch may start as soon as each block of this one has come here, or has ended."""

    FORM = (Word("admit"), Word("launch"))

    @property
    def needs(self) -> tuple[str, ...]:
        """The target feature."""
        return (DEPENDENT,)

    def cuda(self, to: Printing) -> Iterator[str]:
        """A call of a device function."""
        yield "tx_admit_launch();"
