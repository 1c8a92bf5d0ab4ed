"""Fences between memory accesses of threads and later copies by engines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from texpr.ir.operation import Fences, Operation
from texpr.ir.operation.form import Name, Word
from texpr.isa.cuda import TMA

if TYPE_CHECKING:
    from texpr.ir.kernel import Stmt
    from texpr.ir.kernel.place import Place
    from texpr.ir.operation.maps import TensorMap
    from texpr.ir.operation.printing import Printing


def fence_is_known(stmt: Stmt, at: Place) -> Iterator[str]:
    """The kind of a fence is "async" or "init"."""
    if isinstance(stmt, Fence) and stmt.kind not in ("async", "init"):
        yield f"there is no fence {stmt.kind}"


class Fence(Operation, eq=False):
    """Kind "async": accesses of this thread to shared memory, reads included, are ordered before copies by engines that start
    later.

    Kind "init": barriers that this thread initialised become visible to engines, and after a block barrier to its threads.
    """

    FORM = (Word("fence"), Name("kind"))
    RULES = (fence_is_known,)

    kind: str

    @property
    def needs(self) -> tuple[str, ...]:
        """The target feature for copies by the tensor memory accelerator."""
        return (TMA,)

    def completion(self, maps: Mapping[str, TensorMap]) -> Fences:
        """A fence of this kind."""
        return Fences(self.kind)

    def cuda(self, to: Printing) -> Iterator[str]:
        """A call of the device function for this kind."""
        yield f"tx_fence_{self.kind}();"
