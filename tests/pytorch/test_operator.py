"""Operators of PyTorch: what they compute, what traces see of them, their gradients, and what cannot be one."""

from __future__ import annotations

import itertools
from functools import cache
from types import SimpleNamespace
from typing import Any

import pytest
from tests.pytorch.programs import SCALE

import texpr
import texpr.torch
from texpr.runtime import Kernel
from texpr.support.diagnostic import TexprError

torch: Any = pytest.importorskip("torch", reason="needs PyTorch")
operator: Any = pytest.importorskip("texpr.torch.operator")

pytestmark = pytest.mark.filterwarnings("ignore:Input #. requires gradient and is not a double:UserWarning")

COUNT = itertools.count()


@cache
def kernel(name: str) -> Kernel:
    return texpr.compile(texpr.parse(SCALE)[name])


def name() -> str:
    """A new name of an operator: they cannot be taken back."""
    return f"texpr_tests::op{next(COUNT)}"


def made(function: str, backward: str | None = None) -> Any:
    return texpr.torch.register(kernel(function), name(), backward=None if backward is None else kernel(backward))


@cache
def scale() -> Any:
    return made("scale", "scale_back")


def arguments(n: int = 3, m: int = 5, grad: bool = False) -> tuple[Any, Any, float]:
    source = torch.Generator().manual_seed(n + m)
    x, w = (torch.randn(shape, generator=source) for shape in ((n, m), (m,)))
    return x.requires_grad_(grad), w.requires_grad_(grad), 2.0


def expected(x: Any, w: Any, a: float) -> Any:
    return a * x * w


def test_an_operator_computes_what_its_kernel_does() -> None:
    x, w, a = arguments()
    assert torch.equal(scale()(x, w, a), expected(x, w, a))
    assert torch.equal(scale()(x.t().contiguous().t(), w, a), expected(x, w, a))  # other strides are copied
    assert scale()(x[:0], w, a).shape == (0, 5)


def test_the_checks_of_pytorch_pass() -> None:
    torch.library.opcheck(scale(), arguments())
    torch.library.opcheck(scale(), arguments(grad=True))
    torch.library.opcheck(made("add_to"), (torch.ones(4), torch.ones(4)))
    torch.library.opcheck(made("fold"), (torch.ones(6), 2.0), {"n": 3, "m": 2})
    torch.library.opcheck(made("halves"), (torch.ones(8, dtype=torch.bfloat16), 3))


@pytest.mark.planted
def test_a_trace_that_is_not_what_a_call_gives_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = operator._fake
    monkeypatch.setattr(operator, "_fake", lambda found: lambda *given: whole(found)(*given)[:, :1])
    wrong = made("scale")
    with pytest.raises(Exception, match="opcheck"):
        torch.library.opcheck(wrong, arguments())


def test_gradients_are_those_of_pytorch() -> None:
    x, w, a = arguments(grad=True)
    assert torch.autograd.gradcheck(lambda x, w: scale()(x, w, a), (x, w), eps=1e-2, atol=1e-2, rtol=1e-2)
    scale()(x, w, a).sum().backward()  # the gradient is one number, repeated
    mine = x.grad, w.grad
    x, w, a = arguments(grad=True)
    expected(x, w, a).sum().backward()
    assert all(torch.allclose(one, other) for one, other in zip(mine, (x.grad, w.grad), strict=True))


@pytest.mark.planted
def test_a_wrong_gradient_is_found() -> None:
    wrong = texpr.compile(texpr.parse(SCALE.replace("grad_w[j] += a *", "grad_w[j] += 2.0 * a *"))["scale_back"])
    op = texpr.torch.register(kernel("scale"), name(), backward=wrong)
    x, w, a = arguments(grad=True)
    with pytest.raises(RuntimeError, match="Jacobian mismatch"):
        torch.autograd.gradcheck(lambda x, w: op(x, w, a), (x, w), eps=1e-2, atol=1e-2, rtol=1e-2)


def test_types_sizes_by_keyword_and_several_results() -> None:
    y, z = made("halves")(torch.ones(8, dtype=torch.bfloat16), 3)
    assert (y.dtype, y.tolist(), z.dtype, z.tolist()) == (torch.bfloat16, [2.0] * 4, torch.int64, [4] * 4)
    assert made("fold")(torch.ones(6), 2.0, n=3, m=2).tolist() == [2.0] * 2


def test_an_inout_is_changed_in_place() -> None:
    y = torch.zeros(4)
    assert made("add_to")(y, torch.ones(4)) is None and y.tolist() == [1.0] * 4
    inside = torch.compile(lambda y, x: (made_add(y, x), y * 2)[1], fullgraph=True, backend="aot_eager")
    made_add = made("add_to")
    assert inside(y, torch.ones(4)).tolist() == [4.0] * 4


def test_a_compiled_graph_has_no_breaks_and_follows_shapes() -> None:
    torch._dynamo.reset()
    graphs: list[Any] = []

    def backend(module: Any, inputs: Any) -> Any:
        graphs.append(module)
        return module

    op = scale()
    compiled = torch.compile(lambda x, w: op(x, w, 2.0).relu() + 1, fullgraph=True, dynamic=True, backend=backend)
    for n, m in ((3, 5), (7, 2), (4, 9)):
        x, w, a = arguments(n, m)
        assert torch.equal(compiled(x, w), expected(x, w, a).relu() + 1)
    assert len(graphs) == 1


def test_gradients_go_through_a_compiled_graph() -> None:
    torch._dynamo.reset()
    op = scale()
    compiled = torch.compile(lambda x, w: op(x, w, 2.0), fullgraph=True, backend="aot_eager")
    x, w, a = arguments(grad=True)
    compiled(x, w).pow(2).sum().backward()
    mine = x.grad, w.grad
    x, w, a = arguments(grad=True)
    expected(x, w, a).pow(2).sum().backward()
    assert all(torch.allclose(one, other) for one, other in zip(mine, (x.grad, w.grad), strict=True))


def test_an_exported_program_calls_it() -> None:
    op = scale()

    class Module(torch.nn.Module):
        def forward(self, x: Any, w: Any) -> Any:
            return op(x, w, 2.0) + 1

    x, w, a = arguments()
    n = torch.export.Dim("n", min=2)
    exported = torch.export.export(Module(), (x, w), dynamic_shapes={"x": {0: n}, "w": None})
    assert op._qualname.split("::")[1] in str(exported.graph)
    x, w, a = arguments(n=8)
    assert torch.equal(exported.module()(x, w), expected(x, w, a) + 1)


def test_a_trace_refuses_what_a_call_would() -> None:
    x, w, a = arguments()
    with torch._subclasses.FakeTensorMode() as mode:
        x, w = (mode.from_tensor(each) for each in (x, w))
        assert scale()(x, w, a).shape == (3, 5)
        with pytest.raises(RuntimeError, match="another extent than m"):
            scale()(x, w[:3], a)
        with pytest.raises(RuntimeError, match="`w` of `scale` is f32"):
            scale()(x, w.double(), a)
        with pytest.raises(RuntimeError, match="`x` of `scale` has rank 2"):
            scale()(x[0], w, a)


def test_the_kernel_refuses_what_it_is_not_for() -> None:
    x, w, a = arguments()
    with pytest.raises(TexprError, match="E07"):
        scale()(x, w[:3], a)
    with pytest.raises(TexprError, match="E0773"):
        made("add_to")(torch.zeros(8)[::2], torch.ones(4))
    with pytest.raises(TexprError, match="E0704"):
        scale()(x.double(), w, a)


def test_the_stream_is_pytorchs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: f"stream of {device.index}")
    here, there = (SimpleNamespace(is_cuda=cuda, device=SimpleNamespace(index=1)) for cuda in (False, True))
    assert operator.stream_of([here]) is operator.stream_of([]) is None
    assert operator.stream_of([here, there]) == "stream of 1"


def test_a_kernel_gets_the_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[object] = []
    monkeypatch.setattr(operator, "stream_of", lambda tensors: "mine")
    whole = Kernel.__call__
    monkeypatch.setattr(Kernel, "__call__", lambda self, *a, stream=None, **k: (seen.append(stream), whole(self, *a, **k))[1])
    made("add_to")(torch.zeros(4), torch.ones(4))
    assert seen == ["mine"]


def test_an_emulated_kernel_takes_tensors_of_the_host() -> None:
    emulated = texpr.compile(texpr.parse(SCALE)["scale"], "sm_90a", emulate=True)
    x, w, a = arguments()
    assert torch.equal(texpr.torch.register(emulated, name())(x, w, a), expected(x, w, a))


@pytest.mark.parametrize(
    ("function", "backward", "told"),
    [
        ("scale", "other", "`b` is none of x, w, a, y, grad_y"),
        ("scale", "fold", "is not like"),
        ("add_to", "scale_back", "changes its arguments"),
        ("halves", "scale_back", "is not like"),
    ],
)
def test_gradients_that_do_not_fit(function: str, backward: str, told: str) -> None:
    with pytest.raises(TexprError, match="E0846") as raised:
        made(function, backward)
    assert told in str(raised.value)


def test_names_that_are_none() -> None:
    for wrong in ("scale", "a::b::c", "a::", "1::b"):
        with pytest.raises(TexprError, match="E0846"):
            texpr.torch.register(kernel("scale"), wrong)
    with pytest.raises(TexprError, match="which is a word of Python"):
        texpr.torch.register(texpr.compile(texpr.parse("fn f(lambda: f32[n]): f32[n] { new y: f32[n] "
                                                       "par n |i| { y[i] = lambda[i] } return y }")["f"]), name())  # fmt: skip
    with pytest.raises(TexprError, match="not of one function"):
        texpr.torch.register([kernel("scale"), kernel("scale")], name())
    with pytest.raises(TypeError, match="kernel must be one"):
        texpr.torch.register(3, name())  # pyright: ignore[reportArgumentType]
