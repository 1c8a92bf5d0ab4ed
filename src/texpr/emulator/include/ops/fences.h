/* Fences between threads and engines. Included by texpr_emulator_ops.h. */
#ifndef TEXPR_EMULATOR_FENCES_H
#define TEXPR_EMULATOR_FENCES_H

TX_FN void tx_fence_async() { tx_emu::core->fence_async(); }
TX_FN void tx_fence_init() { tx_emu::core->fence_made(); }

#endif
