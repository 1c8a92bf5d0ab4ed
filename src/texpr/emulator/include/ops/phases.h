/* Barriers in shared memory. Included by texpr_emulator_ops.h. */
#ifndef TEXPR_EMULATOR_PHASES_H
#define TEXPR_EMULATOR_PHASES_H

template <class B> TX_FN void tx_barrier_init(B barriers, long long at, unsigned count) {
    auto place = tx_emu::shared_place(barriers, at);
    tx_emu::core->init_barrier(place.view, place.index, count);
}
template <class B> TX_FN void tx_barrier_expect(B barriers, long long at, long long bytes) {
    auto place = tx_emu::shared_place(barriers, at);
    tx_emu::core->arrive(place.view, place.index, bytes);
}
template <class B> TX_FN void tx_barrier_arrive(B barriers, long long at) { tx_barrier_expect(barriers, at, 0); }
template <class B> TX_FN void tx_barrier_release(B barriers, long long at, int line = __builtin_LINE()) {
    __syncwarp(0xffffffffu, line);
    if (threadIdx.x % 32u == 0) tx_barrier_arrive(barriers, at);
}
template <int BLOCKS, class B> TX_FN void tx_barrier_release_among(B barriers, long long at, int line = __builtin_LINE()) {
    __syncwarp(0xffffffffu, line);
    auto place = tx_emu::shared_place(barriers, at);
    if (threadIdx.x % 32u < BLOCKS) tx_emu::core->arrive_in(place.view, place.index, threadIdx.x % 32u);
}
template <class B> TX_FN void tx_barrier_wait(B barriers, long long at, long long parity) {
    auto place = tx_emu::shared_place(barriers, at);
    tx_emu::core->wait_phase(place.view, place.index, (int)parity);
}

#endif
