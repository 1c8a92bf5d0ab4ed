"""The tensor memory accelerator: semantics of a copy, descriptors and their rules, planning of a copy from a graph,
correctness.

    from texpr.tma import tma, TensorMap, make_tma_copy, plan

Nothing is imported until one of these names is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from texpr.support.lazy import attributes

if TYPE_CHECKING:
    from texpr.tma.descriptor import TensorMap as TensorMap
    from texpr.tma.elements import ELEMENTS as ELEMENTS
    from texpr.tma.elements import Fill as Fill
    from texpr.tma.make import TmaCopy as TmaCopy
    from texpr.tma.make import make_tma_copy as make_tma_copy
    from texpr.tma.model import Copy as Copy
    from texpr.tma.model import Refusal as Refusal
    from texpr.tma.model import plan as plan
    from texpr.tma.reference import Address as Address
    from texpr.tma.reference import Direction as Direction
    from texpr.tma.reference import Mode as Mode
    from texpr.tma.reference import tma as tma
    from texpr.tma.swizzle import Swizzle as Swizzle

_PUBLIC = {
    "Address": "texpr.tma.reference:Address",
    "Copy": "texpr.tma.model:Copy",
    "Direction": "texpr.tma.reference:Direction",
    "ELEMENTS": "texpr.tma.elements:ELEMENTS",
    "Fill": "texpr.tma.elements:Fill",
    "Mode": "texpr.tma.reference:Mode",
    "Refusal": "texpr.tma.model:Refusal",
    "Swizzle": "texpr.tma.swizzle:Swizzle",
    "TensorMap": "texpr.tma.descriptor:TensorMap",
    "TmaCopy": "texpr.tma.make:TmaCopy",
    "make_tma_copy": "texpr.tma.make:make_tma_copy",
    "plan": "texpr.tma.model:plan",
    "tma": "texpr.tma.reference:tma",
}

__getattr__ = attributes(__name__, _PUBLIC)


def __dir__() -> list[str]:
    return list(_PUBLIC)
