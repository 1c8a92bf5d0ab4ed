"""What `explain` gives: plain data, as JSON has it."""

from typing import Any, TypeAlias

Data: TypeAlias = dict[str, Any]
