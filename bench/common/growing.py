"""Programs as long as one likes: what compiling them costs has to grow as their length does.

nests(n)       n nests, one after the other, each of a new local
updates(n)     n nests that write two arrays in turn, so that each depends on the ones before
statements(n)  n statements of one nest
phases(n)      n `par`s of one block that meet in its shared memory
deep(n)        one nest of n loops, its array transposed
functions(n)   n functions: products, convolutions and sweeps, no two of one shape
"""

from __future__ import annotations

from collections.abc import Callable


def nests(count: int) -> str:
    """A chain: each nest reads what the one before wrote."""
    news = "\n".join(f"    new y{k}: f32[n]" for k in range(count))
    pars = "\n".join(f"    par n |i| {{ y{k}[i] = {f'y{k - 1}' if k else 'x'}[i] + {k}.0 }}" for k in range(count))
    return f"fn nests(x: f32[n]): f32[n] {{\n{news}\n{pars}\n    return y{count - 1}\n}}\n"


def updates(count: int) -> str:
    """Two arrays, in turn."""
    pars = "\n".join(f"    par n |i| {{ {'ab'[k % 2]}[i] = {'ba'[k % 2]}[i] + {k}.0 }}" for k in range(count))
    return f"fn updates(inout a: f32[n], inout b: f32[n]) {{\n{pars}\n}}\n"


def statements(count: int) -> str:
    """One element after the other of one row, updated again and again."""
    binds = "\n".join(f"        a[i] = a[i] * 0.5 + x[i + {k % 3}]" for k in range(count))
    return f"""fn statements(x: f32[n + 2]): f32[n] {{
    new a: f32[n]
    par n |i| {{
        a[i] = 0.0
{binds}
    }}
    return a
}}
"""


def phases(count: int) -> str:
    """Two rows that a block reverses into each other."""
    pars = "\n".join(f"        par 128 |t| {{ {'ab'[k % 2]}[t] = {'ba'[k % 2]}[127 - t] + {k}.0 }}" for k in range(count))
    return f"""fn phases(x: f32[n, 128]): f32[n, 128] {{
    new y: f32[n, 128]
    par n |g| {{
        new a: f32[128]
        new b: f32[128]
        par 128 |t| {{ a[t] = x[g, t] }}
        par 128 |t| {{ b[t] = x[g, t] }}
{pars}
        par 128 |t| {{ y[g, t] = a[t] + b[t] }}
    }}
    return y
}}
"""


def deep(count: int) -> str:
    """One element an iteration."""
    sizes, indices = [f"n{k}" for k in range(count)], [f"i{k}" for k in range(count)]
    pars = " ".join(f"par {n} |{i}| {{" for n, i in zip(sizes, indices, strict=True))
    shape, other = ", ".join(sizes), ", ".join(reversed(sizes))
    return f"""fn deep(x: f32[{other}]): f32[{shape}] {{
    new y: f32[{shape}]
    {pars} y[{", ".join(indices)}] = x[{", ".join(reversed(indices))}] + 1.0 {"}" * count}
    return y
}}
"""


def functions(count: int) -> str:
    """A file of them."""
    kinds = _product, _convolution, _sweep
    return "\n".join(kinds[k % 3](k) for k in range(count))


def _product(k: int) -> str:
    fixed = 64 + 16 * (k % 7)
    return f"""fn product{k}(A: f32[M, {fixed}], B: f32[{fixed}, N]): f32[M, N] {{
    new C: f32[M, N]
    par M |i| {{ par N |j| {{
        C[i, j] = {k}.0
        seq {fixed} |k| reduce(C) {{ C[i, j] += A[i, k] * B[k, j] }}
    }} }}
    return C
}}
"""


def _convolution(k: int) -> str:
    rows, columns = 2 + k % 4, 2 + k // 4 % 4
    return f"""fn convolution{k}(X: f32[H + {rows - 1}, W + {columns - 1}, C], K: f32[{rows}, {columns}, C, F]): f32[H, W, F] {{
    new Y: f32[H, W, F]
    par H |p| {{ par W |q| {{ par F |f| {{
        Y[p, q, f] = {k}.0
        seq {rows} |r| reduce(Y) {{ seq {columns} |s| reduce(Y) {{ seq C |c| reduce(Y) {{
            Y[p, q, f] += X[p + r, q + s, c] * K[r, s, c, f]
        }} }} }}
    }} }} }}
    return Y
}}
"""


def _sweep(k: int) -> str:
    wide = 1 + k % 3
    inner = f"par H - {2 * wide} |i| {{ par W - {2 * wide} |j| {{"
    means = [
        f"        {inner} {to}[i + {wide}, j + {wide}] = 0.25 * ({of}[i, j + {wide}] + {of}[i + {2 * wide}, j + {wide}]"
        f" + {of}[i + {wide}, j] + {of}[i + {wide}, j + {2 * wide}]) }} }}"
        for to, of in (("next", "now"), ("now", "next"))
    ]
    return f"""fn sweep{k}(A: f32[H, W]): f32[H, W] {{
    new now: f32[H, W]
    new next: f32[H, W]
    par H |i| {{ par W |j| {{
        now[i, j] = A[i, j]
        next[i, j] = A[i, j]
    }} }}
    seq {k + 1} |t| {{
{means[0]}
{means[1]}
    }}
    return now
}}
"""


GROWING: dict[str, Callable[[int], str]] = {
    each.__name__: each for each in (nests, updates, statements, phases, deep, functions)
}
