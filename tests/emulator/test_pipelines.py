"""Pipelines of every shape, right and wrong ones: the emulator finds fault with just those that a rule says are wrong.

Stage (i + ahead) % depth is filled in iteration i, stage i % depth is read by the threads of another warp. That is right if

* the group of iteration i is among those that are waited for: then ahead + i + 1 are committed, so `pending` ≤ `ahead`;
* a barrier stands between the wait and the reads;
* no stage is filled that is read in the same iteration or later, `ahead` < `depth`; and those who read it before have met the
  one who fills it: at the barrier that follows the reads, or, where another iteration lies between, at that one's barrier.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
from tests.emulator.test_transfers import together

from texpr.backends.cuda import print_kernels
from texpr.emulator import LOCKSTEP, Emulated
from texpr.ir.kernel.parse import parse_plan
from texpr.support.record import Record

ROWS = 7


class Pipeline(Record, dict=True):
    """How many stages, how far ahead they are filled, how many groups may be left, and which barriers stand there."""

    depth: int
    ahead: int
    pending: int
    before: bool
    after: bool

    @property
    def name(self) -> str:
        return f"pipe_{self.depth}_{self.ahead}_{self.pending}_{self.before:d}_{self.after:d}"

    @property
    def right(self) -> bool:
        free = self.ahead < self.depth - 1 or (self.ahead < self.depth and self.after)
        return self.pending <= self.ahead and self.before and free

    @property
    def text(self) -> str:
        def fill(row: str) -> str:
            return f"copy stage[({row}) % {self.depth}, t] = x[{row}, t] when (i32({row}) < i32(c)) count 1 commit"

        return f"""
        plan {self.name} param x: f32[c, 64] result z: f32[64] size c {{ launch {self.name} }}
        kernel {self.name}
            buffer x: f32[c, 64] buffer z: f32[64] role result size c writes z
            axis block.x t < 64 array shared stage: f32[{self.depth}, 64]
        {{
            {" ".join(fill(str(row)) for row in range(self.ahead))}
            let sum: f32 = 0.0:f32
            for i in 0..c {{
                {fill(f"i + {self.ahead}")}
                wait {self.pending}
                {"barrier block" if self.before else ""}
                sum = (sum + stage[i % {self.depth}, (t + 32) % 64])
                {"barrier block" if self.after else ""}
            }}
            wait 0
            z[t] = sum
        }}
        """


ALL = [Pipeline(*shape) for shape in product((1, 2, 3, 4), (0, 1, 2, 3, 4), (0, 1, 2, 3), (False, True), (False, True))]
SOME = [p for p in ALL if p.depth == 3 and p.ahead > 0 and p.pending in (p.ahead, p.ahead + 1)]


def check(emulate: Callable[..., Emulated], pipelines: list[Pipeline]) -> None:
    emulated = emulate(together(print_kernels(parse_plan(pipeline.text)) for pipeline in pipelines))
    x = np.random.default_rng(3).integers(0, 9, (ROWS, 64)).astype(np.float32)
    for pipeline, seed in product(pipelines, (None, LOCKSTEP, 0, 1, 2, 3)):
        z = np.zeros(64, np.float32)
        found = emulated.launch(pipeline.name, 1, 64, [x, z, ROWS], seed=seed, unwritten=["z"])
        assert (found == []) == pipeline.right, (pipeline, seed, [str(report) for report in found])
        assert not pipeline.right or np.array_equal(z, np.roll(x.sum(axis=0), 32))


def test_right_and_wrong_pipelines(emulate: Callable[..., Emulated]) -> None:
    assert {p.right for p in SOME} == {False, True}
    check(emulate, SOME)


@pytest.mark.long
def test_every_pipeline(emulate: Callable[..., Emulated]) -> None:
    check(emulate, ALL)
