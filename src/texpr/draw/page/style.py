"""Colours and faces, for light and dark pages: the one style sheet of every picture.

Text has a contrast of at least 4.5 : 1 to its background, significant lines 3 : 1, in both modes (tested).
"""

from __future__ import annotations

from collections.abc import Collection

from texpr.draw.page.text import FONTS, Font
from texpr.support.record import Record


class Paint(Record):
    """One colour in each mode."""

    light: str
    dark: str


PAGE = Paint("#ffffff", "#15181d")
INK = Paint("#1b1f24", "#e6e9ee")
SOFT = Paint("#57606a", "#a4adb8")
LINE = Paint("#6b7480", "#8b95a1")
GRID = Paint("#c3cad2", "#454d57")
ALARM = Paint("#b3261e", "#ff9d94")


class Box(Record):
    """The style of an area: its fill, its outline, and whether it is hatched."""

    fill: Paint
    stroke: Paint
    hatched: bool = False


BOXES: dict[str, Box] = {
    "domain": Box(Paint("#eef2f7", "#262c35"), Paint("#6b7480", "#8b95a1")),
    "transform": Box(Paint("#fff6dc", "#3a3218"), Paint("#96700a", "#c9a13b")),
    "partitioned": Box(Paint("#dcebff", "#17345c"), Paint("#2264b5", "#6ea8f0")),
    "coordinate": Box(Paint("#f3e3d3", "#46301c"), Paint("#8a5a2b", "#cf9a66")),
    "box": Box(Paint("#daf1de", "#17402a"), Paint("#2a7a3f", "#63c07f")),
    "tile": Box(Paint("#ecdffb", "#3a2558"), Paint("#7a45b8", "#b78df0")),
    "stride": Box(Paint("#d9f1f2", "#123f43"), Paint("#1d7379", "#57b9c1")),
    "value": Box(Paint("#dcebff", "#17345c"), GRID),
    "filled": Box(Paint("#fbdcd9", "#5a1f1c"), GRID),
    "zero": Box(Paint("#e6e9ed", "#323942"), GRID),
    "hole": Box(Paint("#f4f5f7", "#1f242b"), GRID, hatched=True),
    "loaded": Box(Paint("#ecdffb", "#3a2558"), GRID),
    "skipped": Box(Paint("#b6bec8", "#565f6a"), GRID),
    "left": Box(Paint("#e6e9ed", "#323942"), GRID, hatched=True),
    "gap": Box(PAGE, GRID),
    "plain": Box(PAGE, GRID),
    "owner0": Box(Paint("#dcebff", "#17345c"), GRID),
    "owner1": Box(Paint("#fff1c9", "#4a3d10"), GRID),
    "owner2": Box(Paint("#daf1de", "#17402a"), GRID),
    "owner3": Box(Paint("#f9dedc", "#5a1f1c"), GRID),
    "owner4": Box(Paint("#ecdffb", "#3a2558"), GRID),
    "owner5": Box(Paint("#fbe3cd", "#4d3216"), GRID),
    "owner6": Box(Paint("#d3f0f2", "#123f43"), GRID),
    "owner7": Box(Paint("#e6e9ed", "#323942"), GRID),
}
"""Every area by its class: roles of IterDomains, cells of an allocation, cells of a tensor, and owners of cells."""

ROLES: dict[str, str] = {
    "partitioned": "partitioned IterDomain",
    "coordinate": "coordinate IterDomain",
    "box": "box IterDomain",
    "tile": "tile IterDomain",
    "stride": "stride IterDomain",
}
"""The classes of IterDomains by role, with their legend."""

CELLS: dict[str, str] = {
    "value": "an item",
    "hole": "a hole",
    "filled": "a hole filled with data from inside the tensor",
    "zero": "filled with zero",
}
"""The classes of cells, with their legend."""

TENSOR: dict[str, str] = {
    "value": "in global memory",
    "loaded": "copied by the box",
    "skipped": "in the box, stepped over",
    "gap": "no element of the tensor",
    "zero": "filled with zero",
    "left": "in the box, not written",
}
"""The classes of cells of a tensor or tile, with their legend."""

PIXELS: dict[str, str] = {
    "value": "a pixel of an image",
    "loaded": "in the column, by its place",
    "zero": "in the column and outside: filled with zero",
    "gap": "outside of the image",
}
"""The classes of pixels, with their legend."""

ACCESSES: dict[str, str] = {
    "owner0": "read (r)",
    "owner3": "written (w), or both",
    "owner7": "holds what is read later",
    "skipped": "threads wait",
}
"""The classes of a timeline's cells, with their legend."""

TURNS: dict[str, str] = {
    "owner3": "the matrix unit, for a warpgroup",
    "owner2": "lanes of a warpgroup",
    "skipped": "waits for its product",
    "left": "waits for a slot to be full",
    "owner4": "the engine fills a slot",
    "owner0": "a full slot",
}
"""The classes of a steady turn's chart, with their legend."""

BUSY: dict[str, str] = {"plain": "not asked", "owner2": "one word", "owner3": "several words: so many rounds"}
"""The classes of a bank, with their legend."""

OWNERS = tuple(name for name in BOXES if name.startswith("owner"))
"""Classes for cells of different owners, used cyclically."""

_LANES = (
    ("#d7dbe0", "#3f4650"), ("#bcc4cd", "#525b66"), ("#a1acb8", "#65707d"), ("#8694a3", "#798694"),
    ("#6b7c8e", "#8f9dac"), ("#516478", "#a7b5c4"), ("#384c62", "#c1cfdd"), ("#1f344b", "#dde9f6"),
)  # fmt: skip
STRIPS: dict[str, Paint] = {f"lane{at}": Paint(*each) for at, each in enumerate(_LANES)}
"""Strips below a cell's text, from the first lanes of a warp to the last."""

_SERIES = (
    Paint("#2264b5", "#6ea8f0"), Paint("#b35c00", "#f0a35a"), Paint("#2a7a3f", "#63c07f"),
    Paint("#7a45b8", "#b78df0"), Paint("#b3261e", "#ff9d94"), Paint("#1d7379", "#57b9c1"),
)  # fmt: skip
SERIES: dict[str, Paint] = {f"series{at}": each for at, each in enumerate(_SERIES)}
"""The lines of a chart, in turn."""

DOTS: dict[str, Paint] = {f"dot{at}": each for at, each in enumerate(_SERIES)}
"""The marks on the lines of a chart."""

LINES: dict[str, Paint] = {
    "edge": LINE, "strike": ALARM, "hatch": Paint("#a3abb5", "#59626d"), "frame": ALARM, "lines": GRID, **SERIES,
}  # fmt: skip
INKS: dict[str, Paint] = {font.name: SOFT if font.name in ("reason", "removed", "small", "caption") else INK for font in FONTS}

_THIN = 1.25


def style_sheet(classes: Collection[str]) -> str:
    """The rules for `classes`; readers without support for dark mode use the light ones."""
    rules = [f".texpr .{font.name}{{{_face(font)}}}" for font in FONTS if font.name in classes]
    rules += [f".texpr .{name}{{fill:none;stroke-width:{_THIN}}}" for name in LINES if name in classes]
    rules += [f".texpr .{name}{{stroke-width:{_THIN}}}" for name in BOXES if name in classes]
    rules += [".texpr .same{stroke-dasharray:4 3}"] if "same" in classes else []
    light, dark = (_colours(classes, dark) for dark in (False, True))
    return "".join((*rules, *light, "@media (prefers-color-scheme:dark){", *dark, "}"))


def _face(font: Font) -> str:
    family = "monospace" if font.mono else "sans-serif"
    weight = ";font-weight:bold" if font.bold else ""
    style = ";font-style:italic" if font.italic else ""
    return f"font-family:{family};font-size:{font.size:g}px{weight}{style}"


def _colours(classes: Collection[str], dark: bool) -> list[str]:
    def of(paint: Paint) -> str:
        return paint.dark if dark else paint.light

    rules = [f".texpr .page{{fill:{of(PAGE)}}}"]
    rules += [f".texpr .{name}{{fill:{of(paint)}}}" for name, paint in INKS.items() if name in classes]
    rules += [f".texpr .{name}{{stroke:{of(paint)}}}" for name, paint in LINES.items() if name in classes]
    rules += [f".texpr .{name}{{fill:{of(paint)}}}" for name, paint in (STRIPS | DOTS).items() if name in classes]
    rules += [f".texpr .head{{fill:{of(LINE)}}}"] if "head" in classes else []
    boxes = ((name, box) for name, box in BOXES.items() if name in classes)
    return rules + [f".texpr .{name}{{fill:{of(box.fill)};stroke:{of(box.stroke)}}}" for name, box in boxes]
