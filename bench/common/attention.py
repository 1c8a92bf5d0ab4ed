"""Attention in one sweep over blocks of keys, as a program without a schedule."""

from __future__ import annotations

CASES = (
    (64, 64, False),
    (128, 64, False),
    (64, 128, False),
    (128, 128, False),
    (64, 64, True),
    (128, 64, True),
    (64, 128, True),
)
"""What is measured: elements of a row, keys of a block, whether later keys are masked."""


def online(
    of: str = "bf16", d: int = 16, keys: int = 32, causal: bool = False, align: str = "", where: str = "", block: int = 0
) -> str:
    """Attention with a running maximum, sum and result, `keys` at a time; of any length, but for `where`.

    Rows have `d` elements of type `of`, which begin as `align` says. `causal`: later keys are masked, and left out by blocks of
    `block` keys.
    """
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
            par {keys} |jk| {{ s[jk] = select({keys} * kb + jk {kept}, s[jk], -inf) }}
            top = m
            par {keys} |jm| reduce(top) {{ top max= s[jm] }}
            keep = exp2(m * scale - top * scale)
            l = l * keep
            m = top
            par {keys} |je| {{ s[je] = exp2(fma(s[je], scale, -(top * scale))) }}
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
