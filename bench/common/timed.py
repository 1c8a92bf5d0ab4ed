"""What is timed on a device: the problems of the list, attention in blocks of keys, and products by several schedules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import model
from common.attention import CASES, online
from common.problems import FOLDER, LIST, ROOT, problems
from texpr.cli.program import read_program
from texpr.driver import load, parse
from texpr.ir.program import Function
from texpr.ir.program.selection import AUTO
from texpr.support.record import Record

IN_ORDER = "in order"
"""The automatic schedule without what lets products overlap."""

UNNAMED = ""
"""The schedule of a file that has no name."""


class Case(Record):
    """A function of a file, or of a text; its sizes, and whether they are fixed; its schedule; what of PyTorch it is like."""

    kind: str
    name: str
    peer: str
    function: str
    sizes: Mapping[str, int]
    file: Path | None = None
    text: str = ""
    schedule: str = AUTO
    is_open: bool = False

    def read(self) -> Function:
        """The function."""
        if self.file is not None:
            return read_program(self.file, dict(self.sizes))[0][self.function]
        return parse(self.text)[self.function]


def cases() -> list[Case]:
    """All that there are."""
    return [*_attention(), *_products(), *_listed(), *_scheduled(), *_ladder()]


def _listed() -> Iterator[Case]:
    for each in problems(LIST.read_text(encoding="utf-8")):
        yield Case(each.kind, each.name, each.name, each.function, each.sizes, file=each.file)


def _attention() -> Iterator[Case]:
    for d, keys, causal in CASES:
        text = online(d=d, keys=keys, causal=causal, align=" align(16)", block=128)
        peer = "attention-tiles-causal" if causal else "attention-tiles"
        for schedule in (AUTO, IN_ORDER):
            name = f"attention-{d}-{keys}{'-causal' if causal else ''}{'' if schedule == AUTO else '-in-order'}"
            yield Case("attention", name, peer, "f", {"H": 64, "L": 4096}, text=text, schedule=schedule)


def _products() -> Iterator[Case]:
    for peer, file, function in (
        ("product-bf16", "matmul_bf16", "matmul_bf16"),
        ("product-f32", "matmul_f32", "matmul_f32"),
        ("linear-relu", "fused", "linear_relu"),
    ):
        path, cube = FOLDER / f"{file}.te", {"M": 4096, "N": 4096, "K": 4096}
        yield Case("products", f"{peer}-open", peer, function, cube, file=path, is_open=True)
        yield Case("products", f"{peer}-odd", peer, function, {"M": 4097, "N": 4095, "K": 4099}, file=path)
        yield Case("products", f"{peer}-8192", peer, function, {"M": 8192, "N": 8192, "K": 8192}, file=path)


OF_SCHEDULED = {
    "saxpy": "saxpy",
    "sum": "sum",
    "transpose2d": "transpose",
    "wide": "transpose",
    "matmul": "product-f32",
    "whole": "product-f32",
    "whole_ring": "product-f32",
    "conv2d": "conv3x3",
    "softmax": "softmax",
    "softmax_long": "softmax",
    "rmsnorm": "rmsnorm",
    "permute5d": "permute",
}
"""The problem that a scheduled example is like."""


def _scheduled() -> Iterator[Case]:
    for file, function, schedule, sizes in model.SCHEDULED:
        path = ROOT / "examples" / "scheduled" / f"{file}.te"
        name = f"{function}-{schedule or 'scheduled'}"
        yield Case("scheduled", name, OF_SCHEDULED.get(function, ""), function, sizes, file=path, schedule=schedule or UNNAMED)


def _ladder() -> Iterator[Case]:
    for file, function in ((ROOT / "bench" / "ladder.te", "ladder"), (ROOT / "examples" / "hopper" / "matmul.te", "matmul")):
        for schedule in load(file)[function].schedules:
            for side in (4096, 8192):
                sizes = {"M": side, "N": side, "K": side}
                name = f"{function}-{schedule.name}-{side}"
                yield Case("ladder", name, "linear", function, sizes, file=file, schedule=str(schedule.name))
