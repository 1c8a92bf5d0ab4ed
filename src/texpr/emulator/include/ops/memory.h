/* Atomics. Included by texpr_emulator_ops.h. */
#ifndef TEXPR_EMULATOR_MEMORY_H
#define TEXPR_EMULATOR_MEMORY_H

namespace tx_emu TX_EMU_HIDDEN {

template <class T> T *place(Pointer<T> at) { return static_cast<T *>(core->atomic(at.view, at.index)); }
template <class T> T *place(T *at) { return TX_EMU_CHECKED ? static_cast<T *>(core->atomic_at(at, sizeof(T))) : at; }

/* Integer sums, which wrap. */
template <class T> T sum(T a, T b) {
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>)
        return static_cast<T>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
    else return static_cast<T>(a + b);
}
template <class T> T difference(T a, T b) {
    return static_cast<T>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
}
/* Propagates nan, so (b < a) does not suffice. */
template <class T> T least(T a, T b) { return (a != a) || a < b ? a : b; }
template <class T> T greatest(T a, T b) { return (a != a) || a > b ? a : b; }

} // namespace tx_emu

#define TX_EMU_ATOMIC(NAME, RESULT) \
    template <class T> T tx_emu_##NAME(T *at, T b) { \
        T const a = *at; \
        *at = static_cast<T>(RESULT); \
        return a; \
    } \
    template <class T> T NAME(tx_emu::Pointer<T> at, tx_emu::exactly<T> b) { return tx_emu_##NAME(tx_emu::place(at), b); } \
    template <class T> T NAME(T *at, tx_emu::exactly<T> b) { return tx_emu_##NAME(tx_emu::place(at), b); }
TX_EMU_ATOMIC(atomicAdd, tx_emu::sum(a, b))
TX_EMU_ATOMIC(atomicSub, tx_emu::difference(a, b))
TX_EMU_ATOMIC(atomicMin, tx_emu::least(a, b))
TX_EMU_ATOMIC(atomicMax, tx_emu::greatest(a, b))
TX_EMU_ATOMIC(atomicAnd, a & b)
TX_EMU_ATOMIC(atomicOr, a | b)
TX_EMU_ATOMIC(atomicXor, a ^ b)
TX_EMU_ATOMIC(atomicExch, b)
#undef TX_EMU_ATOMIC

/* Of any order and scope: each update is one step for all. */
#define atomicAdd_block atomicAdd
#define atomicMin_block atomicMin
#define atomicMax_block atomicMax
#define atomicAnd_block atomicAnd
#define atomicOr_block atomicOr
#define TX_RED(VERB, CONSTRAINT, SAME, AT, VALUE) SAME(AT, VALUE)

#define TX_EMU_RED_VECTORS(ORDER, SCOPE) \
    template <class T, class... V> void tx_red_add_##ORDER##_##SCOPE(tx_emu::Pointer<T> at, V... values) { \
        ((atomicAdd(at, static_cast<T>(values)), at.index += 1), ...); \
    } \
    template <class T, class... V> void tx_red_add_##ORDER##_##SCOPE(T *at, V... values) { \
        (atomicAdd(at++, static_cast<T>(values)), ...); \
    }
TX_EMU_RED_VECTORS(relaxed, gpu)
TX_EMU_RED_VECTORS(release, gpu)
TX_EMU_RED_VECTORS(relaxed, cluster)
TX_EMU_RED_VECTORS(release, cluster)
#undef TX_EMU_RED_VECTORS

template <class P, class T> T tx_emu_compare_and_swap(P at, T expected, T wanted) {
    T *const here = tx_emu::place(at);
    T const before = *here;
    if (std::memcmp(&before, &expected, sizeof(T)) == 0) *here = wanted;
    return before;
}
template <class T> T atomicCAS(tx_emu::Pointer<T> at, tx_emu::exactly<T> expected, tx_emu::exactly<T> wanted) {
    return tx_emu_compare_and_swap<tx_emu::Pointer<T>, T>(at, expected, wanted);
}
template <class T> T atomicCAS(T *at, tx_emu::exactly<T> expected, tx_emu::exactly<T> wanted) {
    return tx_emu_compare_and_swap<T *, T>(at, expected, wanted);
}

#endif
