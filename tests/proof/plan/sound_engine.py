"""Small programs whose tiles the engine brings: to several blocks of a cluster, in runs, and out again, or into sums."""

from tests.proof.plan import sound_memory

VECTOR = """
fn f(x: i32[n, 8], w: i32[8] align(16)): i32[n, 8] {
    new y: i32[n, 8]
    par n |i| { par 8 |j| { y[i, j] = x[i, j] * w[7 - j] } }
    return y
}"""
TURNS = """
fn f(x: i32[n, 8], w: i32[m, 8] align(16)): i32[n, 8] {
    new y: i32[n, 8]
    par n |i| {
        par 8 |j| { y[i, j] = x[i, j] }
        seq m |k| { par 8 |j| { y[i, j] = y[i, j] * 2 + w[k, 7 - j] } }
    }
    return y
}"""
ONCE = "{ par 8 |j| { y[i, j] = y[i, j] * 2 + w[k, 7 - j] } }"
AGAIN = TURNS.replace(f"seq m |k| {ONCE}", f"seq 2 |t| {{ seq m |k| {ONCE.replace('j] }', 'j] * t }')} }}")
PRODUCT = sound_memory.PRODUCT.replace("m]", "4 * m]").replace("par m", "par 4 * m")
TILES = """
    split(i, 2) -> (bi, ti) split(j, 4) -> (bj, tj) split(k, 4) -> (ko, ki)
    reorder(bi, bj, ko, ti, tj, ki)
    bind(bi, grid.y) bind(bj, grid.x) bind(ti, block.y) bind(tj, block.x)
    CLUSTER
    stage(A, at=ko, in=shared, via=tma, fill=zero, multicast=bj) -> As
    stage(B, at=ko, in=shared, via=tma, fill=zeroMORE) -> Bs"""
WIDE = """
fn f(x: i32[n, 8], w: i32[8, 8] align(16)): i32[n, 8] {
    new y: i32[n, 8]
    par n |i| { par 8 |j| {
        y[i, j] = 0
        seq 8 |k| reduce(y) { y[i, j] += x[i, k] * w[j, k] }
    } }
    return y
}"""
ROWS = """
fn f(x: i32[n, 8] align(16)): i32[n, 8] {
    new y: i32[n, 8]
    par 1 |b| { seq n |i| { par 8 |j| { y[i, j] = x[i, j] + x[i, 7 - j] } } }
    return y
}"""
LAYERS = """
fn f(x: i32[n, m, 8], inout y: i32[m, 8] align(16)) {
    par n |b| reduce(y) { par m |i| { par 8 |j| { y[i, j] += x[b, i, j] } } }
}"""
MOST = """
fn f(x: i32[n, m, 8], inout y: i32[m, 8] align(16)): i32[m, 8] {
    new z: i32[m, 8]
    par n |b| reduce(y) { par m |i| { par 8 |j| { y[i, j] max= x[b, i, j] } } }
    par m |p| { par 8 |q| { z[p, q] = y[p, 7 - q] } }
    return z
}"""
INNER = """
fn f(x: i32[n, m, 8, 3], inout y: i32[m, 8] align(16)) {
    par n |b| reduce(y) { par m |i| { par 8 |j| { seq 3 |k| { y[i, j] += x[b, i, j, k] } } } }
}"""
BLOCKS = "bind(i, grid.x) cluster(i, 2) "
SHARED = "stage(w, at=AT, in=shared, via=tma, multicast=iMORE) -> ws "
STAGED = "bind(b, grid.x) stage(x, at=i, in=shared, via=bulk) -> xs "
SUMS = "bind(b, grid.y) bind(i, grid.x) stage(y, at=i, in=shared, via={}) -> ys"


def shared(at: str, more: str = "") -> str:
    return BLOCKS + SHARED.replace("AT", at).replace("MORE", more)


def tiles(cluster: str, more: str = "") -> str:
    return TILES.replace("CLUSTER", cluster).replace("MORE", more)


SQUARE = tiles("cluster(bj, 2) cluster(bi, 2)", ", multicast=bi")

ENGINE = {
    "vector for two": (VECTOR, shared("i")),
    "vector for three": (VECTOR, shared("i").replace("cluster(i, 2)", "cluster(i, 3)")),
    "turns for two": (TURNS, shared("k")),
    "ring for two": (TURNS, shared("k") + "pipeline(k, stages=2)"),
    "ring of three for two": (TURNS, shared("k") + "pipeline(k, stages=3)"),
    "ring in a loop for two": (AGAIN, shared("k") + "pipeline(k, stages=2)"),
    "swizzled for two": (WIDE, shared("i", ", swizzle=32B")),
    "halves for two": (WIDE, shared("i")),
    "rows for two": (PRODUCT, tiles("cluster(bj, 2)")),
    "rows and columns": (PRODUCT, SQUARE),
    "ring of rows and columns": (PRODUCT, SQUARE + " pipeline(ko, stages=2)"),
    "runs": (ROWS, STAGED),
    "ring of runs": (ROWS, STAGED + "pipeline(i, stages=2)"),
    "runs stored": (ROWS, STAGED + "stage(y, at=i, in=shared, via=bulk) -> ys"),
    "sums of tiles": (LAYERS, SUMS.format("tma")),
    "sums of runs": (LAYERS, SUMS.format("bulk")),
    "sums of tiles in turns": (LAYERS, "bind(b, grid.x) stage(y, at=i, in=shared, via=tma) -> ys"),
    "sums of runs in turns": (INNER, "bind(b, grid.x) stage(y, at=i, in=shared, via=bulk) -> ys"),
    "most, then read": (MOST, SUMS.format("tma")),
}
"""Each with what its schedule does."""
