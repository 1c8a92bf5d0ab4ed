"""What was measured: a table, the object of `--json`, and a chart over sizes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import isfinite

from texpr.cli.bench.point import OURS, Point
from texpr.cli.bench.sweep import varied
from texpr.draw.chart import Line, Mark, Panel, chart
from texpr.runtime.timing import Spread, ratio, spread
from texpr.support.render import duration

MEMORY = 10.0
"""Operations for each byte that must move, from which on a chart shows operations a second, and no bytes."""

HEAD = ("what", "median", "quartiles", "runs", "GB/s", "GFLOP/s", "of bound", "times ours")


def rows(points: Sequence[Point]) -> Iterator[tuple[str, ...]]:
    """The head of the table, and a row for each point and what ran there."""
    names = varied([point.sizes for point in points])
    yield (*names, *HEAD)
    for point in points:
        for what, times in point.times.items():
            found = spread(times)
            of_bound = _share(point, found) if what == OURS else None
            slower = None if what == OURS else _times_ours(point, what)
            yield (
                *(str(point.sizes[name]) for name in names),
                what,
                duration(found.median),
                f"{duration(found.low)} to {duration(found.high)}",
                str(found.runs),
                _rate(point.moved, found),
                _rate(point.flops, found),
                "" if of_bound is None else f"{100 * of_bound:.3g} %",
                "" if slower is None else f"{slower:.3g}",
            )


def notes(point: Point) -> Iterator[str]:
    """What a reader has to know of the numbers."""
    cache = (
        f"emptied before each run, by writing {point.flushed >> 20} MiB" if point.flushed else "as the run before leaves them"
    )
    yield f"caches: {cache}; {point.how}"
    yield "GB/s: of the bytes that any program for the function must move; GFLOP/s: of its operations on floats"
    if point.limit is not None:
        yield f"of bound: the bound of the plan by the model of {point.limit.device}, over the median"


def data(point: Point) -> dict[str, object]:
    """One point, for `--json`; times in microseconds."""
    limit = point.limit
    return {
        "sizes": dict(point.sizes),
        "bytes": point.moved,
        "flops": point.flops,
        "bound_us": None if limit is None else limit.bound_us,
        "least_us": None if limit is None else limit.least_us,
        "agreed": list(point.agreed),
        "measured": [_measured(point, what) for what in point.times],
    }


def _measured(point: Point, what: str) -> dict[str, object]:
    times = point.times[what]
    found = spread(times)
    return {
        "what": what,
        "median_us": found.median * 1e6,
        "quartiles_us": [found.low * 1e6, found.high * 1e6],
        "runs": found.runs,
        "gb_per_s": _per_second(point.moved, found),
        "gflop_per_s": _per_second(point.flops, found),
        "of_bound": _share(point, found) if what == OURS else None,
        "times_ours": None if what == OURS else _times_ours(point, what),
    }


def picture(title: str, points: Sequence[Point]) -> str:
    """Times over sizes, and the rate that matters: operations where there are many for each byte, else bytes. As SVG."""
    names = varied([point.sizes for point in points])
    first = names[0]
    ordered = sorted(points, key=lambda point: point.sizes[first])
    same = all(len({point.sizes[name] for name in names}) == 1 for point in points)
    along = " = ".join(names) if same else first if len(names) == 1 else f"{first}, and with it {', '.join(names[1:])}"
    whats = list(ordered[0].times)
    busy = all(point.flops > MEMORY * point.moved for point in points)
    unit = "GFLOP/s" if busy else "GB/s"
    spreads: Mapping[str, Sequence[tuple[int, Point, Spread]]] = {
        what: [(point.sizes[first], point, spread(point.times[what])) for point in ordered] for what in whats
    }
    times = [
        Line(what, tuple(Mark(x, s.median * 1e6, s.low * 1e6, s.high * 1e6) for x, _, s in found))
        for what, found in spreads.items()
    ]
    rates = [
        Line(what, tuple(_mark(x, p.flops if busy else p.moved, s) for x, p, s in found)) for what, found in spreads.items()
    ]
    panels = (Panel("µs, median and quartiles", tuple(times), logarithmic=True), Panel(unit, tuple(rates)))
    return chart(title, along, panels)


def _mark(x: int, amount: float, found: Spread) -> Mark:
    rate, high, low = (amount / seconds / 1e9 if seconds else 0.0 for seconds in (found.median, found.low, found.high))
    return Mark(x, rate, low, high)


def _times_ours(point: Point, what: str) -> float | None:
    """None where ours is too short for the clock."""
    found = ratio(point.times[what], point.times[OURS])
    return found if isfinite(found) else None


def _share(point: Point, found: Spread) -> float | None:
    return None if point.limit is None or not found.median else point.limit.bound_us / (found.median * 1e6)


def _per_second(amount: float, found: Spread) -> float | None:
    return amount / found.median / 1e9 if found.median and amount else None


def _rate(amount: float, found: Spread) -> str:
    rate = _per_second(amount, found)
    return "" if rate is None else f"{rate:.3g}"
