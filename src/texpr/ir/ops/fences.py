"""Fences between what threads do and what engines do after it."""

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
    """Fences are of two kinds."""
    if isinstance(stmt, Fence) and stmt.kind not in ("async", "init"):
        yield f"there is no fence {stmt.kind}"


class Fence(Operation, eq=False):
    """`kind` "async": what this thread did to shared memory, reads too, comes before copies of tiles that start after it.

    `kind` "init": the barriers that this thread has made are known to copies, and behind a block's barrier to its threads.
    """

    FORM = (Word("fence"), Name("kind"))
    RULES = (fence_is_known,)

    kind: str

    @property
    def needs(self) -> tuple[str, ...]:
        """The engine that copies tiles, and what came with it."""
        return (TMA,)

    def completion(self, maps: Mapping[str, TensorMap]) -> Fences:
        """It is one."""
        return Fences(self.kind)

    def cuda(self, to: Printing) -> Iterator[str]:
        """A call."""
        yield f"tx_fence_{self.kind}();"
