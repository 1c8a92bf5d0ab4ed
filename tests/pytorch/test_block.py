"""The example: a block of a transformer by kernels is what plain PyTorch makes of it, in all ways to run it."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

FILE = Path(__file__).parents[2] / "examples" / "pytorch" / "block.py"

torch: Any = pytest.importorskip("torch", reason="needs PyTorch")


@pytest.fixture(scope="module")
def example() -> Any:
    spec = importlib.util.spec_from_file_location("pytorch_block", FILE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def close(one: Any, other: Any) -> None:
    torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


def test_eager_and_exported_are_as_plain(example: Any) -> None:
    mine, plain = example.blocks()
    with torch.no_grad():
        program = example.exported(mine, torch.randn(8, 32))
        called = {str(node.target) for node in program.graph.nodes if str(node.target).startswith("block.")}
        assert called == {"block.norm.default", "block.attention.default", "block.gate.default"}
        for rows in (5, 8, 33):
            x = torch.randn(rows, 32)
            close(mine(x), plain(x))
            close(program.module()(x), plain(x))


def test_a_gate_has_the_gradients_of_plain_pytorch(example: Any) -> None:
    def grads(of: Any) -> tuple[Any, Any]:
        torch.manual_seed(1)
        a, b = (torch.randn(3, 7, requires_grad=True) for _ in range(2))
        of(a, b).pow(2).sum().backward()
        return a.grad, b.grad

    for one, other in zip(grads(example.gate), grads(lambda a, b: torch.nn.functional.silu(a) * b), strict=True):
        close(one, other)


def test_one_graph_without_breaks(example: Any) -> None:
    torch._dynamo.reset()
    mine, plain = example.blocks()
    with torch.no_grad():
        compiled = torch.compile(mine, fullgraph=True, dynamic=True, backend="aot_eager")
        for rows in (8, 5):
            x = torch.randn(rows, 32)
            close(compiled(x), plain(x))


@pytest.mark.long
def test_the_example_runs() -> None:
    done = subprocess.run([sys.executable, str(FILE)], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("as plain PyTorch") == 6
