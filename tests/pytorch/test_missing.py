"""Where PyTorch is not installed."""

from __future__ import annotations

import sys

import pytest
from tests.pytorch.programs import SCALE

import texpr
import texpr.torch
from texpr.artifact.texts.operators import signature
from texpr.support.diagnostic import TexprError


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
