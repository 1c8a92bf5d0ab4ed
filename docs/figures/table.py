"""Every figure: the file that holds it, and what draws it."""

from __future__ import annotations

from collections.abc import Callable

from docs.figures import divisibility, layouts, tma

FIGURES: dict[str, Callable[[], str]] = {
    "three-indivisible-splits": divisibility.three_indivisible_splits,
    "allocate-6-as-2-by-4": divisibility.allocate_6_as_2_by_4,
    "dense-and-strided-tile": tma.dense_and_strided_tile,
    "matmul-tma-domain": tma.matmul_tma_domain,
    "box-by-partitioning": tma.box_by_partitioning,
    "box-by-compositing": tma.box_by_compositing,
    "box-by-partitioning-and-compositing": tma.box_by_partitioning_and_compositing,
    "strided-tile": tma.strided_tile,
    "weak-correctness-holes-nonzero": tma.weak_correctness_holes_nonzero,
    "strong-correctness": tma.strong_correctness,
    "strong-correctness-2": tma.strong_correctness_2,
    "no-strong-correctness-schedule": tma.no_strong_correctness_schedule,
    "no-strong-correctness-data": tma.no_strong_correctness_data,
    "coordinate-layout": layouts.coordinate_layout,
    "swizzled-layout": layouts.swizzled_layout,
    "thread-value-layout": layouts.thread_value_layout,
    "bank-maps": layouts.bank_maps,
}
