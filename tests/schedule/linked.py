"""Programs whose rows go through several products, in the plainest words, and schedules of them by hand."""

from __future__ import annotations


def online(
    of: str = "bf16", d: int = 16, keys: int = 32, causal: bool = False, align: str = "", where: str = "", block: int = 0
) -> str:
    """Attention with a running maximum, sum and result, `keys` at a time; of any length, but for `where`."""
    turns, kept = (f"i / {block or keys} + 1", "<= i") if causal else (f"(L + {keys - 1}) / {keys}", "< L")
    if causal and block > keys:
        turns = f"{block // keys} * (i / {block} + 1)"
    wide = max(block, keys) - 1
    return f"""\
fn f(Q: {of}[H, L, {d}]{align}, K: {of}[H, L, {d}]{align}, V: {of}[H, L, {d}]{align}, scale: f32): {of}[H, L, {d}] {where}{{
    new O: {of}[H, L, {d}]
    let Kp = pad(K, (0, 0, 0), (0, {wide}, 0), 0.0)
    let Vp = pad(V, (0, 0, 0), (0, {wide}, 0), 0.0)
    par H |h| {{ par L |i| {{
        new m: f32
        new l: f32
        new acc: f32[{d}]
        m = -inf
        l = 0.0
        par {d} |da| {{ acc[da] = 0.0 }}
        seq {turns} |kb| {{
            new s: f32[{keys}]
            new p: {of}[{keys}]
            new top: f32
            new keep: f32
            par {keys} |j| {{ s[j] = 0.0 }}
            par {keys} |js| {{ seq {d} |ds| reduce(s) {{ s[js] += Q[h, i, ds] * Kp[h, {keys} * kb + js, ds] }} }}
            par {keys} |jk| {{ s[jk] = select({keys} * kb + jk {kept}, s[jk] * scale, -inf) }}
            top = m
            par {keys} |jm| reduce(top) {{ top max= s[jm] }}
            keep = exp(m - top)
            l = l * keep
            m = top
            par {keys} |je| {{ s[je] = exp(s[je] - top) }}
            par {keys} |jl| reduce(l) {{ l += s[jl] }}
            par {keys} |jp| {{ p[jp] = {of}(s[jp]) }}
            par {d} |dk| {{ acc[dk] = acc[dk] * keep }}
            par {d} |dv| {{ seq {keys} |jv| reduce(acc) {{ acc[dv] += p[jv] * Vp[h, {keys} * kb + jv, dv] }} }}
        }}
        par {d} |d| {{ O[h, i, d] = {of}(acc[d] / l) }}
    }} }}
    return O
}}
"""


EXACT = """\
fn f(Q: bf16[H, L, 16], K: bf16[H, L, 16], V: bf16[H, L, 16], most: f32): (f32[H, L, 16], f32[H, L], f32[H, L]) {
    new O: f32[H, L, 16]
    new sums: f32[H, L]
    new tops: f32[H, L]
    let Kp = pad(K, (0, 0, 0), (0, 31, 0), 0.0)
    let Vp = pad(V, (0, 0, 0), (0, 31, 0), 0.0)
    par H |h| { par L |i| {
        new m: f32
        new l: f32
        new acc: f32[16]
        m = 0.0
        l = 0.0
        par 16 |da| { acc[da] = 0.0 }
        seq (L + 31) / 32 |kb| {
            new s: f32[32]
            new p: bf16[32]
            par 32 |j| { s[j] = 0.0 }
            par 32 |js| { seq 16 |ds| reduce(s) { s[js] += Q[h, i, ds] * Kp[h, 32 * kb + js, ds] } }
            par 32 |jk| { s[jk] = select(32 * kb + jk < L, min(max(s[jk], 0.0), most), 0.0) }
            par 32 |jm| reduce(m) { m max= s[jm] }
            par 32 |jl| reduce(l) { l += s[jl] }
            par 32 |jp| { p[jp] = bf16(s[jp]) }
            par 16 |dk| { acc[dk] = acc[dk] * 0.5 + m }
            par 16 |dv| { seq 32 |jv| reduce(acc) { acc[dv] += p[jv] * Vp[h, 32 * kb + jv, dv] } }
        }
        par 16 |d| { O[h, i, d] = acc[d] - l }
        sums[h, i] = l
        tops[h, i] = m
    } }
    return O, sums, tops
}
"""
"""Whole numbers, and halves of them: no sum rounds."""

CHAIN = """\
fn f(X: bf16[B, 32], W: bf16[32, 64], V: bf16[64, 16], b: f32[64]): f32[B, 16] {
    new Y: f32[B, 16]
    par B |i| {
        new h: f32[64]
        new g: bf16[64]
        new y: f32[16]
        par 64 |j| { h[j] = 0.0 }
        par 64 |js| { seq 32 |k| reduce(h) { h[js] += X[i, k] * W[k, js] } }
        par 64 |jr| { g[jr] = bf16(max(h[jr] + b[jr], 0.0)) }
        par 16 |n| { y[n] = 0.0 }
        par 16 |ns| { seq 64 |t| reduce(y) { y[ns] += g[t] * V[t, ns] } }
        par 16 |no| { Y[i, no] = y[no] }
    }
    return Y
}
"""
"""Two layers of a network."""


def by_hand(rows: int = 32, last: str = "r_14", more: str = "pipeline(kb, stages=2)", staged: str = "") -> str:
    """A schedule: strips of 16 of a block's `rows`; `last`: the loop over rows of the second product."""
    return f"""
schedule f for cuda {{
    split(i, {rows}) -> (bi, ii)
    split(ii, 16) -> (w, r)
    reorder(bi, kb, w, r)
    distribute(r)
    distribute(w)
    bind(w, block.y)
    stage(Q, at=bi, in=shared) -> Qs
    stage(K, at=kb, in=shared) -> Ks
    stage(V, at=kb, in=shared) -> Vs
    {staged}
    mma(r, js, ds)
    mma({last}, dv, jv)
    {more}
}}
"""
