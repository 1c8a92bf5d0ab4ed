"""What the problems of `bench/problems` compute, in PyTorch, by the problem's name.

Each takes PyTorch, its functions of networks, and the arrays by name, on the device. A program of several results has a tuple;
one that changes its arguments, these.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import e, log
from typing import Any

Arrays = Mapping[str, Any]
Peer = Callable[[Any, Any, Arrays], Any]


def _statistics(t: Any, x: Any, over: tuple[int, ...]) -> tuple[Any, Any]:
    found = t.var_mean(x, dim=over, correction=0)
    return found[1], found[0]


def _first(x: Any) -> Any:
    """Channels after the batch, of an array that has them last."""
    return x.movedim(-1, 1)


def _filters(k: Any) -> Any:
    """… × in × out as out × in × …"""
    return k.movedim(-1, 0).movedim(-1, 1)


def _convolved(f: Any, a: Arrays, stride: int = 1, padding: int = 0) -> Any:
    return f.conv2d(_first(a["X"]), _filters(a["K"]), stride=stride, padding=padding).movedim(1, -1)


def _depthwise(f: Any, a: Arrays) -> Any:
    filters = a["K"].movedim(-1, 0).unsqueeze(1)
    return f.conv2d(_first(a["X"]), filters, padding=1, groups=filters.shape[0]).movedim(1, -1)


def _grouped(f: Any, a: Arrays) -> Any:
    images, groups = a["X"], a["X"].shape[3]
    filters = a["K"].permute(2, 4, 3, 0, 1).flatten(0, 1)
    return f.conv2d(_first(images.flatten(3)), filters, padding=1, groups=groups).movedim(1, -1).unflatten(3, (groups, -1))


def _conv1d(f: Any, a: Arrays) -> Any:
    filters = a["K"].t().unsqueeze(1)
    x = f.pad(_first(a["X"]), (len(a["K"]) - 1, 0))
    return f.conv1d(x, filters, groups=filters.shape[0]).movedim(1, -1)


def _conv3d(f: Any, a: Arrays, padding: int) -> Any:
    return f.conv3d(_first(a["X"]), _filters(a["K"]), padding=padding).movedim(1, -1)


def _attention(f: Any, a: Arrays, causal: bool = False, base: float = e) -> Any:
    q, k, v = (a[name].unsqueeze(0) for name in "QKV")
    return f.scaled_dot_product_attention(q, k, v, scale=a["scale"] * log(base), is_causal=causal).squeeze(0)


def _rotary(t: Any, a: Arrays) -> Any:
    x, cosine, sine = a["X"].float(), a["cosine"][None, :, None], a["sine"][None, :, None]
    one, other = x[..., 0, :], x[..., 1, :]
    return t.stack((one * cosine - other * sine, one * sine + other * cosine), dim=3).to(t.bfloat16)


def _adam(t: Any, a: Arrays) -> Any:
    m = 0.9 * a["m"] + 0.1 * a["g"]
    v = 0.999 * a["v"] + 0.001 * a["g"] * a["g"]
    return a["p"] - a["rate"] * m / (v.sqrt() + 1e-8), m, v


def _norm_of_image(a: Arrays) -> Any:
    x = a["X"]
    mean = x.mean(dim=1, keepdim=True)
    return (x - mean) * ((x - mean).square().mean(dim=1, keepdim=True) + a["eps"]).rsqrt()


def _group_norm(f: Any, a: Arrays) -> Any:
    return f.group_norm(a["X"], a["X"].shape[1], eps=a["eps"])


def _rmsnorm(t: Any, a: Arrays) -> Any:
    x = a["X"].float()
    return (x * t.rsqrt((x * x).mean(dim=1, keepdim=True) + a["eps"]) * a["gain"].float()).to(a["X"].dtype)


def _positions(t: Any, a: Arrays) -> Any:
    d = t.arange(512, device=a["n"].device, dtype=t.float32)
    angle = a["n"].float()[:, None] * t.exp2(-13.2877 * d / 512.0)
    return t.stack((angle.sin(), angle.cos()), dim=1)


def _blur(f: Any, a: Arrays) -> Any:
    z = f.pad(a["X"], (1, 1, 1, 1))
    return 0.2 * (z[1:-1, 1:-1] + z[:-2, 1:-1] + z[2:, 1:-1] + z[1:-1, :-2] + z[1:-1, 2:])


def _later(t: Any, x: Any) -> Any:
    """Scores whose later ones are masked."""
    n = x.shape[-1]
    return x.masked_fill(t.ones(n, n, dtype=t.bool, device=x.device).triu(1), float("-inf"))


def _cosine(a: Arrays) -> Any:
    x, y = a["X"], a["Y"]
    return (1.0 - (x * y).sum(1) * ((x * x).sum(1) * (y * y).sum(1) + 1e-8).rsqrt()).sum()


def _scores(t: Any, a: Arrays) -> Any:
    return t.einsum("bpihd,bpjhd->bphij", a["Q"], a["K"])


def _of_bytes(t: Any, a: Arrays) -> Any:
    scale = a["scale"].repeat_interleave(128, dim=0)
    return a["X"] @ (a["W"].to(t.bfloat16) * scale)


def _of_halves(t: Any, a: Arrays) -> Any:
    halves = t.stack((a["W"] & 15, a["W"] >> 4), dim=1).flatten(0, 1).to(t.bfloat16)
    scale, zero = (a[name].repeat_interleave(128, dim=0) for name in ("scale", "zero"))
    return a["X"] @ ((halves - zero) * scale)


def _of_f8(t: Any, a: Arrays) -> Any:
    return a["X"] @ (a["W"].to(t.bfloat16) * a["scale"][:, None]).T


def _int8(t: Any, a: Arrays) -> Any:
    return (t._int_mm(a["A"], a["B"].t()).float() * a["of_rows"][:, None] * a["of_columns"]).to(t.bfloat16)


def _fp8(t: Any, a: Arrays) -> Any:
    one = t.ones((), device=a["A"].device)
    return t._scaled_mm(a["A"], a["B"].t(), scale_a=one, scale_b=one, out_dtype=t.bfloat16)


def _tf32(t: Any, a: Arrays) -> Any:
    """Factors are rounded by the tensor core, here alone."""
    t.backends.cuda.matmul.allow_tf32 = True
    try:
        return a["A"] @ a["B"].t()
    finally:
        t.backends.cuda.matmul.allow_tf32 = False


PEERS: Mapping[str, Peer] = {
    "mean-pool-tokens": lambda t, f, a: a["X"].mean(dim=1),
    "mean-pool-patches": lambda t, f, a: a["X"].mean(dim=1),
    "average-pool-last": lambda t, f, a: a["X"].mean(dim=1),
    "max-over-time": lambda t, f, a: a["X"].amax(dim=1),
    "batchnorm-nchw": lambda t, f, a: _statistics(t, a["X"], (0, 2)),
    "batchnorm-nhwc": lambda t, f, a: _statistics(t, a["X"], (0,)),
    "gain-gradient": lambda t, f, a: (a["G"] * a["X"]).sum(dim=0),
    "bias-gradient": lambda t, f, a: a["G"].sum(dim=0, dtype=t.float32),
    "softmax-middle": lambda t, f, a: a["X"].softmax(dim=1),
    "cumsum-rows": lambda t, f, a: a["X"].cumsum(dim=1),
    "cumsum-long-rows": lambda t, f, a: a["X"].cumsum(dim=1),
    "cumsum-columns": lambda t, f, a: a["X"].cumsum(dim=0),
    "cumsum-exclusive": lambda t, f, a: a["X"].cumsum(dim=1) - a["X"],
    "cumsum-reverse": lambda t, f, a: a["X"].flip(1).cumsum(dim=1).flip(1),
    "cumprod": lambda t, f, a: a["X"].cumprod(dim=1),
    "cummax": lambda t, f, a: a["X"].cummax(dim=1)[0],
    "cumsum-one": lambda t, f, a: a["x"].cumsum(dim=0, dtype=t.int32),
    "cumsum-by-hand": lambda t, f, a: a["x"].cumsum(dim=0),
    "cross-entropy": lambda t, f, a: f.cross_entropy(a["X"], a["target"].long(), reduction="sum"),
    "sum-of-norms": lambda t, f, a: t.linalg.vector_norm(a["X"], dim=1).sum(),
    "cosine-loss": lambda t, f, a: _cosine(a),
    "divergence": lambda t, f, a: (a["P"] * (a["P"].log() - a["Q"].log())).sum(1).mean(),
    "norm-infinity": lambda t, f, a: a["X"].abs().sum(1).amax(),
    "conv3d": lambda t, f, a: _conv3d(f, a, 1),
    "conv3d-f32": lambda t, f, a: _conv3d(f, a, 0),
    "conv-grouped": lambda t, f, a: _grouped(f, a),
    "conv-transposed": lambda t, f, a: t.einsum("bpqc,rscf->bprqsf", a["X"], a["K"]),
    "window-scores": lambda t, f, a: _scores(t, a),
    "contraction": lambda t, f, a: t.tensordot(a["X"], a["Y"], dims=2),
    "norm-of-image": lambda t, f, a: _norm_of_image(a),
    "frobenius": lambda t, f, a: t.linalg.vector_norm(a["X"]),
    "product-of-long": lambda t, f, a: a["A"] @ a["B"],
    "product-thin": lambda t, f, a: a["A"] @ a["B"],
    "vector-product": lambda t, f, a: a["A"] @ a["x"],
    "vector-product-wide": lambda t, f, a: a["A"] @ a["x"],
    "dot": lambda t, f, a: t.dot(a["x"], a["y"]),
    "long-rows": lambda t, f, a: a["X"].sum(dim=1),
    "group-norm": lambda t, f, a: _group_norm(f, a),
    "relu": lambda t, f, a: a["x"].relu(),
    "relu-odd": lambda t, f, a: a["x"].relu(),
    "relu-bf16": lambda t, f, a: a["x"].relu(),
    "add-bf16": lambda t, f, a: a["x"] + a["y"],
    "to-bf16": lambda t, f, a: a["x"].to(t.bfloat16),
    "dropout": lambda t, f, a: t.where(a["keep"] > 0, a["x"].float() * a["scale"], 0.0).to(t.bfloat16),
    "gated": lambda t, f, a: f.silu(a["X"][:, 0]) * a["X"][:, 1],
    "rotary": lambda t, f, a: _rotary(t, a),
    "residual": lambda t, f, a: a["X"] + a["gain"] * a["Y"],
    "residual-odd": lambda t, f, a: a["X"] + a["gain"] * a["Y"],
    "dequantised": lambda t, f, a: (a["X"].float() * a["scale"][:, None]).to(t.bfloat16),
    "adam": lambda t, f, a: _adam(t, a),
    "conv3x3": lambda t, f, a: _convolved(f, a, padding=1),
    "conv3x3-deep": lambda t, f, a: _convolved(f, a, padding=1),
    "conv1x1": lambda t, f, a: a["X"] @ a["K"],
    "stem": lambda t, f, a: _convolved(f, a, stride=2),
    "strided": lambda t, f, a: _convolved(f, a, stride=2),
    "depthwise": lambda t, f, a: _depthwise(f, a),
    "causal-conv1d": lambda t, f, a: _conv1d(f, a),
    "max-pool": lambda t, f, a: f.max_pool2d(_first(a["X"]), 3, 2).movedim(1, -1),
    "average-pool": lambda t, f, a: f.avg_pool2d(_first(a["X"]), 2).movedim(1, -1),
    "conv-channels-first": lambda t, f, a: f.conv2d(a["X"], a["K"], padding=1),
    "causal-softmax": lambda t, f, a: _later(t, a["X"]).softmax(-1),
    "causal-scores": lambda t, f, a: _later(t, a["Q"] @ a["K"].mT),
    "attention-causal": lambda t, f, a: _attention(f, a, causal=True),
    "relu-guarded": lambda t, f, a: t.where(t.ones_like(a["x"], dtype=t.bool).tril(), a["x"].relu(), a["x"]),
    "attention-plain-causal": lambda t, f, a: _attention(f, a, causal=True),
    "cholesky": lambda t, f, a: t.linalg.cholesky(a["A"]),
    "lower-triangle": lambda t, f, a: a["X"].tril(),
    "lower-product": lambda t, f, a: a["A"].tril() @ a["B"],
    "gram": lambda t, f, a: (a["A"] @ a["A"].t()).tril(),
    "attention-tiles-causal": lambda t, f, a: _attention(f, a, causal=True, base=2.0),
    "linear-relu": lambda t, f, a: f.linear(a["A"], a["B"], a["bias"]).relu(),
    "linear-gelu-apart": lambda t, f, a: f.gelu(f.linear(a["A"], a["B"], a["bias"])),
    "product-residual": lambda t, f, a: a["A"] @ a["B"] + a["R"],
    "gated-linear": lambda t, f, a: f.silu(f.linear(a["X"], a["A"])) * f.linear(a["X"], a["B"]),
    "conv-bias-relu": lambda t, f, a: (_convolved(f, a) + a["bias"]).relu(),
    "batched-scores": lambda t, f, a: t.bmm(a["A"], a["C"].mT) * a["scale"],
    "mlp": lambda t, f, a: f.linear(f.silu(f.linear(a["X"], a["gate"])) * f.linear(a["X"], a["up"]), a["down"]),
    "norm-product": lambda t, f, a: f.linear(_rmsnorm(t, a), a["W"]),
    "int8-scaled": lambda t, f, a: _int8(t, a),
    **dict.fromkeys(("int8-weights-decode", "int8-weights-few", "int8-weights"), lambda t, f, a: _of_bytes(t, a)),
    **dict.fromkeys(("int4-weights-decode", "int4-weights-few", "int4-weights"), lambda t, f, a: _of_halves(t, a)),
    **dict.fromkeys(("fp8-weights-decode", "fp8-weights-few", "fp8-weights"), lambda t, f, a: _of_f8(t, a)),
    "softmax": lambda t, f, a: a["X"].softmax(dim=1),
    "softmax-vocabulary": lambda t, f, a: a["X"].softmax(dim=1),
    "softmax-short": lambda t, f, a: a["X"].softmax(dim=1),
    "log-softmax": lambda t, f, a: a["X"].log_softmax(dim=1),
    "log-sum-exp": lambda t, f, a: a["X"].logsumexp(dim=1),
    "sigmoid-loss": lambda t, f, a: f.binary_cross_entropy_with_logits(a["x"], a["t"], reduction="none"),
    "gelu-by-tanh": lambda t, f, a: f.gelu(a["x"], approximate="tanh"),
    "silu": lambda t, f, a: f.silu(a["x"]),
    "bias-gelu": lambda t, f, a: f.gelu(a[next(iter(a))] + a[list(a)[1]]),
    "positions": lambda t, f, a: _positions(t, a),
    "attention": lambda t, f, a: _attention(f, a),
    "attention-tiles": lambda t, f, a: _attention(f, a, base=2.0),
    "attention-plain": lambda t, f, a: _attention(f, a),
    "copy": lambda t, f, a: a["x"].clone(),
    "saxpy": lambda t, f, a: t.add(a["y"], a["x"], alpha=a["a"]),
    "sum": lambda t, f, a: a["x"].sum(),
    "row-sums": lambda t, f, a: a["X"].sum(dim=1),
    "transpose": lambda t, f, a: a["A"].t().contiguous(),
    "batched-transpose": lambda t, f, a: a["X"].mT.contiguous(),
    "permute": lambda t, f, a: a["X"].permute(2, 4, 0, 3, 1).contiguous(),
    "split-heads": lambda t, f, a: a["X"].transpose(1, 2).contiguous(),
    "embedding": lambda t, f, a: a["table"][a["at"]],
    "layernorm": lambda t, f, a: f.layer_norm(a["X"], a["gain"].shape, a["gain"], a["bias"], a["eps"]),
    "rmsnorm": lambda t, f, a: _rmsnorm(t, a),
    "histogram": lambda t, f, a: t.bincount(a["x"], minlength=1024).int(),
    "blur": lambda t, f, a: _blur(f, a),
    "product-f32": lambda t, f, a: a["A"] @ a["B"],
    "product-bf16": lambda t, f, a: a["A"] @ a["B"],
    "product-f8": lambda t, f, a: _fp8(t, a),
    "product-f16": lambda t, f, a: a["A"] @ a["B"],
    "product-tf32": lambda t, f, a: _tf32(t, a),
    "product-batched": lambda t, f, a: t.bmm(a["A"], a["C"]),
    "product-first-turned": lambda t, f, a: a["A"].t() @ a["B"],
    "product-second-turned": lambda t, f, a: a["A"] @ a["B"].t(),
}
