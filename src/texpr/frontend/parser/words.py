"""Suggestions for misspelt words, and for words of other languages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches

from texpr.support.diagnostic import Edit, Proposal

STATEMENTS = ("par", "seq", "fully", "static", "new", "reg", "let", "if", "anchor", "return", "instr")
"""Words that start a statement."""
ITEMS = ("fn", "combine", "schedule", "instr")
"""Words that start an item."""
CLAUSES = ("where", "assume")
"""Words that may follow a function's results."""
LOOP_CLAUSES = ("reduce", "scan")
"""Words that may follow a loop's index."""

_LOOP = "a loop is written `par n |i| { … }`, or `seq n |i| { … }` where its order counts"
_NEW = "`new v: f32[n]` makes memory, `let v = e` names a value"
_FN = "a function is written `fn name(x: f32[n]): f32[n] { … }`"
_RESULTS = "results are written after `:`, as in `fn f(x: f32[n]): f32[n]`"

_ELSEWHERE: Mapping[str, str] = {
    **dict.fromkeys(("for", "while", "loop", "parallel", "parfor", "forall", "foreach", "range", "do"), _LOOP),
    **dict.fromkeys(("var", "val", "const", "auto", "mut", "float", "double", "int", "local", "shared", "alloc"), _NEW),
    **dict.fromkeys(("def", "fun", "func", "function", "proc", "kernel", "void", "extern"), _FN),
    **dict.fromkeys(("requires", "require", "given"), "what callers promise of sizes is written `where n >= 1`"),
    **dict.fromkeys(("->", "=>"), _RESULTS),
}


def meant(text: str, words: Sequence[str]) -> str | Proposal | None:
    """The help for `text` where one of `words` may stand; None where it is similar to none of them."""
    if text in _ELSEWHERE:
        return _ELSEWHERE[text]
    near = get_close_matches(text.lower(), words, 1, 0.6)
    return Proposal(f"did you mean `{near[0]}`?", Edit(near[0])) if near else None
