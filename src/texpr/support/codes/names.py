"""Names (E02)."""

CODES: dict[str, str] = {
    "E0201": "unknown name",
    "E0202": "name used outside its block",
    "E0203": "name declared twice, or shadowed",
    "E0204": "unknown function",
    "E0205": "function defined twice",
    "E0206": "recursive function",
    "E0207": "unknown type",
    "E0208": "unknown named parameter",
    "E0209": "no such `const`",
    "E0210": "built-in name defined",
    "E0211": "unknown combiner",
    "E0212": "unknown operand of an instruction",
    "E0213": "argument of a directive that is no size",
    "E0214": "schedule of an unknown function",
    "E0215": "schedule defined twice",
    "E0216": "schedule for an unknown target",
}
