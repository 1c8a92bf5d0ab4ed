"""What each event of a plan does for its program, found by searching.

Nothing here is believed: what is found is tags, plain data, and `texpr.proof.plan` proves each of them or refuses it. A guess
is made from the text: values are built alike, indices of the same elements are equal, symbols have kept their names. Where no
proof is found by that, numbers are tried at which the plan may be wrong (`trial`).
"""

from texpr.proof.search.certificate import Certificate, certified, proved
from texpr.proof.search.search import search

__all__ = ["Certificate", "certified", "proved", "search"]
