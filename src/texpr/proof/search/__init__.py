"""The search for the meaning of each event of a plan.

It is not trusted: its results are tags, plain data, and `texpr.proof.plan` proves or refuses each of them. Guesses are made
from the text: values have the same structure, indices of the same elements are equal, symbols keep their names. Where this
finds no proof, numbers are tried for which the plan may be wrong (`trial`).
"""

from texpr.proof.search.certificate import Certificate, certified, proved
from texpr.proof.search.search import search

__all__ = ["Certificate", "certified", "proved", "search"]
