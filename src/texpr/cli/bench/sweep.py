"""`--size n=1000,2000`: several sizes, one after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import click

from texpr.cli.program import parse_sizes


def points(given: Sequence[str]) -> list[dict[str, int]]:
    """The sizes of each point: lists go on together, a single value stays. Raises click.UsageError."""
    listed: dict[str, list[str]] = {}
    for text in given:
        name, _, values = text.partition("=")
        if name in listed:
            raise click.UsageError(f"size `{name}` is given twice")
        listed[name] = values.split(",")
    lengths = {name: len(values) for name, values in listed.items() if len(values) > 1}
    if len(set(lengths.values())) > 1:
        counts = ", ".join(f"{count} of `{name}`" for name, count in lengths.items())
        raise click.UsageError(f"lists of --size go on together, so they have one length: {counts}")
    count = max(lengths.values(), default=1)
    return [parse_sizes(tuple(f"{name}={_at(values, at)}" for name, values in listed.items())) for at in range(count)]


def _at(values: Sequence[str], at: int) -> str:
    return values[at] if len(values) > 1 else values[0]


def varied(found: Sequence[Mapping[str, int]]) -> tuple[str, ...]:
    """The sizes that change from point to point."""
    return tuple(name for name in found[0] if len({each[name] for each in found}) > 1) if found else ()
