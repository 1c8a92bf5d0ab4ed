"""Emptiness of the solutions of a formula, asked again with further constraints."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from texpr.affine.expr import Sym
from texpr.presburger.formula import TRUE, Formula, conj
from texpr.presburger.isl.sets import Set
from texpr.presburger.solve.omega import System, system
from texpr.support.record import Record


class Points(Record, dict=True):
    """The points of `formula`, every symbol free. isl is asked only where elimination gives no answer."""

    formula: Formula
    params: Sequence[Sym] = ()

    def is_empty(self, also: Formula = TRUE) -> bool:
        """Whether no point fulfils `also` as well. Raises NotAffine, Undecided."""
        found = self._system.is_empty(also)
        if found is None:
            found = Set.of((), conj((self.formula, also)), params=self.params).is_empty()
        return found

    @cached_property
    def _system(self) -> System:
        return system(self.formula)
