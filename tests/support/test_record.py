"""Records: made, compared, changed, and what they are not."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator

import pytest

import texpr
from texpr.support.record import Mutable, Record, as_dict, derive, field, is_record, names, replace


class Point(Record):
    x: int
    y: int = 0


class Line(Record, eq=False):
    ends: tuple[Point, Point]
    length: int = field(init=False)

    def __post_init__(self) -> None:
        derive(self, length=abs(self.ends[0].x - self.ends[1].x))


class Pile(Mutable):
    things: list[int] = field(default_factory=list[int])


def test_records_are_their_fields() -> None:
    assert Point(1, 2) == Point(1, 2) != Point(2, 1)
    assert len({Point(1), Point(1), Point(2)}) == 2
    assert (names(Point), as_dict(Point(3))) == (("x", "y"), {"x": 3, "y": 0})
    assert repr(Point(1)) == "Point(x=1, y=0)"
    assert is_record(Point(1)) and is_record(Pile()) and not is_record((1, 2))


def test_a_record_stays_what_it_is() -> None:
    point = Point(1)
    with pytest.raises(AttributeError):
        setattr(point, "x", 2)  # noqa: B010
    assert (replace(point, y=5), point) == (Point(1, 5), Point(1))
    with pytest.raises(TypeError):
        replace(point, z=5)


def test_fields_made_of_others_are_made_again() -> None:
    line = Line((Point(1), Point(4)))
    assert line.length == 3
    assert replace(line, ends=(Point(1), Point(9))).length == 8


def test_what_is_equal_where_identical_is() -> None:
    ends = Point(0), Point(1)
    one, other = Line(ends), Line(ends)
    assert one != other and len({one, other}) == 2 and one in {one}


def test_each_has_a_list_of_its_own() -> None:
    one, other = Pile(), Pile()
    one.things.append(1)
    assert (one.things, other.things) == ([1], [])
    with pytest.raises(TypeError):
        hash(one)


def test_records_that_say_what_is_equal_say_what_is_not() -> None:
    """`!=` of a record does not ask an `__eq__` that is written in Python."""
    for module in pkgutil.walk_packages(texpr.__path__, "texpr.", onerror=lambda _: None):
        if not module.name.startswith("texpr.torch"):  # which needs PyTorch
            importlib.import_module(module.name)
    found = [kind for base in (Record, Mutable) for kind in _below(base) if "__eq__" in vars(kind)]
    assert {kind.__name__ for kind in found} >= {"Span", "Strong"}
    assert [kind for kind in found if "__ne__" not in vars(kind)] == []


def _below(kind: type) -> Iterator[type]:
    for each in kind.__subclasses__():
        yield each
        yield from _below(each)
