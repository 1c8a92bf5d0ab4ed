/* Asynchronous copies. Included by texpr_emulator_ops.h. */
#ifndef TEXPR_EMULATOR_COPIES_H
#define TEXPR_EMULATOR_COPIES_H

template <int N, class T, class S>
TX_FN void tx_copy_async(tx_emu::Array<T> to, long long at, tx_emu::Array<S> from, long long start, bool when = true) {
    static_assert(std::is_same_v<T, std::remove_const_t<S>>, "elements of one type");
    static_assert(N * sizeof(T) == 4 || N * sizeof(T) == 8 || N * sizeof(T) == 16, "4, 8 or 16 bytes");
    tx_emu::core->copy({to.view, at, from.view, start, N, when, !std::is_const_v<S>});
}
TX_FN void tx_commit_async() {
    if (TX_EMU_CHECKED) tx_emu::core->commit();
}
template <int PENDING> TX_FN void tx_wait_async() {
    if (TX_EMU_CHECKED) tx_emu::core->wait(PENDING);
}

#endif
