"""Classes that are their fields, as `dataclasses` has them, made in C by `msgspec`.

To define one takes a fortieth of the time, which was more than half of what the command took to start, and to make a value of
one a sixth.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast, dataclass_transform, overload

from msgspec import Struct, structs
from msgspec import field as _field

Kind = TypeVar("Kind")
Made = TypeVar("Made")

if TYPE_CHECKING:

    @overload
    def field(*, init: Literal[False]) -> Any: ...
    @overload
    def field(*, default_factory: Callable[[], Made]) -> Made: ...
    def field(**_: Any) -> Any:
        """A field for which there is what makes a default, or, with `init=False`, one that is made of others: `__post_init__`
        sets it, by `derive` where the record is frozen."""

    @dataclass_transform(frozen_default=True, field_specifiers=(field,))
    class Record:
        """A class whose values are their fields, and stay what they are; equal where the fields are.

        As keywords: `eq=False`, equal where identical; `order=True`, compared by the fields in order; `kw_only=True`, made by
        names alone; `dict=True`, for cached properties. One with an `__eq__` of its own has a `__ne__`, too.
        """

        def __init_subclass__(
            cls, *, eq: bool = True, order: bool = False, kw_only: bool = False, dict: bool = False
        ) -> None: ...

    @dataclass_transform(field_specifiers=(field,))
    class Mutable:
        """The same with fields that are assigned again; unhashable, unless it is `eq=False`."""

        def __init_subclass__(
            cls, *, eq: bool = True, order: bool = False, kw_only: bool = False, dict: bool = False
        ) -> None: ...

else:

    def field(*, init=True, **given):
        return _field(**given) if init else _field(default=None)

    class Record(Struct, frozen=True):
        pass

    class Mutable(Struct):
        pass


def replace(record: Kind, **changes: object) -> Kind:
    """The same record with some other fields."""
    return cast("Kind", structs.replace(cast("Any", record), **changes))


def derive(record: object, **fields: object) -> None:
    """Sets fields of a frozen record that are made of others, as it is made."""
    for name, value in fields.items():
        structs.force_setattr(cast("Any", record), name, value)


def names(kind: type | object) -> tuple[str, ...]:
    """The fields of a record, or of a class of records, in order."""
    return cast("Any", kind).__struct_fields__


def is_record(value: object) -> bool:
    """Whether a value is a record."""
    return isinstance(value, Struct)


def as_dict(record: object) -> dict[str, Any]:
    """The fields of a record by their names, as they are."""
    return structs.asdict(cast("Any", record))
