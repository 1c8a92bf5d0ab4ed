/* Positions in arrays, as operands of copies by engines and of barriers in shared memory. Included by texpr_emulator.h. */
#ifndef TEXPR_EMULATOR_PLACES_H
#define TEXPR_EMULATOR_PLACES_H

namespace tx_emu TX_EMU_HIDDEN {

/* A position in an array for the core; in plain memory the view is looked up by address. */
struct Place {
    View *view;
    long long index;
};
template <class T> Place shared_place(Array<T> array, long long index) { return {array.view, index}; }
template <class T> Place shared_place(T *array, long long index) {
    View *view = core->shared_at(array);
    return {view, index + (reinterpret_cast<const char *>(array) - view->base) / (long long)sizeof(T)};
}
template <class T> Place global_place(View &, Array<T> array, long long index) { return {array.view, index}; }
template <class T> Place global_place(View &made, T *array, long long index) {
    auto base = reinterpret_cast<char *>(const_cast<std::remove_const_t<T> *>(array));
    made = View{base, 1ll << 60, sizeof(T), 1, Space::global, false, false, "", nullptr, nullptr};
    return {&made, index};
}

template <class... C> void copy_tile(Place near, const void *map, Place barrier, unsigned char how, unsigned mask, bool led, C... coordinates) {
    TileOrder order{near.view, near.index, map, sizeof...(C), {static_cast<long long>(coordinates)...}, barrier.view, barrier.index, how, mask, 0, {}, led};
    core->copy_tile(order);
}

/* A copy with coordinates `given`, the first `rank` of which are those of its start; the others are offsets, or rows. */
inline void copy_further(Place near, const void *map, Place barrier, unsigned rank, const long long *given, unsigned more,
                         unsigned mask = 0) {
    TileOrder order{near.view, near.index, map, rank, {}, barrier.view, barrier.index, 0, mask, more, {}, false};
    for (unsigned at = 0; at < rank; ++at) order.at[at] = given[at];
    for (unsigned at = 0; at < more; ++at) order.further[at] = given[rank + at];
    core->copy_tile(order);
}

} // namespace tx_emu

#endif
