/* Tensor memory. Included by texpr_emulator_ops.h. */
#ifndef TEXPR_EMULATOR_TENSOR_MEMORY_H
#define TEXPR_EMULATOR_TENSOR_MEMORY_H

template <class T> struct tx_columns_of {
    unsigned first;
};

namespace tx_emu TX_EMU_HIDDEN {

constexpr int TENSOR_LANES = 128;

/* Columns that lanes of a warp move: each has a lane of the 32 that its warp reaches. */
template <class T, class At> struct InColumns {
    unsigned first, lane, beyond;

    InColumns(const tx_columns_of<T> &array, int at, unsigned group) : first(array.first + (unsigned)at) {
        unsigned thread = own_lane(), all = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
        lane = thread % group;
        beyond = all / TX_WARP % 4u * TX_WARP + thread - lane;
    }
    struct Element {
        const InColumns *held;
        unsigned column, lane;
        T *at(bool write) const { return static_cast<T *>(core->touch_column(column, lane, write)); }
        operator T() const { return *at(false); }
        T operator=(T value) const { return *at(true) = value; }
    };
    Element operator[](long long e) const {
        return {this, first + (unsigned)At::slot((int)e, 0), beyond + (unsigned)At::lane((int)e, 0)};
    }
};

/* Columns of all lanes, for what is done there later. */
template <class T, class At> struct AllColumns {
    T *columns = nullptr;
    T &operator[](long long e) { return columns[At::slot((int)e, 0) * TENSOR_LANES + At::lane((int)e, 0)]; }
};

/* Which elements of matrices it reads: it is done once, in columns that nobody has. */
template <class T, class Later, class... Matrices> void learn_columns(Later &later, int count, Matrices &...matrices) {
    if (!(matrices.learning || ...)) return;
    std::vector<T> none((std::size_t)count * TENSOR_LANES);
    later.run(none.data());
    (matrices.learned(), ...);
}

template <class T>
void launch_work(Work *work, const tx_columns_of<T> &array, int at, int count, const MatrixOrder *matrices, unsigned number) {
    core->launch_work({work, array.first + (unsigned)at, count, matrices, number});
}

} // namespace tx_emu

template <int COUNT, class B> TX_FN void tx_take_columns(B word, long long at, int line = __builtin_LINE()) {
    static tx_emu::Site site = {"tensor memory", 4, (long long)COUNT * tx_emu::TENSOR_LANES, -1, 16, -1};
    auto place = tx_emu::shared_place(word, at);
    __syncwarp(0xffffffffu, line);
    if (threadIdx.x % 32u == 0) tx_emu::core->take_columns(place.view, place.index, tx_emu::core->shared(&site));
    __syncwarp(0xffffffffu, line);
}
template <class B> TX_FN uint32_t tx_first_column(B word, long long at) {
    auto place = tx_emu::shared_place(word, at);
    return tx_emu::core->first_column(place.view, place.index);
}
template <int COUNT> void tx_free_columns(uint32_t first, int line = __builtin_LINE()) {
    __syncwarp(0xffffffffu, line);
    if (threadIdx.x % 32u == 0) tx_emu::core->free_columns(first, COUNT);
}
inline void tx_fence_columns_before() { tx_emu::core->fence_columns(false); }
inline void tx_fence_columns_after() { tx_emu::core->fence_columns(true); }
template <class B> TX_FN void tx_commit_columns(B barriers, long long at) {
    auto place = tx_emu::shared_place(barriers, at);
    tx_emu::core->commit_columns(place.view, place.index);
}

#endif
