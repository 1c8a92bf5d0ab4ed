"""What `texpr explain` prints of the tensor cores of a kernel."""

from __future__ import annotations

from collections.abc import Iterator

from texpr.explain import Data


def tensor_lines(products: list[Data], speed: Data | None, name: str) -> Iterator[str]:
    """Each instruction with its tile, a line for each operand, and the share of the peak that the bound leaves."""
    for each in products:
        extents = " × ".join(f"{extent} {loop}" for loop, extent in each["extents"].items())
        yield f"{each['instruction']}: {extents} by {each['lanes']} lanes{_tile(each)}"
        yield from map(_operand, each["operands"])
    found = None if speed is None else speed["kernels"].get(name)
    if products and found is not None and found["peak_share"] is not None:
        yield f"at most {100 * found['peak_share']:.0f} % of their peak on {speed and speed['device']}: {_why(found)}"


def column_lines(there: Data | None) -> Iterator[str]:
    """The columns that are taken, and which array has which."""
    if there is not None:
        arrays = (f"{each['name']} {each['first']} to {each['first'] + each['columns'] - 1}" for each in there["arrays"])
        yield f"{there['taken']} columns taken: {', '.join(arrays)}"


def _why(found: Data) -> str:
    return "they are the busiest unit" if found["deciding"] == "matrix" else f"{found['deciding']} is the busiest unit"


def _tile(each: Data) -> str:
    tile = (
        "" if each["tile"] is None else f"; a block has {' × '.join(f'{size} {loop}' for loop, size in each['tile'].items())}"
    )
    cluster = f"; {' × '.join(map(str, each['cluster']))} blocks in a cluster" if each["cluster"] else ""
    return f"{tile}; {each['sums']} sums a block{cluster}"


def _operand(each: Data) -> str:
    shape, source = " × ".join(map(str, each["shape"])), each["source"]
    if each["access"] == "descriptor":
        return f"{each['name']}: {shape} of {each['dtype']}, core matrices {each['fragment']} in {_lies(source)}"
    held = f"{each['columns'] or each['registers']} {'columns' if each['columns'] else 'registers'} of {each['array']}"
    held += f"{' in tensor memory' if each['columns'] else ''}, {each['fragment']}"
    loaded = "" if source is None else f", from {_lies(source)}"
    return f"{each['name']}: {shape} of {each['dtype']}, {held}{loaded}"


def _lies(source: Data) -> str:
    how = f"swizzle of {source['swizzle']} bytes" if source["swizzle"] else f"rows of {source['pitch']} bytes, no swizzle"
    if "leading" in source:
        how += f", leading {source['leading']}, stride {source['stride']} bytes"
    turns = f", {source['stages']} turns" if source["stages"] > 1 else ", one turn"
    return f"{source['buffer']} in shared memory: {how}{turns} of {source['bytes']} bytes"
