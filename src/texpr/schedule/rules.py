"""Every directive by name."""

from __future__ import annotations

from texpr.isa.gather import gather
from texpr.schedule import directives
from texpr.schedule.call import Rule

RULES: dict[str, Rule] = {rule.name: rule for rule in gather(directives.__name__, directives.__path__, "RULE", Rule)}
"""Every directive of a schedule."""
