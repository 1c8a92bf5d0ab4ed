"""Programs whose rows are too long for one block, with schedules that give a row to the blocks of a cluster."""

from __future__ import annotations


def normalised(n: int, dtype: str = "f32") -> str:
    """Greatest and sum of a row, then each element in terms of both: a softmax of which every step is exact."""
    least = "-inf" if dtype.startswith(("f", "bf")) else "-100"
    return f"""
fn normalised(x: {dtype}[M, {n}]): {dtype}[M, {n}] {{
    new y: {dtype}[M, {n}]
    par M |r| {{
        new row: {dtype}[{n}]
        par {n} |j| {{ row[j] = x[r, j] }}
        new most: {dtype} = {least}
        par {n} |k| reduce(most) {{ most max= row[k] }}
        new all: {dtype} = 0
        par {n} |l| reduce(all) {{ all += most - row[l] }}
        par {n} |o| {{ y[r, o] = row[o] * most + all }}
    }}
    return y
}}"""


def blocked(size: int, *loops: str) -> str:
    """Each block of the cluster has `size` neighbouring iterations of each of the loops."""
    return "\n".join(f"split({each}, {size}) -> ({each}_c, {each}_e)  bind({each}_c, cluster.x)" for each in loops)


def in_turns(blocks: int, *loops: str) -> str:
    """Neighbouring iterations are other blocks'."""
    every = (f"split({each}, {blocks}) -> ({each}_e, {each}_c)  reorder({each}_c, {each}_e)" for each in loops)
    return "\n".join((*every, *(f"bind({each}_c, cluster.x)" for each in loops)))


HALO = """
fn halo(x: f32[M, N]): f32[M, N] where N <= 150 {
    new y: f32[M, N]
    par M |r| {
        new t: f32[3, 50]
        par 3 |c| #cluster { par 50 |j| { if 50 * c + j < N { t[c, j] = 2.0 * x[r, 50 * c + j] } } }
        par 3 |d| #cluster { par 50 |k| { if 50 * d + k < N {
            y[r, 50 * d + k] = t[d, k]
                + select(50 * d + k > 0, t[(50 * d + k - 1) / 50, (50 * d + k - 1) % 50], 0.0)
                + select(50 * d + k + 1 < N, t[(50 * d + k + 1) / 50, (50 * d + k + 1) % 50], 0.0)
        } } }
    }
    return y
}"""


def sweeps(n: int) -> str:
    """Elements that meet their neighbours on either side, as often as asked."""
    return f"""
fn sweeps(x: f32[M, {n}], times: f32[T]): f32[M, {n}] {{
    new y: f32[M, {n}]
    par M |r| {{
        new a: f32[{n}]
        new b: f32[{n}]
        par {n} |i| {{ a[i] = x[r, i] }}
        seq T |t| {{
            par {n} |j| {{ b[j] = a[j] + select(j > 0, a[max(j - 1, 0)], 0.0) * times[t] }}
            par {n} |k| {{ a[k] = b[k] - select(k < {n - 1}, b[min(k + 1, {n - 1})], 0.0) }}
        }}
        par {n} |l| {{ y[r, l] = a[l] }}
    }}
    return y
}}"""


def turned(dtype: str) -> str:
    """Tiles turned round, in a grid of three loops."""
    return f"""
fn turned(x: {dtype}[A, B, C, 12, 20]): {dtype}[A, B, C, 20, 12] {{
    new y: {dtype}[A, B, C, 20, 12]
    par A |a| {{ par B |b| {{ par C |c| {{
        new s: {dtype}[12, 20]
        par 12 |i| {{ par 20 |j| {{ s[i, j] = x[a, b, c, i, j] }} }}
        par 20 |k| {{ par 12 |l| {{ y[a, b, c, k, l] = s[l, k] }} }}
    }} }} }}
    return y
}}"""
