"""Mistakes that no text can make, because the frontend forestalls them: built by hand, refused all the same."""

from __future__ import annotations

from tests.relation.build import array, at, function, par, put, syms

from texpr.checks import check
from texpr.ir.program import New

n, i = syms("n i")


def test_an_input_is_not_written() -> None:
    x = array("x", n)
    (found,) = check(function(par(n, i, put(at(x, i))), params=(x,), sizes=(n,)))
    assert (found.code, found.message) == ("E0405", "`x` is an input and cannot be written")


def test_iterations_cannot_meet_in_a_buffer_that_each_of_them_makes() -> None:
    s = array("s", role="local")
    body = par(n, i, New(s), put(at(s)), put(at(s), update="add"), reduce=(s,))
    (found,) = check(function(body, sizes=(n,)))
    assert (found.code, found.message) == ("E0415", "`s` is new in each iteration, so iterations cannot meet in it")
