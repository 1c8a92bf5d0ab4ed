"""Problems in CuTe DSL for sm_100a, and their configurations."""

# The language reads annotations and rewrites functions from their text: no `from __future__ import annotations`.

import sys
from functools import partial

import cutlass
from cute_blackwell import product
from of_cute import PEER, configurations

PEER.problems.clear()
configurations("matmul_bf16", partial(product, cutlass.BFloat16, False), columns=[256, 128], stages=[4], pair=[False, True])
configurations("matmul_f8", partial(product, cutlass.Float8E4M3FN, True), columns=[256, 128], stages=[4], pair=[False, True])

if __name__ == "__main__":
    sys.exit(PEER.main())
