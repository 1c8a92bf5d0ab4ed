"""Charts: values over sizes, with their spread. Sizes lie on a logarithmic axis."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil, floor, log10

from texpr.draw.page.picture import LINE, SPACE, Picture, beside, captioned, document, stacked
from texpr.draw.page.style import SERIES
from texpr.draw.page.svg import Element, element, number, words
from texpr.draw.page.text import CAPTION, SMALL, fit, width
from texpr.support.record import Record

WIDE, HIGH = 560.0, 200.0
"""The field of a panel, in pixels."""

_ROOM = 8.0  # between the field and what is written beside it
_DOT = 3.0
_CAP = 3.0  # half of the width of a whisker's end
_MARK = 24.0  # the line before a name of the key
_DIGITS = 18.0  # between two numbers of an axis


class Mark(Record):
    """A value at x, above 0, and its spread."""

    x: float
    y: float
    low: float
    high: float


class Line(Record):
    """Marks from left to right, and what they are of."""

    name: str
    marks: tuple[Mark, ...]


class Panel(Record):
    """One field: what its values are, its lines, and whether values lie on a logarithmic axis, too, or begin at 0."""

    unit: str
    lines: tuple[Line, ...]
    logarithmic: bool = False


class Scale(Record):
    """From a value to a place in a field of `length` pixels, and the values that are written at its side."""

    low: float
    high: float
    length: float
    logarithmic: bool
    ticks: tuple[float, ...]

    def at(self, value: float) -> float:
        """Pixels from the lower end."""
        inside = max(value, self.low)
        low, high, at = (log10(each) if self.logarithmic else each for each in (self.low, self.high, inside))
        return (at - low) / (high - low) * self.length


def chart(title: str, along: str, panels: Sequence[Panel]) -> str:
    """The panels, one below the other, over the same sizes; `along` is what is on their axis. As SVG."""
    names = list(dict.fromkeys(line.name for panel in panels for line in panel.lines))
    kinds = {name: at % len(SERIES) for at, name in enumerate(names)}
    lead = max(_lead(panel) for panel in panels)
    sizes = sorted({mark.x for panel in panels for line in panel.lines for mark in line.marks})
    across = _sizes(sizes)
    fields = [_field(panel, across, kinds, lead) for panel in panels]
    axis = _axis(across, along, lead)
    key = beside([_entry(kinds[name], name) for name in names], SPACE)
    whole = captioned(title, stacked((key, *fields, axis), space=14.0))
    return document(whole, title, " ".join(_told(panel, along) for panel in panels))


def _told(panel: Panel, along: str) -> str:
    """The numbers, for who cannot see them."""
    lines = (f"{each.name}: {', '.join(f'{_short(m.y)} at {_short(m.x)}' for m in each.marks)}" for each in panel.lines)
    return f"{panel.unit} over {along}. {'; '.join(lines)}."


def _sizes(sizes: Sequence[float]) -> Scale:
    """With a mark for each size where there is room for its number."""
    low, high = min(sizes), max(sizes)
    logarithmic = low > 0
    if low == high:
        low, high = (low / 2, high * 2) if logarithmic else (low - 1, high + 1)
    whole = Scale(low, high, WIDE, logarithmic, ())
    kept: list[float] = []
    for size in sizes:
        room = (width(_short(size), SMALL) + width(_short(kept[-1]), SMALL)) / 2 + _DIGITS / 2 if kept else 0.0
        if not kept or whole.at(size) - whole.at(kept[-1]) >= room:
            kept.append(size)
    return Scale(low, high, WIDE, logarithmic, tuple(kept))


def _values(panel: Panel) -> Scale:
    """Round numbers around all values and their spread."""
    every = [each for line in panel.lines for mark in line.marks for each in (mark.y, mark.low, mark.high) if each > 0]
    low, high = min(every, default=1.0), max(every, default=1.0)
    if not panel.logarithmic:
        step = _round_step(high / 4)
        count = max(1, ceil(high / step))
        return Scale(0.0, count * step, HIGH, False, tuple(at * step for at in range(count + 1)))
    first, last = floor(log10(low)), ceil(log10(high))
    last = max(last, first + 1)
    each = [10.0**power for power in range(first, last + 1)]
    if last - first <= 2:
        each = sorted({*each, *(digit * 10.0**power for power in range(first, last) for digit in (2, 5))})
    return Scale(10.0**first, 10.0**last, HIGH, True, tuple(each))


def _round_step(value: float) -> float:
    """1, 2 or 5 of a power of ten, at least `value`."""
    power = 10.0 ** floor(log10(value))
    return next(digit * power for digit in (1, 2, 5, 10) if digit * power >= value * 0.999)


def _lead(panel: Panel) -> float:
    """The room for the numbers left of a field."""
    return max(width(_short(each), SMALL) for each in _values(panel).ticks) + _ROOM


def _field(panel: Panel, across: Scale, kinds: dict[str, int], lead: float) -> Picture:
    up = _values(panel)
    body: list[Element] = [words(panel.unit, 0, LINE / 2, CAPTION)]
    top = LINE + _ROOM
    for tick in up.ticks:
        y = top + HIGH - up.at(tick)
        body.append(element("path", kind="lines", d=f"M{number(lead)} {number(y)}h{number(WIDE)}"))
        body.append(words(_short(tick), lead - _ROOM, y, SMALL, anchor="end"))
    for line in panel.lines:
        body += _drawn(line, kinds[line.name], across, up, lead, top)
    return Picture(lead + WIDE + _ROOM, top + HIGH + 1, tuple(body))


def _drawn(line: Line, series: int, across: Scale, up: Scale, lead: float, top: float) -> Iterator[Element]:
    """A line, and of each mark a dot and its spread."""
    places = [(lead + across.at(mark.x), top + HIGH - up.at(mark.y), mark) for mark in line.marks]
    path = "".join(f"{'L' if at else 'M'}{number(x)} {number(y)}" for at, (x, y, _) in enumerate(places))
    spreads = "".join(_whisker(x, *(top + HIGH - up.at(each) for each in (mark.low, mark.high))) for x, _, mark in places)
    yield element("path", kind=f"series{series}", d=path + spreads)
    for x, y, _ in places:
        yield element("circle", kind=f"dot{series}", cx=x, cy=y, r=_DOT)


def _whisker(x: float, low: float, high: float) -> str:
    ends = "".join(f"M{number(x - _CAP)} {number(y)}h{number(2 * _CAP)}" for y in (low, high))
    return f"M{number(x)} {number(low)}V{number(high)}{ends}"


def _axis(across: Scale, along: str, lead: float) -> Picture:
    """The sizes below the last field, and what they are of."""
    marked = [words(_short(tick), lead + across.at(tick), LINE / 2, SMALL, anchor="middle") for tick in across.ticks]
    named = words(fit(along, 80), lead + WIDE / 2, 1.5 * LINE, CAPTION, anchor="middle")
    return Picture(lead + WIDE + _ROOM, 2 * LINE, (*marked, named))


def _entry(series: int, name: str) -> Picture:
    """A line of the key."""
    text = fit(name, 60)
    mark = element("path", kind=f"series{series}", d=f"M0 {number(LINE / 2)}h{number(_MARK)}")
    dot = element("circle", kind=f"dot{series}", cx=_MARK / 2, cy=LINE / 2, r=_DOT)
    lead = _MARK + _ROOM
    return Picture(lead + width(text, CAPTION), LINE, (mark, dot, words(text, lead, LINE / 2, CAPTION)))


def _short(value: float) -> str:
    """A number, with a unit of thousands where it is large."""
    if value == int(value) and abs(value) < 1e6:
        return str(int(value))
    letter, unit = next(((letter, unit) for letter, unit in (("G", 1e9), ("M", 1e6)) if abs(value) >= unit), ("", 1.0))
    return f"{value / unit:.4g}{letter}"
