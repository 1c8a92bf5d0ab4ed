"""Legality: what is proved wrong (E04)."""

CODES: dict[str, str] = {
    "E0401": "index out of bounds",
    "E0402": "iterations of a par meet in one element",
    "E0403": "read of an element that was never written",
    "E0404": "result not fully written",
    "E0405": "write to an input",
    "E0406": "negative extent",
    "E0407": "integer out of the range of its type",
    "E0408": "division by zero in an index",
    "E0409": "fully par inside fully par",
    "E0410": "extent of a fully par is not constant",
    "E0411": "alignment of a fully par",
    "E0412": "reduce names a buffer that the loop does not update",
    "E0413": "reduce names a buffer that the loop reads or writes otherwise",
    "E0414": "reduce names a buffer that is updated in two ways",
    "E0415": "reduce names a buffer that is new in each iteration",
    "E0416": "data-dependent index without an assumption",
    "E0417": "iterations of a par may meet in a data-dependent element",
    "E0418": "targets of one bind overlap",
    "E0419": "assumption on something other than an integer input",
    "E0420": "no sizes satisfy the where clause",
}
