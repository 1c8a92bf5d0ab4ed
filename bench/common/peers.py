"""The same computations in NumPy, and in Numba where it has something to say."""

from __future__ import annotations

import numba
import numpy as np

_jit = numba.njit(parallel=True, fastmath=True, cache=False)


def saxpy(a: float, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """A x + y, by NumPy."""
    return np.float32(a) * x + y


@_jit
def saxpy_numba(a, x, y):
    """A x + y, by Numba."""
    z = np.empty_like(x)
    a = np.float32(a)
    for i in numba.prange(x.size):
        z[i] = a * x[i] + y[i]
    return z


def total(x: np.ndarray) -> np.ndarray:
    """The sum, by NumPy."""
    return x.sum(dtype=np.float32)


@_jit
def total_numba(x):
    """The sum, by Numba."""
    s = np.float32(0)
    for i in numba.prange(x.size):
        s += x[i]
    return s


def transpose(x: np.ndarray) -> np.ndarray:
    """The transpose, by NumPy."""
    return np.ascontiguousarray(x.T)


@_jit
def transpose_numba(x):
    """The transpose, by Numba."""
    m, n = x.shape
    y = np.empty((n, m), np.float32)
    for j in numba.prange(n):
        for i in range(m):
            y[j, i] = x[i, j]
    return y


def jacobi(a: np.ndarray) -> np.ndarray:
    """Two sweeps of Jacobi and back, by NumPy."""
    now, after = a.copy(), a.copy()
    quarter = np.float32(0.25)
    for _ in range(2):
        for source, target in ((now, after), (after, now)):
            target[1:-1, 1:-1] = quarter * (source[:-2, 1:-1] + source[2:, 1:-1] + source[1:-1, :-2] + source[1:-1, 2:])
    return now


@_jit
def _sweep(source, target):
    h, w = source.shape
    for i in numba.prange(1, h - 1):
        for j in range(1, w - 1):
            target[i, j] = np.float32(0.25) * (source[i - 1, j] + source[i + 1, j] + source[i, j - 1] + source[i, j + 1])


@_jit
def _copies(a, now, after):
    for i in numba.prange(a.shape[0]):
        for j in range(a.shape[1]):
            now[i, j] = a[i, j]
            after[i, j] = a[i, j]


def jacobi_numba(a: np.ndarray) -> np.ndarray:
    """Two sweeps of Jacobi and back, by Numba."""
    now, after = np.empty_like(a), np.empty_like(a)
    _copies(a, now, after)
    for _ in range(2):
        _sweep(now, after)
        _sweep(after, now)
    return now


def softmax(x: np.ndarray) -> np.ndarray:
    """Softmax of each row, by NumPy."""
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


@_jit
def softmax_numba(x):
    """Softmax of each row, by Numba."""
    m, n = x.shape
    y = np.empty_like(x)
    for i in numba.prange(m):
        top = x[i, 0]
        for j in range(n):
            top = max(top, x[i, j])
        s = np.float32(0)
        for j in range(n):
            s += np.exp(x[i, j] - top)
        for j in range(n):
            y[i, j] = np.exp(x[i, j] - top) / s
    return y


def layernorm(x: np.ndarray, gain: np.ndarray, bias: np.ndarray, eps: float) -> np.ndarray:
    """Each row less its mean, over its deviation, by NumPy."""
    mean = x.mean(axis=1, keepdims=True)
    centred = x - mean
    scale = 1 / np.sqrt((centred * centred).mean(axis=1, keepdims=True) + np.float32(eps))
    return centred * scale * gain + bias


@_jit
def layernorm_numba(x, gain, bias, eps):
    """Each row less its mean, over its deviation, by Numba."""
    m, n = x.shape
    y = np.empty_like(x)
    for i in numba.prange(m):
        s = np.float32(0)
        for j in range(n):
            s += x[i, j]
        mean = s / np.float32(n)
        q = np.float32(0)
        for j in range(n):
            q += (x[i, j] - mean) * (x[i, j] - mean)
        scale = np.float32(1) / np.sqrt(q / np.float32(n) + np.float32(eps))
        for j in range(n):
            y[i, j] = (x[i, j] - mean) * scale * gain[j] + bias[j]
    return y


def gather(table: np.ndarray, index: np.ndarray) -> np.ndarray:
    """Rows by index, by NumPy."""
    return table[index]


@_jit
def gather_numba(table, index):
    """Rows by index, by Numba."""
    n, d = index.size, table.shape[1]
    out = np.empty((n, d), np.float32)
    for i in numba.prange(n):
        row = index[i]
        for j in range(d):
            out[i, j] = table[row, j]
    return out


def permute5d(x: np.ndarray) -> np.ndarray:
    """Five dimensions permuted, by NumPy."""
    return np.ascontiguousarray(x.transpose(2, 4, 0, 3, 1))


def layers(x: np.ndarray, w: np.ndarray, b: np.ndarray, v: np.ndarray) -> np.ndarray:
    """max(x w + b, 0) v."""
    return np.maximum(x @ w + b, 0) @ v


def normed(x: np.ndarray, g: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Rows of x by their root of mean squares and by g, times w transposed."""
    return (x / np.sqrt((x * x).mean(1, keepdims=True) + np.float32(1e-5)) * g) @ w.T


def attention(q: np.ndarray, k: np.ndarray, v: np.ndarray, scale: float) -> np.ndarray:
    """softmax(q k^T scale) v of each head."""
    p = q @ k.transpose(0, 2, 1)
    p = np.exp((p - p.max(-1, keepdims=True)) * np.float32(scale))
    return (p / p.sum(-1, keepdims=True)) @ v
