"""Locals from which a product that lanes do reads: what holes leave in them lanes read, too, so that holes compute everything.
And those to which lanes add what it makes.

    par 16 |r| { if 16 * b + r < L { m[r] = −∞ } } … par 16 |r| { if 16 * b + r < L { … p[r, j] = exp(s[r, j] − m[r]) … } }

A product over 16 rows reads all of p. So m and p are computed for rows that there are not, from what copies fill with, and no
statement needs a guard but those that write what callers know.
"""

from __future__ import annotations

from collections.abc import Collection

from texpr.ir import program as ir
from texpr.ir.program.marked import mark
from texpr.ir.program.marks import Joint
from texpr.ir.program.uses import loads
from texpr.ir.value import Buffer, Literal
from texpr.schedule.tree import Body

OWN = (None, "registers", "lanes")
"""Where a local is that is not copied to."""


def linked(body: Body, tiles: Collection[Buffer]) -> frozenset[Buffer]:
    """The locals of `body`, and its `tiles`, that holes have to compute; none where no marked nest reads a local of lanes."""
    made = {s.buffer for s in ir.walk(body) if isinstance(s, ir.New) and s.space in OWN}
    nests = [s for s in ir.walk(body) if isinstance(s, ir.Par | ir.Seq) and mark(s, Joint)]
    binds = [s for nest in nests for s in ir.walk(nest.body) if isinstance(s, ir.Bind)]
    read = {load.buffer for s in binds for load in loads(s)} - {target.buffer for s in binds for target in s.targets}
    if not read & made:
        return frozenset()
    writes = [s for s in ir.walk(body) if isinstance(s, ir.Bind)]
    found, before = {*made}, -1
    while len(found) != before:
        before = len(found)
        for stmt in writes:
            other = {load.buffer for load in loads(stmt) if load.buffer in made} - found
            if other or any(load.data for load in loads(stmt)):
                found -= {target.buffer for target in stmt.targets}
    return frozenset(found) | (frozenset(tiles) & made)


def sums_of_parts(body: Body, tiles: Collection[Buffer]) -> frozenset[Buffer]:
    """Locals of `body` that only begin at a constant, and to which lanes add what is in `tiles`."""
    found, others = set[Buffer](), set[Buffer]()
    for stmt in ir.walk(body) if tiles else ():
        if isinstance(stmt, ir.Bind):
            added = stmt.update == "add" and any(load.buffer in tiles for load in loads(stmt))
            start = stmt.update is None and isinstance(stmt.values[0], Literal)
            found |= {target.buffer for target in stmt.targets if added}
            others |= {target.buffer for target in stmt.targets if not (added or start)}
    made = {s.buffer for s in ir.walk(body) if isinstance(s, ir.New) and s.space in OWN}
    return frozenset((found & made) - others - {*tiles})
