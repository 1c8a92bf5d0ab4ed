"""The proof that a scheduled program computes what the written one does.

Each statement of the scheduled program is an instance of a written statement, or a copy. So a place in memory holds an element
of the written program. Suppose that

1. every instance of a written statement is executed, an update once;
2. any two accesses to one element, one of them a write, are in the written order, except for what a `reduce` relaxes in both
   programs;
3. two iterations of a `par` have no conflict, except for updates where the `par` reduces into the place;
4. an element that is read was written to its place before, or copied there, and since then neither was that place overwritten
   nor the element changed elsewhere; and
5. every access is within the bounds of its memory.

Then both programs compute the same values. *Proof*, by induction over the execution order of the scheduled program: first omit
all copies, and let every element have one place. By 1 and 2 each read sees the value of the written program. Reinsert the
copies: by 4 a copy holds the value of that one place whenever it is read. By 3 iterations of a `par` may execute in any order.
∎
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from texpr.ir import program as ir
from texpr.ir.program.instances import numbered
from texpr.ir.program.marked import read
from texpr.ir.program.marks import Computed, Online
from texpr.ir.proof import UNPROVED, Obligation, Proof, Verdict
from texpr.ir.value import Buffer
from texpr.ir.value.structure import same
from texpr.presburger.formula import Formula, compare, conj
from texpr.proof.common.asked import Asked, Claim
from texpr.proof.read.actions import actions
from texpr.proof.schedule.accesses import named
from texpr.proof.schedule.factors import in_arrays, numbered_last
from texpr.proof.schedule.families import pairs
from texpr.proof.schedule.inside import inside
from texpr.proof.schedule.match import IS_STATEMENT, IS_THERE, Matches
from texpr.proof.schedule.numbers import by_number
from texpr.proof.schedule.order import misordered
from texpr.proof.schedule.scans import in_chunks
from texpr.proof.schedule.sweeps import Unswept, in_one_sweep
from texpr.proof.schedule.value_flow import ValueFlow
from texpr.proof.schedule.wide import narrowed
from texpr.support.diagnostic import CompilerBug, limitation
from texpr.support.limits import LARGEST_INT
from texpr.support.record import replace


def as_marked(written: ir.Function, laid: ir.Function) -> tuple[ir.Function | None, tuple[Obligation, ...]]:
    """The program whose statements have the numbers that `laid` says: `written` with maxima in one sweep, running values in
    chunks, and computed factors in arrays, as marks of `laid` say, and why that is the same; None where it is not."""
    said, premises = list[Obligation](), _premises(written)
    try:
        for mark in (each for each in read(replace(laid, body=())).directives if isinstance(each, Online)):
            form, swept, told = in_one_sweep(numbered(written), mark, premises)
            said += faithful(written, form).obligations
            said += (Claim("one sweep", each, "over the reals", mark.span).told(Verdict.PROVED, "decided") for each in told)
            written = swept
    except Unswept as why:
        told = Claim("one sweep", laid.name, "", written.span)
        return None, (*said, told.told(Verdict.REFUSED, str(why)))
    chunks = in_chunks(written, laid)
    if chunks is None:
        told = Claim("running values in chunks", laid.name, "", written.span)
        said.append(told.told(Verdict.REFUSED, "no loops that the program has, or not of such values"))
        return None, tuple(said)
    marks = [each for each in read(replace(laid, body=())).directives if isinstance(each, Computed)]
    arrays = in_arrays(chunks, marks, premises)
    if arrays is None:
        told = Claim("computed factors", laid.name, "", written.span)
        said.append(told.told(Verdict.UNDECIDED, "not factors of what their loops leave as it is, of extents of sizes"))
    return arrays, tuple(said)


def faithful(written: ir.Function, laid: ir.Function) -> Proof:
    """The proof that `laid` computes what `written` does, which is legal."""
    premises, form = _premises(written), as_marked(written, laid)
    said = [_interface(written, laid), *form[1]]
    if form[0] is None:
        return Proof(written.name, (), tuple(said))
    written = form[0]
    known = [*zip(laid.params, written.params, strict=False), *zip(laid.results, written.results, strict=False)]
    noted = numbered_last(written)
    both = actions(by_number(noted)), actions(by_number(narrowed(noted, laid)))
    matches = Matches(*both, dict(known), premises)
    matches.run()
    results = (*laid.results, *(b for b in laid.params if b.role == "inout"))
    held = ValueFlow(matches.accesses, matches.given, results, premises)
    for action, why in matches.strange:
        told = Claim(IS_STATEMENT, f"{action.stored.name}", "", action.span)
        said.append(told.told(Verdict.UNDECIDED, why))
    for action, meant in matches.loosened:  # kernels may add up in another order, and round a product with its sum
        told = Claim("the order is free", f"{meant.stored.name}, line {meant.span.line}", "", action.span)
        said.append(told.told(Verdict.REFUSED, "no `reduce` frees it as it was written"))
    within = inside((*matches.accesses, *matches.overruns), matches.given, matches.numbers, premises)
    questions = matches.asked, matches.at_home(), within, matches.covered(), _ordered(held, premises), held.questions()
    said += (claim.decided(question, args) for claim, question, args in chain(*questions))
    unknown = any(each.what == IS_STATEMENT and each.verdict is not Verdict.PROVED for each in said)
    return Proof(written.name, (), tuple(_doubted(each, unknown) for each in said))


def _doubted(each: Obligation, unknown: bool) -> Obligation:
    """A refusal becomes undecided where a value is opaque, or where another argument might prove the read."""
    if each.verdict is Verdict.REFUSED and (unknown or each.what in (IS_STATEMENT, IS_THERE)):
        return each._replace(verdict=Verdict.UNDECIDED)
    return each


def require_kept(proof: Proof, unproved: bool = False) -> None:
    """Raises CompilerBug if a schedule changed the results, and Limitation E0509 if that is undecided, unless `unproved`."""
    for each in proof.of(Verdict.REFUSED):
        raise CompilerBug(f"a schedule made another program of `{proof.plan}`: {each.what}, {each.about}: {each.how}")
    for each in () if unproved else proof.of(Verdict.UNDECIDED):
        reason = f"cannot prove that the schedule keeps to `{proof.plan}`: {each.what}, {each.about}: {each.how}"
        help = f"split and merge by numbers, where that will do, or write `#{UNPROVED}` behind the results: then it is believed"
        raise limitation("E0509", each.span, reason, help=help)


def _premises(function: ir.Function) -> Formula:
    bounds = [f for size in function.sizes for f in (compare(">=", size, 0), compare("<=", size, LARGEST_INT))]
    return conj((*bounds, *(compare(c.op, c.left, c.right) for c in function.where)))


def _interface(written: ir.Function, laid: ir.Function) -> Obligation:
    """Both programs have the same parameters and results."""
    alike = len(written.params) == len(laid.params) and len(written.results) == len(laid.results)
    alike = alike and all(map(_alike, (*written.params, *written.results), (*laid.params, *laid.results)))
    alike = alike and written.sizes == laid.sizes and same(written.where, laid.where) and same(written.assumes, laid.assumes)
    told = Claim("same interface", written.name, "parameters, results, sizes, what is promised", written.span)
    return told.told(Verdict.PROVED if alike else Verdict.REFUSED, told.how if alike else "they differ")


def _alike(one: Buffer, other: Buffer) -> bool:
    """Whether two buffers are the same for callers; alignment that a schedule requires is checked at the call."""
    own, its = ((b.name, b.dtype, b.shape, b.role, b.strides) for b in (one, other))
    return own == its


def _ordered(held: ValueFlow, premises: Formula) -> Iterator[Asked]:
    """The obligations that accesses to one element are in the written order."""
    for accesses in held.by_stored.values():
        own = [a for a in accesses if a.does is not None and not a.is_own]  # reads of accumulators are at the time of the write
        for a, b in pairs(own, both=True):
            if a.write or b.write:
                told = Claim("in order", f"{a} and {b}", "one comes first, or they never meet", a.action.span)
                yield told, misordered, (named(a, "◁"), named(b, "▷"), premises)
