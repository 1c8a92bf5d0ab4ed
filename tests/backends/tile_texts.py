"""Kernels that copy tiles of tensors, in the text of the kernel form: loads, stores, sums, rings, clusters, rows by number."""

from __future__ import annotations

MAKE = """\
    if (i32(t) == 0:i32) {
        mbarrier init full[0] count 1
        fence init
    }
    barrier block
"""
"""One barrier, made by one thread."""

LOAD = f"""\
plan load
    param x: f32[m, n] align 16
    result z: f32[16 * a, 32 * b]
    size m, n, a, b
    require (n % 4) == 0
    require m > 0
    require n > 0
{{
    launch load_0
}}

kernel load_0
    buffer z: f32[16 * a, 32 * b] role result
    size a, b
    writes z
    axis grid.x q < b
    axis grid.y p < a
    axis block.x t < 64
    array shared tile: f32[16, 32] at 128
    array shared full: u64[1] barriers
    map xm of x: f32[m, n] align 16 sizes [n, m] strides [4 * n] box [32, 16] steps [1, 1]
{{
{MAKE}    if (i32(t) == 0:i32) {{
        prefetch xm
        mbarrier expect full[0] bytes 2048
        tensor load tile[0, 0] = xm[32 * q - 4, 16 * p - 1] arrives full[0]
    }}
    mbarrier wait full[0] parity 0 covers RAW tile
    for r in 0..8 {{
        z[16 * p + 2 * r + t / 32, 32 * q + t % 32] = tile[2 * r + t / 32, t % 32]
    }}
}}
"""
"""Boxes of a matrix, from one row above it and four columns to its left on; what lies outside is zero."""

STRIDED = (
    LOAD.replace("load", "strided")
    .replace("tensor strided", "tensor load")
    .replace("z: f32[16 * a", "z: f32[8 * a")
    .replace("tile: f32[16", "tile: f32[8")
    .replace("steps [1, 1]", "steps [1, 2]")
    .replace("bytes 2048", "bytes 1024")
    .replace("0..8 {", "0..4 {")
    .replace("z[16 * p", "z[8 * p")
)
"""Every other row of each box."""

STORE = """\
plan store
    param x: f32[m, n]
    result z: f32[m, n] align 16
    size m, n
    require (n % 4) == 0
    require m > 0
    require n > 0
{
    launch store_0
}

kernel store_0
    buffer x: f32[m, n]
    size m, n
    writes z
    axis grid.x q < (n + 31) / 32
    axis grid.y p < (m + 7) / 8
    axis block.x t < 64
    array shared tile: f32[8, 32] at 128
    map zm of z: f32[m, n] align 16 role result sizes [n, m] strides [4 * n] box [32, 8] steps [1, 1]
{
    for r in 0..4 {
        let v: f32 = 0.0:f32
        if ((i32(8 * p + 2 * r + t / 32) < i32(m)) and (i32(32 * q + t % 32) < i32(n))) {
            v = x[8 * p + 2 * r + t / 32, 32 * q + t % 32]
        }
        tile[2 * r + t / 32, t % 32] = (v + 1.0:f32)
    }
    fence async
    barrier block covers RAW tile
    if (i32(t) == 0:i32) {
        tensor store zm[32 * q, 8 * p] = tile[0, 0]
        commit_bulk
        wait_bulk 0 read covers WAR tile
    }
    barrier block covers WAR tile
    tile[t / 32, t % 32] = 0.0:f32
}
"""
"""Tiles that threads wrote go out by the engine, which leaves alone what lies outside."""

REDUCE = """\
plan reduce
    param x: f32[c, 64]
    param z: f32[64] align 16 role inout
    result z
    size c
{
    launch reduce_0
}

kernel reduce_0
    buffer x: f32[c, 64]
    size c
    writes z
    axis grid.x p < c
    axis block.x t < 64
    array shared tile: f32[64] at 128
    map zm of z: f32[64] align 16 role inout sizes [64] strides [] box [64] steps [1]
{
    tile[t] = x[p, t]
    fence async
    barrier block covers RAW tile
    if (i32(t) == 0:i32) {
        tensor reduce add zm[0] = tile[0]
        commit_bulk
        wait_bulk 0
    }
}
"""
"""Every block adds its row to one vector."""

TRANSPOSE = f"""\
plan transpose
    param x: f32[m, n] align 16
    result z: f32[n, m]
    size m, n
    require (n % 4) == 0
    require m > 0
    require n > 0
{{
    launch transpose_0
}}

kernel transpose_0
    buffer z: f32[n, m] role result
    size m, n
    writes z
    axis grid.x q < (n + 31) / 32
    axis grid.y p < (m + 31) / 32
    axis block.x t < 64
    array shared tile: f32[32, 32] at 1024
    array shared full: u64[1] barriers
    map xm of x: f32[m, n] align 16 sizes [n, m] strides [4 * n] box [32, 32] steps [1, 1] swizzle 128
{{
{MAKE}    if (i32(t) == 0:i32) {{
        mbarrier expect full[0] bytes 4096
        tensor load tile[0, 0] = xm[32 * q, 32 * p] arrives full[0]
    }}
    mbarrier wait full[0] parity 0 covers RAW tile
    for c in 0..16 {{
        if ((i32(32 * q + 2 * c + t / 32) < i32(n)) and (i32(32 * p + t % 32) < i32(m))) {{
            let v: f32 = tile[t % 32, 4 * xor((2 * c + t / 32) / 4, t % 8, 3) + (2 * c + t / 32) % 4]
            z[32 * q + 2 * c + t / 32, 32 * p + t % 32] = v
        }}
    }}
}}
"""
"""Columns of a tile are read without conflicts: each row's chunks of 16 bytes are permuted."""

RING = """\
plan ring
    param x: f32[c, 256] align 16
    result z: f32[256] align 16
    size c
    require c > 0
{
    launch ring_0
}

kernel ring_0
    buffer z: f32[256] align 16 role result
    size c
    writes z
    axis block.x t < 64
    array shared stage: f32[3, 256] at 128
    array shared full: u64[3] barriers
    array shared empty: u64[3] barriers
    map xm of x: f32[c, 256] align 16 sizes [256, c] strides [1024] box [256, 1] steps [1, 1]
{
    if (i32(t) == 0:i32) {
        for s in 0..3 unroll {
            mbarrier init full[s] count 1
            mbarrier init empty[s] count 64
        }
        fence init
    }
    barrier block
    if (i32(t) == 0:i32) {
        for i in 0..min(c, 3) {
            mbarrier expect full[i] bytes 1024
            tensor load stage[i, 0] = xm[0, i] arrives full[i]
        }
    }
    let s0: f32 = 0.0:f32
    let s1: f32 = 0.0:f32
    let s2: f32 = 0.0:f32
    let s3: f32 = 0.0:f32
    for i in 0..c {
        mbarrier wait full[i % 3] parity (i / 3) % 2 covers RAW stage
        vector v0, v1, v2, v3 = stage[i % 3, 4 * t]
        s0 = (s0 + v0)
        s1 = (s1 + v1)
        s2 = (s2 + v2)
        s3 = (s3 + v3)
        fence async
        mbarrier arrive empty[i % 3]
        if ((i32(t) == 0:i32) and (i32(i + 3) < i32(c))) {
            mbarrier wait empty[i % 3] parity (i / 3) % 2 covers WAR stage carried i
            mbarrier expect full[i % 3] bytes 1024
            tensor load stage[i % 3, 0] = xm[0, i + 3] arrives full[i % 3]
        }
    }
    vector z[4 * t] = s0, s1, s2, s3
}
"""
"""Rows are summed out of a ring of three stages; a stage is filled again when all threads have read it."""

MET = (
    LOAD.replace("load", "met")
    .replace("tensor met", "tensor load")
    .replace(
        "    }\n    mbarrier wait full[0] parity 0 covers RAW tile\n",
        "        mbarrier wait full[0] parity 0 covers RAW tile\n    }\n    barrier block covers RAW tile\n",
    )
)
"""One thread waits for the copy, and the others for that thread."""

WARPS = (
    MET.replace("met", "warps")
    .replace("i32(t) == 0:i32) {\n        prefetch", "i32(t % 32) == 0:i32) {\n        prefetch")
    .replace("full: u64[1]", "full: u64[2]")
    .replace("tile: f32[16, 32]", "tile: f32[2, 16, 32]")
    .replace("mbarrier init full[0] count 1\n", "mbarrier init full[0] count 1\n        mbarrier init full[1] count 1\n")
    .replace("expect full[0]", "expect full[t / 32]")
    .replace("load tile[0, 0]", "load tile[t / 32, 0, 0]")
    .replace("arrives full[0]", "arrives full[t / 32]")
    .replace("wait full[0]", "wait full[t / 32]")
    .replace("barrier block covers RAW", "barrier warp covers RAW")
    .replace("= tile[2 * r", "= tile[t / 32, 2 * r")
)
"""Each warp has a barrier and a copy of its own, for which one of its lanes waits."""

BULK = f"""\
plan bulk
    param x: f32[64 * c] align 16
    result z: f32[64 * c] align 16
    size c
{{
    launch bulk_0
}}

kernel bulk_0
    buffer x: f32[64 * c] align 16
    buffer z: f32[64 * c] align 16 role result
    size c
    writes z
    axis grid.x p < c
    axis block.x t < 64
    array shared tile: f32[64]
    array shared full: u64[1] barriers
{{
{MAKE}    if (i32(t) == 0:i32) {{
        mbarrier expect full[0] bytes 256
        bulk tile[0] = x[64 * p] count 64 arrives full[0]
    }}
    mbarrier wait full[0] parity 0 covers RAW tile
    let v: f32 = tile[63 - t]
    barrier block covers WAR tile
    tile[t] = v
    fence async
    barrier block covers RAW tile
    if (i32(t) == 0:i32) {{
        bulk z[64 * p] = tile[0] count 64
        commit_bulk
        wait_bulk 0
    }}
}}
"""
"""Runs go in and come out reversed, without a map."""

LARGE = (
    RING.replace("ring", "large")
    .replace("f32[3, 256] at 128", "f32[60, 256] at 128")
    .replace("stage[i % 3", "stage[10 * (i % 3)")
    .replace("stage[i, 0]", "stage[10 * i, 0]")
)
"""A ring in more shared memory than a kernel may declare."""

SHARED = """\
plan shared
    param x: f32[m, n] align 16
    result z: f32[2 * b, 32 * a]
    size m, n, a, b
    require (n % 4) == 0
    require m > 0
    require n > 0
{
    launch shared_0
}

kernel shared_0
    buffer z: f32[2 * b, 32 * a] role result
    size n, a, b
    writes z
    axis grid.x q < 2 * b
    axis grid.y p < a
    axis cluster.x u < 2
    axis block.x t < 32
    array shared tile: f32[32, 32] at 128
    array shared full: u64[1] barriers
    map xm of x: f32[m, n] align 16 sizes [n, m] strides [4 * n] box [32, 16] steps [1, 1]
{
    if (i32(t) == 0:i32) {
        mbarrier init full[0] count 1
        fence init
    }
    barrier cluster
    let s: f32 = 0.0:f32
    for i in 0..(n + 31) / 32 uniform {
        if (i32(t) == 0:i32) {
            mbarrier expect full[0] bytes 4096
            tensor load tile[16 * u, 0] = xm[32 * i, 32 * p + 16 * u] arrives full[0] to [0, 1] from 0
        }
        mbarrier wait full[0] parity i % 2 covers RAW tile
        for c in 0..32 {
            s = (s + tile[t, c])
        }
        fence async
        barrier cluster covers WAR tile carried i
    }
    z[q, 32 * p + t] = (s + (i32(q) as f32))
}
"""
"""Two blocks sum the same rows: each brings half of a tile to both."""

LED = (
    SHARED.replace("shared_0", "led_0")
    .replace("plan shared", "plan led")
    .replace("box [32, 16]", "box [32, 32]")
    .replace(
        "            tensor load tile[16 * u, 0] = xm[32 * i, 32 * p + 16 * u] arrives full[0] to [0, 1] from 0\n",
        "            if (i32(u) == 0:i32) {\n"
        "                tensor load tile[0, 0] = xm[32 * i, 32 * p] arrives full[0] to [0, 1] from 0\n            }\n",
    )
)
"""The same, where one of the two blocks brings all of it."""


ROWS = f"""\
plan rows
    param x: f32[m, n] align 16
    param I: i32[g, 4]
    param J: i32[g, 4]
    result z: f32[k, n] align 16
    size m, n, g, k
    require (n % 4) == 0
    require m > 0
    require n > 0
    require k > 0
{{
    launch rows_0
}}

kernel rows_0
    buffer I: i32[g, 4]
    buffer J: i32[g, 4]
    size n, g
    writes z
    axis grid.x q < (n + 31) / 32
    axis grid.y p < g
    axis block.x t < 32
    array shared tile: f32[4, 32] at 128
    array shared made: f32[4, 32] at 1024
    array shared full: u64[1] barriers
    map xm of x: f32[m, n] align 16 sizes [n, m] strides [4 * n] box [32, 1] steps [1, 1]
    map zm of z: f32[k, n] align 16 role result sizes [n, k] strides [4 * n] box [32, 1] steps [1, 1] swizzle 128
{{
{MAKE}    if (i32(t) == 0:i32) {{
        mbarrier expect full[0] bytes 512
        tensor load tile[0, 0] = xm[32 * q] rows I[p, 0], I[p, 1], I[p, 2], I[p, 3] arrives full[0]
    }}
    mbarrier wait full[0] parity 0 covers RAW tile
    for r in 0..4 {{
        made[r, 4 * xor(t / 4, r, 3) + t % 4] = (tile[r, t] + (i32(r) as f32))
    }}
    fence async
    barrier block covers RAW made
    if (i32(t) == 0:i32) {{
        tensor store zm[32 * q] rows J[p, 0], J[p, 1], J[p, 2], J[p, 3] = made[0, 0]
        commit_bulk
        wait_bulk 0
    }}
}}
"""
"""Rows that one table names become rows that another one names, four at a time; what is not there is zero, or left out."""
