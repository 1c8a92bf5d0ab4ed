/* Copies of runs by an engine. Included by texpr_emulator_ops.h. */
#ifndef TEXPR_EMULATOR_RUNS_H
#define TEXPR_EMULATOR_RUNS_H

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

/* The driver's number of an element type. */
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
