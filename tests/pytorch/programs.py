"""Programs for operators."""

from __future__ import annotations

SCALE = """
fn scale(x: f32[n, m], w: f32[m], a: f32): f32[n, m] {
    new y: f32[n, m]
    par n, m |i, j| { y[i, j] = a * x[i, j] * w[j] }
    return y
}

fn scale_back(x: f32[n, m], w: f32[m], a: f32, grad_y: f32[n, m]): (f32[n, m], f32[m]) {
    new grad_x: f32[n, m]
    new grad_w: f32[m]
    par n, m |i, j| { grad_x[i, j] = a * grad_y[i, j] * w[j] }
    par m |j| {
        grad_w[j] = 0.0
        seq n |i| { grad_w[j] += a * grad_y[i, j] * x[i, j] }
    }
    return (grad_x, grad_w)
}

fn add_to(inout y: f32[n], x: f32[n]) {
    par n |i| { y[i] += x[i] }
}

fn fold(x: f32[n * m], v: f32): f32[m] {
    new y: f32[m]
    par m |j| { y[j] = v }
    return y
}

fn halves(x: bf16[2 * n], k: i32): (bf16[n], i64[n]) {
    new y: bf16[n]
    new z: i64[n]
    par n |i| { y[i] = x[2 * i] + x[2 * i + 1]  z[i] = i64(k) + 1 }
    return (y, z)
}

fn other(grad_y: f32[n, m], b: f32[m]): f32[n, m] {
    new grad_x: f32[n, m]
    par n, m |i, j| { grad_x[i, j] = grad_y[i, j] * b[j] }
    return grad_x
}
"""
