"""Flags by which overflow of signed integers ends the process where it happens: libraries that tests make are built with them.

Data of the language wraps around by definition, and emitted code says so; indices and sizes are proved not to overflow.
"""

TRAPPING = ("-fsanitize=signed-integer-overflow", "-fsanitize-undefined-trap-on-error")
