"""The made-up operation in a kernel: printed, parsed, checked, proved, emitted, and run in the emulator."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

import texpr
from texpr.backends.cuda.headers import headers
from texpr.backends.cuda.printer import print_kernels
from texpr.driver import lower
from texpr.emulator.harness import build
from texpr.ir import kernel as k
from texpr.ir.kernel.parse import parse_plan
from texpr.ir.kernel.text import plan_text
from texpr.ir.kernel.verify import verify
from texpr.ir.value.structure import same
from texpr.isa.registry import resolve
from texpr.proof.search import proved
from texpr.support.diagnostic import CompilerBug

SOURCE = """
fn scale(x: f32[n]): f32[n] {
    new y: f32[n]
    par n |i| { y[i] = 2 * x[i] }
    return y
}
"""

target = resolve("sm_90a")
function = texpr.parse(SOURCE)["scale"]
plain = plan_text(lower(function, "sm_90a").plan)
store = next(line for line in plain.splitlines() if " y[" in f" {line.strip()}" and " = " in line)
pad = store[: len(store) - len(store.lstrip())]
text = plain.replace(store, f"{pad}nanosleep 100\n{store}")
plan = parse_plan(text)
assert same(parse_plan(plan_text(plan)), plan)
assert "nanosleep 100" in plan_text(plan)
verify(plan, target)
try:
    verify(parse_plan(text.replace("nanosleep 100", "nanosleep -1")), target)
except CompilerBug as problem:
    assert "sleep_is_short: -1 ns are not from 0 to 1000000" in str(problem), problem
else:
    raise AssertionError("a sleep of less than nothing passed")

proved(function, plan).require()

source = print_kernels(plan, target)
assert "__nanosleep(100);" in source
(kernel,) = k.kernels(plan.steps)
with tempfile.TemporaryDirectory() as folder:
    emulated = build(source, headers(), Path(folder))
    x, y = np.arange(100, dtype=np.float32), np.zeros(100, np.float32)
    reports = emulated.launch(kernel.name, 1, kernel.threads, [x, y, 100])
    assert not reports, reports
    np.testing.assert_array_equal(y, 2 * x)
