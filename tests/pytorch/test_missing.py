"""Where PyTorch is not installed."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from tests.pytorch.programs import SCALE

import texpr
import texpr.torch
from texpr.artifact.texts.operators import signature
from texpr.ir.program.text import print_function
from texpr.support.diagnostic import TexprError
from texpr.torch.gradients import gradients


def test_its_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "texpr.torch.operator", raising=False)
    monkeypatch.setitem(sys.modules, "torch", None)
    kernel = texpr.compile(texpr.parse(SCALE)["fold"])
    with pytest.raises(TexprError) as raised:
        texpr.torch.register(kernel, "mine::fold")
    (found,) = raised.value.diagnostics
    assert (found.code, found.help) == ("E0845", "pip install 'texpr-compiler[torch]'")


def test_schemas() -> None:
    module = texpr.parse(SCALE)
    assert {
        each.name: signature("a::b", each.name, each.params, each.results, each.sizes).schema for each in module.functions
    } == {
        "scale": "(Tensor x, Tensor w, float a) -> Tensor",
        "scale_back": "(Tensor x, Tensor w, float a, Tensor grad_y) -> (Tensor, Tensor)",
        "add_to": "(Tensor(a0!) y, Tensor x) -> ()",
        "fold": "(Tensor x, float v, *, SymInt n, SymInt m) -> Tensor",
        "halves": "(Tensor x, SymInt k) -> (Tensor, Tensor)",
        "other": "(Tensor grad_y, Tensor b) -> Tensor",
    }


def test_gradients_of_the_page_fit() -> None:
    page = (Path(__file__).parents[2] / "docs" / "pytorch.md").read_text(encoding="utf-8")
    module = texpr.parse("\n".join(re.findall(r"^```te\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)))
    assert gradients(module["gate"], module["gate_back"]) == {"a": "grad_a", "b": "grad_b"}
    shipped = texpr.load(Path(__file__).parents[2] / "examples" / "pytorch" / "block.te")
    assert [print_function(module[name]) for name in ("gate", "gate_back")] == [
        print_function(shipped[name]) for name in ("gate", "gate_back")
    ]
