/* Vector accesses: texpr_vector.h, for checked arrays. Included by texpr_emulator_ops.h. */
#ifndef TEXPR_EMULATOR_VECTORS_H
#define TEXPR_EMULATOR_VECTORS_H

template <int N, class T> TX_FN tx_vec<std::remove_const_t<T>, N> tx_load(tx_emu::Array<T> array, long long index) {
    tx_vec<std::remove_const_t<T>, N> vector;
    std::memcpy(vector.at, tx_emu::core->read_run(array.view, index, N), sizeof vector.at);
    return vector;
}
template <class T, class... V> TX_FN void tx_store(tx_emu::Array<T> array, long long index, V... values) {
    T const given[] = {static_cast<T>(values)...};
    std::memcpy(tx_emu::core->write_run(array.view, index, sizeof...(V)), given, sizeof given);
}

#endif
