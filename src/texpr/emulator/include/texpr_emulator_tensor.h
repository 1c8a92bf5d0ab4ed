/* Copies of tiles and barriers in shared memory, for a host compiler: the functions of texpr_tensor.h. Included by texpr_emulator.h. */
#ifndef TEXPR_EMULATOR_TENSOR_H
#define TEXPR_EMULATOR_TENSOR_H

namespace tx_emu TX_EMU_HIDDEN {

/* A place in an array, as the core has it; in plain memory a view is found by its address. */
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

template <class... C> void copy_tile(Place near, const void *map, Place barrier, unsigned char how, unsigned mask, C... coordinates) {
    TileOrder order{near.view, near.index, map, sizeof...(C), {static_cast<long long>(coordinates)...}, barrier.view, barrier.index, how, mask, 0, {}};
    core->copy_tile(order);
}

/* A copy with coordinates `given`, the first `rank` of which say where it begins; the others are offsets, or rows. */
inline void copy_further(Place near, const void *map, Place barrier, unsigned rank, const long long *given, unsigned more,
                         unsigned mask = 0) {
    TileOrder order{near.view, near.index, map, rank, {}, barrier.view, barrier.index, 0, mask, more, {}};
    for (unsigned at = 0; at < rank; ++at) order.at[at] = given[at];
    for (unsigned at = 0; at < more; ++at) order.further[at] = given[rank + at];
    core->copy_tile(order);
}

} // namespace tx_emu

template <class B> TX_FN void tx_barrier_init(B barriers, long long at, unsigned count) {
    auto place = tx_emu::shared_place(barriers, at);
    tx_emu::core->init_barrier(place.view, place.index, count);
}
template <class B> TX_FN void tx_barrier_expect(B barriers, long long at, long long bytes) {
    auto place = tx_emu::shared_place(barriers, at);
    tx_emu::core->arrive(place.view, place.index, bytes);
}
template <class B> TX_FN void tx_barrier_arrive(B barriers, long long at) { tx_barrier_expect(barriers, at, 0); }
template <class B> TX_FN void tx_barrier_wait(B barriers, long long at, long long parity) {
    auto place = tx_emu::shared_place(barriers, at);
    tx_emu::core->wait_phase(place.view, place.index, (int)parity);
}
TX_FN void tx_fence_async() { tx_emu::core->fence_async(); }
TX_FN void tx_fence_init() { tx_emu::core->fence_made(); }
TX_FN void tx_prefetch(tx_tensor_map const &) {}

template <class A, class B, class... C>
TX_FN void tx_load_tensor(A to, long long at, tx_tensor_map const &map, B barriers, long long barrier, C... coordinates) {
    tx_emu::copy_tile(tx_emu::shared_place(to, at), &map, tx_emu::shared_place(barriers, barrier), 0, 0, coordinates...);
}
template <class A, class B, class... C>
TX_FN void tx_load_tensor_multicast(A to, long long at, tx_tensor_map const &map, B barriers, long long barrier, unsigned mask, C... coordinates) {
    tx_emu::copy_tile(tx_emu::shared_place(to, at), &map, tx_emu::shared_place(barriers, barrier), 0, mask, coordinates...);
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
        tx_emu::copy_tile(tx_emu::shared_place(from, at), &map, {nullptr, 0}, HOW, 0, coordinates...); \
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

template <class A, class G, class B>
TX_FN void tx_load_bulk(A to, long long at, G from, long long start, B barriers, long long barrier, long long count) {
    tx_emu::View made;
    auto near = tx_emu::shared_place(to, at), far = tx_emu::global_place(made, from, start);
    auto with = tx_emu::shared_place(barriers, barrier);
    tx_emu::core->copy_run({near.view, near.index, far.view, far.index, count, with.view, with.index, 0, 0});
}
template <int N, class A, class G, class B>
TX_FN void tx_load_bulk(A to, long long at, G from, long long start, B barriers, long long barrier) {
    tx_load_bulk(to, at, from, start, barriers, barrier, N);
}

namespace tx_emu TX_EMU_HIDDEN {

/* The number that the driver has for a type of elements. */
template <class T> struct Number;
#define TX_EMU_NUMBER(T, NUMBER) \
    template <> struct Number<T> { static constexpr unsigned char value = NUMBER; };
TX_EMU_NUMBER(uint32_t, 2)
TX_EMU_NUMBER(int32_t, 3)
TX_EMU_NUMBER(uint64_t, 4)
TX_EMU_NUMBER(int64_t, 5)
TX_EMU_NUMBER(tx_f16, 6)
TX_EMU_NUMBER(float, 7)
TX_EMU_NUMBER(double, 8)
TX_EMU_NUMBER(tx_bf16, 9)
#undef TX_EMU_NUMBER
template <class A> struct ElementOf;
template <class T> struct ElementOf<T *> { using type = std::remove_const_t<T>; };
template <class T> struct ElementOf<Array<T>> { using type = std::remove_const_t<T>; };

template <class G, class A> void store_run(G to, long long at, A from, long long start, long long count, unsigned char how, unsigned char element) {
    View made;
    auto near = shared_place(from, start), far = global_place(made, to, at);
    core->copy_run({near.view, near.index, far.view, far.index, count, nullptr, 0, how, element});
}

} // namespace tx_emu

template <class G, class A> TX_FN void tx_store_bulk(G to, long long at, A from, long long start, long long count) {
    tx_emu::store_run(to, at, from, start, count, 0, 0);
}
template <int N, class G, class A> TX_FN void tx_store_bulk(G to, long long at, A from, long long start) {
    tx_store_bulk(to, at, from, start, N);
}

/* Sums of signed words of 64 bits are those of unsigned ones. */
#define TX_EMU_REDUCE_BULK(NAME, HOW) \
    template <class G, class A> TX_FN void NAME(G to, long long at, A from, long long start, long long count) { \
        constexpr unsigned char element = tx_emu::Number<typename tx_emu::ElementOf<A>::type>::value; \
        tx_emu::store_run(to, at, from, start, count, HOW, HOW == 1 && element == 5 ? 4 : element); \
    } \
    template <int N, class G, class A> TX_FN void NAME(G to, long long at, A from, long long start) { NAME(to, at, from, start, N); }
TX_EMU_REDUCE_BULK(tx_reduce_add_bulk, 1)
TX_EMU_REDUCE_BULK(tx_reduce_min_bulk, 2)
TX_EMU_REDUCE_BULK(tx_reduce_max_bulk, 3)
TX_EMU_REDUCE_BULK(tx_reduce_and_bulk, 4)
TX_EMU_REDUCE_BULK(tx_reduce_or_bulk, 5)
TX_EMU_REDUCE_BULK(tx_reduce_xor_bulk, 6)
TX_EMU_REDUCE_BULK(tx_reduce_inc_bulk, 7)
TX_EMU_REDUCE_BULK(tx_reduce_dec_bulk, 8)
#undef TX_EMU_REDUCE_BULK

TX_FN void tx_commit_bulk() { tx_emu::core->commit_stores(); }
template <int PENDING> TX_FN void tx_wait_bulk() { tx_emu::core->wait_for_stores(PENDING, false); }
template <int PENDING> TX_FN void tx_wait_bulk_read() { tx_emu::core->wait_for_stores(PENDING, true); }

#endif
