/* Tensor memory. Included by texpr_emulator_ops.h. */
#ifndef TEXPR_EMULATOR_TENSOR_MEMORY_H
#define TEXPR_EMULATOR_TENSOR_MEMORY_H

template <class T, int COUNT = 0> struct tx_columns_of {
    unsigned first;
};

namespace tx_emu TX_EMU_HIDDEN {

constexpr int TENSOR_LANES = 128, MOST_COLUMNS = 1024; /* a block's columns begin at one below 128 here */

/* Columns that lanes of a warp move: each has a lane of the 32 that its warp reaches. */
template <class T, class At> struct InColumns {
    unsigned first, from, lane, beyond;

    InColumns(const tx_columns_of<T> &array, int at, unsigned group) : first(array.first), from((unsigned)at) {
        unsigned thread = own_lane(), all = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
        lane = thread % group;
        beyond = all / TX_WARP % 4u * TX_WARP + thread - lane;
    }
    struct Element {
        const InColumns *held;
        unsigned byte, lane;
        T *at(bool write) const {
            return reinterpret_cast<T *>(static_cast<char *>(core->touch_column(held->first + byte / 4u, lane, write)) + byte % 4u);
        }
        operator T() const { return *at(false); }
        T operator=(T value) const { return *at(true) = value; }
    };
    Element operator[](long long e) const {
        return {this, (from + (unsigned)At::slot((int)e, 0)) * (unsigned)sizeof(T), beyond + (unsigned)At::lane((int)e, 0)};
    }
};

/* Columns of all lanes, for what is done there later: `columns` is column 0. */
template <class T, class At> struct AllColumns {
    char *columns = nullptr;
    unsigned first = 0, from = 0;
    void begin(const tx_columns_of<T> &array, int at) { first = array.first, from = (unsigned)at; }
    T &operator[](long long e) {
        unsigned byte = (from + (unsigned)At::slot((int)e, 0)) * (unsigned)sizeof(T);
        return *reinterpret_cast<T *>(columns + ((first + byte / 4u) * TENSOR_LANES + (unsigned)At::lane((int)e, 0)) * 4u + byte % 4u);
    }
};

/* Scales, of which COUNT columns are copied at once, slot s of 4 COUNT in byte s / COUNT of column s % COUNT: what is written is
   written to COPIES places, and what is read is read in the first. */
template <class T, int COUNT, int COPIES, class At> struct AllBytes {
    char *columns = nullptr;
    unsigned first = 0, from = 0;
    void begin(const tx_columns_of<T, COUNT> &array, int at) { first = array.first, from = (unsigned)at; }
    T &place(int e, int copy) const {
        unsigned slot = from + (unsigned)At::slot(e, copy);
        unsigned column = first + slot / (4u * COUNT) * COUNT + slot % COUNT;
        return *reinterpret_cast<T *>(columns + (column * TENSOR_LANES + (unsigned)At::lane(e, copy)) * 4u + slot / COUNT % 4u);
    }
    struct Element {
        const AllBytes *held;
        int e;
        operator T() const { return held->place(e, 0); }
        T operator=(T value) const {
            for (int copy = 0; copy < COPIES; ++copy) held->place(e, copy) = value;
            return value;
        }
    };
    Element operator[](long long e) const { return {this, (int)e}; }
};

/* Which elements of matrices it reads: it is done once, in columns that nobody has. */
template <class Later, class... Matrices> void learn_columns(Later &later, Matrices &...matrices) {
    if (!(matrices.learning || ...)) return;
    std::vector<std::uint32_t> none((std::size_t)MOST_COLUMNS * TENSOR_LANES);
    later.run(none.data());
    (matrices.learned(), ...);
}

template <class T, int COUNT> std::integral_constant<int, COUNT> count_of(const tx_columns_of<T, COUNT> &);

/* The columns of `count` elements of a lane. */
template <class T> ColumnOrder columns_in(const tx_columns_of<T> &array, int at, int count) {
    return {array.first + (unsigned)(at * (int)sizeof(T) / 4), count * (int)sizeof(T) / 4};
}
template <class T, int COUNT> ColumnOrder columns_in(const tx_columns_of<T, COUNT> &array, int at, int count) {
    unsigned turn = array.first + (unsigned)(at / (4 * COUNT) * COUNT), low = (unsigned)(at % COUNT);
    return count > COUNT ? ColumnOrder{turn, count / 4} : ColumnOrder{turn + low, count};
}

inline void launch_work(Work *work, ColumnOrder columns, const MatrixOrder *matrices, unsigned number, const ColumnOrder *reads, unsigned others, bool copies, unsigned pair = 0) {
    core->launch_work({work, columns.column, columns.count, matrices, number, reads, others, copies, pair});
}

/* Whether this block is the first one of a pair. */
inline bool leads_pair() { return core->cluster_rank() % 2 == 0; }

} // namespace tx_emu

template <int COUNT, int BLOCKS = 1, class B> TX_FN void tx_take_columns(B word, long long at, int line = __builtin_LINE()) {
    static tx_emu::Site site = {"tensor memory", 4, (long long)COUNT * tx_emu::TENSOR_LANES, -1, 16, -1};
    auto place = tx_emu::shared_place(word, at);
    __syncwarp(0xffffffffu, line);
    if (threadIdx.x % 32u == 0) tx_emu::core->take_columns(place.view, place.index, tx_emu::core->shared(&site), BLOCKS == 2);
    __syncwarp(0xffffffffu, line);
}
template <class B> TX_FN uint32_t tx_first_column(B word, long long at) {
    auto place = tx_emu::shared_place(word, at);
    return tx_emu::core->first_column(place.view, place.index);
}
template <int COUNT, int BLOCKS = 1> void tx_free_columns(uint32_t first, int line = __builtin_LINE()) {
    __syncwarp(0xffffffffu, line);
    if (threadIdx.x % 32u == 0) tx_emu::core->free_columns(first, COUNT, BLOCKS == 2);
}
inline void tx_fence_columns_before() { tx_emu::core->fence_columns(false); }
inline void tx_fence_columns_after() { tx_emu::core->fence_columns(true); }
template <class B> TX_FN void tx_commit_columns(B barriers, long long at) {
    auto place = tx_emu::shared_place(barriers, at);
    tx_emu::core->commit_columns(place.view, place.index, false);
}
template <class B> TX_FN void tx_commit_columns_of_pair(B barriers, long long at) {
    auto place = tx_emu::shared_place(barriers, at);
    if (tx_emu::leads_pair()) tx_emu::core->commit_columns(place.view, place.index, true);
}

#endif
