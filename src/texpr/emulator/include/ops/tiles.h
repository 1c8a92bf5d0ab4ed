/* Copies of boxes of tensors. Included by texpr_emulator_ops.h. */
#ifndef TEXPR_EMULATOR_TILES_H
#define TEXPR_EMULATOR_TILES_H

TX_FN void tx_prefetch(tx_tensor_map const &) {}

template <class A, class B, class... C>
TX_FN void tx_load_tensor(A to, long long at, tx_tensor_map const &map, B barriers, long long barrier, C... coordinates) {
    tx_emu::copy_tile(tx_emu::shared_place(to, at), &map, tx_emu::shared_place(barriers, barrier), 0, 0, false, coordinates...);
}
template <class A, class B, class... C>
TX_FN void tx_load_tensor_led(A to, long long at, tx_tensor_map const &map, B barriers, long long barrier, C... coordinates) {
    tx_emu::copy_tile(tx_emu::shared_place(to, at), &map, tx_emu::shared_place(barriers, barrier), 0, 0, true, coordinates...);
}
template <class A, class B, class... C>
TX_FN void tx_load_tensor_multicast(A to, long long at, tx_tensor_map const &map, B barriers, long long barrier, unsigned mask, C... coordinates) {
    tx_emu::copy_tile(tx_emu::shared_place(to, at), &map, tx_emu::shared_place(barriers, barrier), 0, mask, false, coordinates...);
}

template <class A, class B, class... C>
TX_FN void tx_load_columns_multicast(A to, long long at, tx_tensor_map const &map, B barriers, long long barrier, unsigned mask, C... given) {
    constexpr unsigned rank = (sizeof...(C) + 2) / 2; /* that many coordinates, and two less offsets */
    const long long numbers[] = {static_cast<long long>(given)...};
    tx_emu::copy_further(tx_emu::shared_place(to, at), &map, tx_emu::shared_place(barriers, barrier), rank, numbers, rank - 2, mask);
}
template <class A, class B, class... C>
TX_FN void tx_load_columns(A to, long long at, tx_tensor_map const &map, B barriers, long long barrier, C... given) {
    tx_load_columns_multicast(to, at, map, barriers, barrier, 0, given...);
}
template <class A, class B>
TX_FN void tx_load_rows(A to, long long at, tx_tensor_map const &map, B barriers, long long barrier, int column, int a, int b, int c, int d) {
    const long long numbers[] = {column, a, b, c, d};
    tx_emu::copy_further(tx_emu::shared_place(to, at), &map, tx_emu::shared_place(barriers, barrier), 1, numbers, 4);
}

template <class A>
TX_FN void tx_store_rows(tx_tensor_map const &map, A from, long long at, int column, int a, int b, int c, int d) {
    const long long numbers[] = {column, a, b, c, d};
    tx_emu::copy_further(tx_emu::shared_place(from, at), &map, {nullptr, 0}, 1, numbers, 4);
}

#define TX_EMU_STORE_TENSOR(NAME, HOW) \
    template <class A, class... C> TX_FN void NAME(tx_tensor_map const &map, A from, long long at, C... coordinates) { \
        tx_emu::copy_tile(tx_emu::shared_place(from, at), &map, {nullptr, 0}, HOW, 0, false, coordinates...); \
    }
TX_EMU_STORE_TENSOR(tx_store_tensor, 0)
TX_EMU_STORE_TENSOR(tx_reduce_add_tensor, 1)
TX_EMU_STORE_TENSOR(tx_reduce_min_tensor, 2)
TX_EMU_STORE_TENSOR(tx_reduce_max_tensor, 3)
TX_EMU_STORE_TENSOR(tx_reduce_and_tensor, 4)
TX_EMU_STORE_TENSOR(tx_reduce_or_tensor, 5)
TX_EMU_STORE_TENSOR(tx_reduce_xor_tensor, 6)
TX_EMU_STORE_TENSOR(tx_reduce_inc_tensor, 7)
TX_EMU_STORE_TENSOR(tx_reduce_dec_tensor, 8)
#undef TX_EMU_STORE_TENSOR

#endif
