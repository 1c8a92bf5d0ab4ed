"""Programs whose rows go through several products, in the plainest words, and schedules of them by hand."""

from __future__ import annotations


def exact(d: int = 16, keys: int = 32, align: str = "") -> str:
    """Whole numbers, and halves of them, `keys` at a time: no sum rounds."""
    of = f"bf16[H, L, {d}]{align}"
    return f"""\
fn f(Q: {of}, K: {of}, V: {of}, most: f32): (f32[H, L, {d}], f32[H, L], f32[H, L]) {{
    new O: f32[H, L, {d}]
    new sums: f32[H, L]
    new tops: f32[H, L]
    let Kp = pad(K, (0, 0, 0), (0, {keys - 1}, 0), 0.0)
    let Vp = pad(V, (0, 0, 0), (0, {keys - 1}, 0), 0.0)
    par H |h| {{ par L |i| {{
        new m: f32
        new l: f32
        new acc: f32[{d}]
        m = 0.0
        l = 0.0
        par {d} |da| {{ acc[da] = 0.0 }}
        seq (L + {keys - 1}) / {keys} |kb| {{
            new s: f32[{keys}]
            new p: bf16[{keys}]
            par {keys} |j| {{ s[j] = 0.0 }}
            par {keys} |js| {{ seq {d} |ds| reduce(s) {{ s[js] += Q[h, i, ds] * Kp[h, {keys} * kb + js, ds] }} }}
            par {keys} |jk| {{ s[jk] = select({keys} * kb + jk < L, min(max(s[jk], 0.0), most), 0.0) }}
            par {keys} |jm| reduce(m) {{ m max= s[jm] }}
            par {keys} |jl| reduce(l) {{ l += s[jl] }}
            par {keys} |jp| {{ p[jp] = bf16(s[jp]) }}
            par {d} |dk| {{ acc[dk] = acc[dk] * 0.5 + m }}
            par {d} |dv| {{ seq {keys} |jv| reduce(acc) {{ acc[dv] += p[jv] * Vp[h, {keys} * kb + jv, dv] }} }}
        }}
        par {d} |d| {{ O[h, i, d] = acc[d] - l }}
        sums[h, i] = l
        tops[h, i] = m
    }} }}
    return O, sums, tops
}}
"""


EXACT = exact()

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


def by_warpgroups(
    d: int = 64, keys: int = 64, rows: int = 64, last: str = "r_14", of: str = "bf16", more: str = "pipeline(kb, stages=2)"
) -> str:
    """A schedule of both products by warpgroups of 64 of a block's `rows`: the second one reads what lanes hold."""
    wide, tall = (f", box=(1, {count}, 64)" if d > 64 else "" for count in (keys, rows))
    strips = ("split(i, 64) -> (bi, r)\n    reorder(bi, kb, r)", "distribute(r)")
    if rows > 64:
        strips = (
            f"split(i, {rows}) -> (bi, ii)\n    split(ii, 64) -> (w, r)\n    reorder(bi, kb, w, r)",
            "distribute(r)\n    distribute(w)\n    bind(w, block.y)",
        )
    return f"""
schedule f for sm_90a {{
    {strips[0]}
    {strips[1]}
    stage(Q, at=bi, in=shared, via=tma, swizzle=128B{tall}) -> Qs
    stage(K, at=kb, in=shared, via=tma, swizzle=128B{wide}) -> Ks
    stage(V, at=kb, in=shared, via=tma, swizzle=128B{wide}) -> Vs
    mma(r, js, ds, wgmma_m64n{keys}k16_f32_{of})
    mma({last}, dv, jv, wgmma_m64n{d}k16_f32_{of}_ar_bn)
    {more}
}}
"""
