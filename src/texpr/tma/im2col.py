"""Copies in im2col mode: columns of pixels that a convolution reads. PTX ISA, "Tensors", "im2col mode".

A tensor is N[D][H]WC, so dimension 0 is the channel, the last one the image, and those between are space, W first.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from texpr.tma.reference import Address, Ints, Mode, Op, in_bounds, move, rows, weighted


def im2col(
    x: Sequence[int],
    offsets: Sequence[int],
    sa: Address,
    *,
    ga: Address,
    gs: Sequence[int],
    gr: Sequence[int],
    lower: Sequence[int],
    upper: Sequence[int],
    channels: int,
    pixels: int,
    er: Sequence[int],
    op: Op,
    mode: Mode,
) -> None:
    """Copies `channels` elements of each of `pixels` pixels; in shared memory the channels of a pixel are together.

    `x`: channel, a pixel of the bounding box, image. `offsets`: of the filter, added to every pixel. `lower`, `upper`: the
    corners of the box, W first, both inclusive, from the first and from the last pixel. `gs`, `gr`: sizes and strides in
    elements. `er`: element strides; in spatial dimensions they are the distance of pixels, and do not change their number.
    """
    where = pixel_list(x, gs, lower, upper, pixels, er)
    where[:, :-1] += np.array(offsets, np.int64)
    index = [x[0] + np.arange(channels), *(column[:, None] for column in where.T)]
    index = [np.broadcast_to(each, (pixels, channels)) for each in index]
    near = sa + rows((channels, pixels), mode)
    move(near, ga + mode.element.size * weighted(index, gr), in_bounds(index, gs), op, mode)


def pixel_list(
    x: Sequence[int], gs: Sequence[int], lower: Sequence[int], upper: Sequence[int], pixels: int, er: Sequence[int]
) -> Ints:
    """(w, [h, [d]], image) of each pixel in turn, without offsets: W runs fastest through the box, then H, then D, then
    images."""
    steps = er[1:-1]
    last = [size - 1 + corner for size, corner in zip(gs[1:-1], upper, strict=True)]
    at = list(x[1:])
    found: list[list[int]] = []
    for _ in range(pixels):
        found.append(at.copy())
        for dim, step in enumerate(steps):
            at[dim] += step
            if at[dim] <= last[dim]:
                break
            at[dim] = lower[dim]
        else:
            at[-1] += 1
    return np.array(found, np.int64)
