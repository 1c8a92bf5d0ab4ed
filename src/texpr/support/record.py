"""Classes defined by their fields, like those of `dataclasses`, implemented in C by `msgspec`.

Definitions take a fortieth of the time, which was more than half of the command's start-up, and instances a sixth.
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
        """A field with a default factory or, with `init=False`, one that is computed from others: `__post_init__` sets it, by
        `derive` if the record is frozen."""

    @dataclass_transform(frozen_default=True, field_specifiers=(field,))
    class Record:
        """An immutable class of fields, with structural equality.

        Keywords: `eq=False`, equality by identity; `order=True`, ordered by the fields; `kw_only=True`, keyword arguments
        only; `dict=True`, for cached properties. A class with an `__eq__` of its own gets a `__ne__`, too.
        """

        def __init_subclass__(
            cls, *, eq: bool = True, order: bool = False, kw_only: bool = False, dict: bool = False
        ) -> None: ...

    @dataclass_transform(field_specifiers=(field,))
    class Mutable:
        """The same with assignable fields; unhashable, unless it is `eq=False`."""

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
    """A copy of the record with some fields replaced."""
    return cast("Kind", structs.replace(cast("Any", record), **changes))


def derive(record: object, **fields: object) -> None:
    """Sets computed fields of a frozen record during construction."""
    for name, value in fields.items():
        structs.force_setattr(cast("Any", record), name, value)


def names(kind: type | object) -> tuple[str, ...]:
    """The fields of a record, or of a class of records, in order."""
    return cast("Any", kind).__struct_fields__


def is_record(value: object) -> bool:
    """Whether a value is a record."""
    return isinstance(value, Struct)


def as_dict(record: object) -> dict[str, Any]:
    """The fields of a record by name, not converted recursively."""
    return structs.asdict(cast("Any", record))
