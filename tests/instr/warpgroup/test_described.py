"""The bits of a descriptor as CUDA code makes them, compiled for this processor, with addresses as a device has them."""

from __future__ import annotations

import ctypes

import pytest

from texpr.backends.cuda.headers import headers
from texpr.toolchain import Toolchain, this_machine

TEXT = """
#include <cstdint>
#include <type_traits>
#define __CUDACC__
#define TX_FN static inline
#define TX_ASM(...)
static uint32_t lies_at;
#define __cvta_generic_to_shared(array) lies_at
template <class U, class T> U tx_packed(T, T);
template <class T, int N> T tx_unpacked(uint32_t);
#include "texpr_warpgroup.h"

extern "C" __attribute__((visibility("default"))) uint64_t described(uint32_t address, int at) {
    lies_at = address;
    return tx_described((uint16_t const *)nullptr, at, tx_matrix<128, 8192, 1024>());
}
"""


@pytest.fixture(scope="module")
def described() -> ctypes.CDLL:
    """The function of the text above."""
    files = {"texpr_warpgroup.h": headers()["texpr_warpgroup.h"]}
    found = ctypes.CDLL(str(Toolchain(this_machine()).loadable("described", {"described.cpp": TEXT}, files)))
    found.described.restype, found.described.argtypes = ctypes.c_uint64, (ctypes.c_uint32, ctypes.c_int)
    return found


@pytest.mark.parametrize("rank", [0, 1, 7])
def test_a_block_has_no_number_in_its_descriptors(described: ctypes.CDLL, rank: int) -> None:
    """An address in shared memory has the number of the block in its cluster in bits 24 and up, as machine code makes it of
    SR_CgaCtaId; what a field of a descriptor holds is beside it."""
    for first, at in ((0, 0), (1024, 512), (131072, 16384), (196608, 8 * 1023)):
        said = described.described(rank << 24 | first, at)
        assert said & 0x3FFF == (first + 2 * at) >> 4
        assert said >> 16 & 0x3FFF == 8192 >> 4 and said >> 32 & 0x3FFF == 1024 >> 4 and said >> 62 == 1
        assert said == (said & 0x3FFF) | 512 << 16 | 64 << 32 | 1 << 62
