"""Syntax (E01)."""

CODES: dict[str, str] = {
    "E0101": "unexpected character",
    "E0102": "something else was expected here",
    "E0103": "bracket not closed",
    "E0104": "malformed number",
    "E0105": "nested too deeply",
    "E0106": "chained comparison",
    "E0107": "keyword used as a name",
    "E0108": "malformed string",
    "E0109": "not something that can be written to",
    "E0110": "operator of another language",
    "E0111": "comment of another language",
    "E0112": "given twice",
    "E0113": "statement after `return`",
    "E0114": "update that does not exist",
}
