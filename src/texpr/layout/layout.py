"""Layouts: a tree of sizes and a congruent tree of strides, as a function of coordinates.

    L(c) = Σ stride · coordinate, over the leaves        c in natural form; other forms are converted

Integer strides give offsets, basis strides give arithmetic tuples (coordinates). Sizes are positive: that of a symbolic size
is a promise of the caller. The model is CuTe's (NVIDIA CUTLASS, "CuTe layout algebra").
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from texpr.layout.basis import (
    IntoStrideTree,
    Path,
    Stride,
    StrideTree,
    assembled,
    check_entries,
    coefficient_of,
    path_of,
    tidy_stride,
)
from texpr.layout.coordinates import natural
from texpr.layout.error import LayoutError
from texpr.layout.inttuple import Int, IntoIntTree, IntTree, leaves, plus, product, tidy_tree, times, tree_text
from texpr.support.record import Record


class Mode(Record):
    """One leaf of a layout."""

    size: Int
    stride: Stride

    @property
    def step(self) -> Int:
        """The coefficient of the stride."""
        return coefficient_of(self.stride)

    @property
    def path(self) -> Path:
        """The entry that the stride moves."""
        return path_of(self.stride)

    def __str__(self) -> str:
        return f"{self.size}:{self.stride}"


@dataclass(frozen=True, slots=True, init=False)
class Layout:
    """`Layout(shape, stride)`; without strides it is compact, the leftmost leaf fastest. Equal where shape and strides are.

    Raises LayoutError where the trees differ, a size is not positive, or strides cannot be added.
    """

    shape: IntTree
    stride: StrideTree
    flat: tuple[Mode, ...] = field(compare=False, repr=False)

    def __init__(self, shape: IntoIntTree, stride: IntoStrideTree | None = None):
        sizes = tidy_tree(shape)
        for size in leaves(sizes):
            if isinstance(size, int) and size < 1:
                raise LayoutError("layout", f"the size {size} in {tree_text(sizes)} is not positive")
        steps = compact(sizes) if stride is None else _tidy_strides(sizes, stride)
        flat = tuple(_modes(sizes, steps))
        check_entries(mode.path for mode in flat if mode.stride != 0)
        object.__setattr__(self, "shape", sizes)
        object.__setattr__(self, "stride", steps)
        object.__setattr__(self, "flat", flat)

    @staticmethod
    def of(*modes: Layout) -> Layout:
        """The layout with these modes."""
        return Layout(tuple(mode.shape for mode in modes), tuple(mode.stride for mode in modes))

    def with_leaves(self, modes: Iterable[Mode]) -> Layout:
        """The same nesting with other leaves, of the same number."""
        return _nested(self.shape, iter(modes))

    @property
    def modes(self) -> tuple[Layout, ...]:
        """The modes, each a layout; a leaf is its own only mode."""
        if isinstance(self.shape, tuple) and isinstance(self.stride, tuple):
            return tuple(map(Layout, self.shape, self.stride))
        return (self,)

    def __getitem__(self, place: int | Path) -> Layout:
        """A mode by its number, or by a path of numbers from the outside in. Raises LayoutError."""
        found = self
        for at in (place,) if isinstance(place, int) else place:
            if not isinstance(found.shape, tuple) or not 0 <= at < len(found.shape):
                raise LayoutError("mode", f"{found} has no mode {at}", help=f"it has {found.rank}")
            found = found.modes[at]
        return found

    @property
    def is_leaf(self) -> bool:
        """Whether the shape is a single number."""
        return not isinstance(self.shape, tuple)

    @property
    def rank(self) -> int:
        """The number of modes."""
        return len(self.shape) if isinstance(self.shape, tuple) else 1

    @property
    def size(self) -> Int:
        """The number of coordinates."""
        return product(self.shape)

    @property
    def is_integral(self) -> bool:
        """Whether values are plain numbers, not tuples."""
        return all(not mode.path for mode in self.flat)

    def __call__(self, coord: IntoIntTree) -> IntTree:
        """The value at a coordinate in any form, numbers or expressions; values of all coordinates are congruent.

        Beyond the shape, strides run on as in `texpr.layout.coordinates`. Raises LayoutError where `coord` does not fit.
        """
        parts: dict[Path, Int] = {}
        for at, mode in zip(leaves(natural(tidy_tree(coord), self.shape)), self.flat, strict=True):
            if mode.stride != 0:
                parts[mode.path] = plus(parts.get(mode.path, 0), times(mode.step, at))
        return assembled(parts)

    def offset(self, coord: IntoIntTree) -> Int:
        """The value at a coordinate, as a plain number. Raises LayoutError where it is a tuple."""
        value = self(coord)
        if isinstance(value, tuple):
            raise LayoutError("offset", f"{self} gives coordinates, not numbers")
        return value

    def __str__(self) -> str:
        """In CuTe's notation; `texpr.layout.text` parses it."""
        return f"{tree_text(self.shape)}:{stride_text(self.stride)}"


def _nested(shape: IntTree, modes: Iterator[Mode]) -> Layout:
    if isinstance(shape, tuple):
        return Layout.of(*[_nested(part, modes) for part in shape])
    leaf = next(modes)
    return Layout(leaf.size, leaf.stride)


def stride_text(tree: StrideTree) -> str:
    """As `tree_text`, for strides."""
    if isinstance(tree, tuple):
        return f"({','.join(map(stride_text, tree))}{',' if len(tree) == 1 else ''})"
    return str(tree)


def compact(shape: IntTree, start: Int = 1) -> IntTree:
    """Compact strides for `shape`, colexicographic, starting with `start`."""
    if not isinstance(shape, tuple):
        return start
    found: list[IntTree] = []
    for mode in shape:
        found.append(compact(mode, start))
        start = times(start, product(mode))
    return tuple(found)


def _tidy_strides(shape: IntTree, stride: IntoStrideTree) -> StrideTree:
    if isinstance(shape, tuple) and isinstance(stride, tuple) and len(shape) == len(stride):
        return tuple(map(_tidy_strides, shape, stride))
    if isinstance(shape, tuple) or isinstance(stride, tuple):
        raise LayoutError("layout", f"the strides of {tree_text(shape)} are not congruent to it")
    return tidy_stride(stride)


def _modes(shape: IntTree, stride: StrideTree) -> Iterator[Mode]:
    if isinstance(shape, tuple) and isinstance(stride, tuple):
        for s, d in zip(shape, stride, strict=True):
            yield from _modes(s, d)
    elif not isinstance(shape, tuple) and not isinstance(stride, tuple):
        yield Mode(shape, stride)
