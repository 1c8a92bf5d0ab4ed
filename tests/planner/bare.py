"""Programs that promise nothing of where arrays begin, nor of sizes."""

PRODUCT = """
fn product(A: bf16[m, p], B: bf16[p, n]): bf16[m, n] {
    new C: bf16[m, n]
    par m, n |i, j| {
        new total: f32
        total = 0.0
        seq p |l| reduce(total) { total += A[i, l] * B[l, j] }
        C[i, j] = bf16(total)
    }
    return C
}
"""
TURNED = """
fn turned(A: f32[m, n]): f32[n, m] {
    new B: f32[n, m]
    par n, m |j, i| { B[j, i] = A[i, j] }
    return B
}
"""
TILED = """
fn tiled(A: f32[m, p], B: f32[p, n]): f32[m, n] {
    new C: f32[m, n]
    par m, n |i, j| {
        C[i, j] = 0.0
        seq p |l| reduce(C) { C[i, j] += A[i, l] * B[l, j] }
    }
    return C
}
"""
