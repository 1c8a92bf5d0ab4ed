"""C identifiers for a user's names: no keyword or macro, and distinct within a scope."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

_KEYWORDS = frozenset(
    re.findall(
        r"\w+",
        """
alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t char32_t class co_await co_return
co_yield compl concept const const_cast consteval constexpr constinit continue decltype default delete do double dynamic_cast
else enum explicit export extern false final float for friend goto if import inline int long module mutable namespace new
noexcept not not_eq nullptr operator or or_eq override private protected public register reinterpret_cast requires restrict
return short signed sizeof static static_assert static_cast struct switch template this thread_local throw true try typedef
typeid typename typeof union unsigned using virtual void volatile wchar_t while xor xor_eq
""",
    )
)
"""Keywords of C11 and C++20."""

_MEANINGFUL = frozenset(
    re.findall(
        r"\w+",
        """
threadIdx blockIdx blockDim gridDim warpSize dim3 uint3 memcpy memset malloc free std size_t ptrdiff_t uintptr_t intptr_t
main linux unix i386 errno assert signbit isnan isinf isfinite isnormal fpclassify isgreater isgreaterequal isless
islessequal islessgreater isunordered offsetof NULL EOF INFINITY NAN HUGE_VAL HUGE_VALF HUGE_VALL TRUE FALSE BIG_ENDIAN
LITTLE_ENDIAN PDP_ENDIAN BYTE_ORDER WNOHANG WUNTRACED WSTOPPED WEXITED WCONTINUED WNOWAIT P_ALL MATH_ERRNO MATH_ERREXCEPT
math_errhandling DOMAIN SING OVERFLOW UNDERFLOW PLOSS TLOSS MAXFLOAT RAND_MAX MB_CUR_MAX alloca strdupa strndupa stdin
stdout stderr major minor makedev BUFSIZ CSIGNAL NFDBITS NZERO P_tmpdir WEXITSTATUS WSTOPSIG WTERMSIG assert_perror isascii
issubnormal kill_dependency sched_priority toascii stream workspace texpr
""",
    )
)
"""Names in emitted code, or macros where it is compiled."""

_FAMILIES = re.compile(
    r"u?int[a-z0-9_]*_t$|(tx_|TX_|texpr_|TEXPR_|omp_|cuda[A-Z_]|CUDA|cu[A-Z]|atomic|pthread_|[A-Z]_|SNAN|WIF)"
    r"|[A-Z][A-Z0-9]*_[A-Z0-9_]*$|(is|to)[a-z]+_l$|(hto)?[bl]e(16|32|64)(toh)?$"
)
"""Names reserved for the headers, CUDA or the C library: types, and the many macros in capitals with `_`."""

_RESERVED = _KEYWORDS | _MEANINGFUL

_LONGEST = 100
"""The greatest length of a name: files are named after functions, and a file name has at most 255 characters."""


def identifier(name: str) -> str:
    """`name` as an unreserved C identifier; characters that C lacks become `_`, and a long name ends in a digest."""
    text = re.sub(r"_+", "_", re.sub(r"[^A-Za-z0-9]", "_", name)) or "_"
    if text[0].isdigit() or text[0] == "_":
        text = f"v{text}"
    if len(text) > _LONGEST:
        digest = hashlib.sha256(name.encode(errors="backslashreplace")).hexdigest()[:16]
        text = f"{text[: _LONGEST - 17].rstrip('_')}_{digest}"
    if text in _RESERVED or _FAMILIES.match(text):
        return f"{text}v" if text.endswith("_") else f"{text}_"
    return text


class Taken:
    """The identifiers in use in a scope; inner scopes include those of outer ones."""

    __slots__ = ("_names", "_outer")

    def __init__(self, names: Iterable[str] = (), outer: Taken | None = None):
        self._names, self._outer = set(names), outer

    def __contains__(self, name: str) -> bool:
        return name in self._names or (self._outer is not None and name in self._outer)

    def inner(self) -> Taken:
        """A scope within this one."""
        return Taken(outer=self)

    def take(self, name: str) -> str:
        """An unused identifier derived from the user's `name`; for `i'1` it is `i` if that is free, else `i_1`, `i_2`, …"""
        plain = identifier(name.split("'", 1)[0])
        count, found = 0, plain
        while found in self:
            count += 1
            found = f"{plain.rstrip('_')}_{count}"
        self._names.add(found)
        return found
