/* What the tensor core of a warpgroup does by itself. Included by texpr_emulator_ops.h. */
#ifndef TEXPR_EMULATOR_WARPGROUP_H
#define TEXPR_EMULATOR_WARPGROUP_H

namespace tx_emu TX_EMU_HIDDEN {

inline unsigned own_thread() { return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z); }

/* A matrix in shared memory as the bits of its descriptor say, of ROWS × COLUMNS elements in the order of rows. UNIT: the dimension
   along which 16 bytes are consecutive; SUMMED: whether what is summed up goes along it. */
template <class T, class How, int ROWS, int COLUMNS, int UNIT, bool SUMMED> struct Matrix {
    View *view = nullptr;
    const char *start = nullptr;
    std::vector<int> *reads = nullptr; /* the elements that a lane's share reads, in order */
    bool learning = false;
    std::vector<long long> elements; /* where they are */

    static constexpr unsigned long long leading = (How::bits >> 16 & 0x3fff) * 16, stride = (How::bits >> 32 & 0x3fff) * 16;
    static constexpr unsigned span = How::bits >> 62 == 0 ? 0 : 256u >> (How::bits >> 62);

    /* `pair`: 1 or 2 where it is in the first or the second block of a pair. */
    template <class Array> void begin(Array &array, long long at, std::vector<int> &known, unsigned pair = 0) {
        Place place = shared_place(array, at);
        view = pair ? core->shared_of(place.view, core->cluster_rank() / 2 * 2 + pair - 1) : place.view;
        start = view->base + place.index * (long long)sizeof(T);
        reads = &known;
        learning = TX_EMU_CHECKED && known.empty();
    }
    void whole() {
        for (int e = 0; learning && e < ROWS * COLUMNS; ++e) reads->push_back(e);
        learning = false;
    }
    void learned() {
        std::sort(reads->begin(), reads->end());
        reads->erase(std::unique(reads->begin(), reads->end()), reads->end());
        learning = false;
    }
    const char *address(int e) const {
        constexpr unsigned chunk = 16, rows = 8, each = chunk / sizeof(T);
        unsigned row = (unsigned)e / COLUMNS, column = (unsigned)e % COLUMNS, along = UNIT ? column : row, across = UNIT ? row : column;
        unsigned unit = along / each;
        unsigned long long linear = along % each * sizeof(T);
        if (span) {
            constexpr unsigned wide = span ? span / chunk : 1;
            linear += across / rows * stride + across % rows * span + unit / wide * leading + unit % wide * chunk;
        } else linear += across % rows * chunk + (SUMMED ? unit * leading + across / rows * stride : unit * stride + across / rows * leading);
        auto found = reinterpret_cast<std::uintptr_t>(start) + linear;
        if (span) found ^= (found >> 7 & (span / chunk - 1)) << 4;
        return reinterpret_cast<const char *>(found);
    }
    long long element(int e) const { return (address(e) - view->base) / (long long)sizeof(T); }
    T operator[](long long e) const {
        T value;
        if (learning) return reads->push_back((int)e), T{};
        long long at = element((int)e);
        if (at < 0 || at >= view->count) return T{};
        std::memcpy(&value, view->base + at * (long long)sizeof(T), sizeof value);
        return value;
    }
    MatrixOrder order() {
        for (int e : *reads) elements.push_back(element(e));
        return {view, elements.data(), (unsigned)elements.size(), (start - view->base) / (long long)sizeof(T), span};
    }
};

/* A matrix of which each block of a pair has one half, along dimension DIM. */
template <class T, class How, int ROWS, int COLUMNS, int UNIT, bool SUMMED, int DIM> struct Halves {
    static constexpr int rows = DIM == 0 ? ROWS / 2 : ROWS, columns = DIM == 1 ? COLUMNS / 2 : COLUMNS;
    Matrix<T, How, rows, columns, UNIT, SUMMED> part[2];
    T operator[](long long e) const {
        int row = (int)e / COLUMNS, column = (int)e % COLUMNS;
        return part[DIM == 0 ? row / rows : column / columns][row % rows * columns + column % columns];
    }
};

/* The registers of a lane, number `lane` of its group: what it has not is neither read nor written. */
template <class T, int COUNT, class At> struct Own {
    T *registers = nullptr;
    unsigned lane = 0;

    struct Element {
        Own *own;
        int slot;
        bool mine;
        operator T() const { return mine ? own->registers[slot] : T{}; }
        T operator=(T value) const {
            if (mine) own->registers[slot] = value;
            return value;
        }
        template <class U> T operator+=(const U &value) const { return *this = static_cast<T>(static_cast<T>(*this) + static_cast<T>(value)); }
    };
    Element operator[](long long e) { return {this, At::slot((int)e, 0), (unsigned)At::lane((int)e, 0) == lane}; }
    static constexpr int count = COUNT;
};

/* Registers that are only read, of the lanes of a warp: what a lane of another warp has is out of reach. */
template <class T, class At> struct Lent {
    const void *const *all = nullptr;
    unsigned warp = 0;
    T operator[](long long e) const {
        auto lane = (unsigned)At::lane((int)e, 0);
        const void *own = all && lane / TX_WARP == warp ? all[lane % TX_WARP] : nullptr;
        return own ? static_cast<const T *>(own)[At::slot((int)e, 0)] : T{};
    }
};

#if TX_EMU_CHECKED
/* Which elements a lane's share reads: its results, of registers that nobody has, are computed once. Where what is read may
   depend on what was read, they are taken to be all of `matrices` (`learn_whole`). */
template <class T, int COUNT, class Share, class... Matrices> void learn(Share &share, Matrices &...matrices) {
    if (!(matrices.learning || ...)) return;
    T none[COUNT] = {};
    share.run(none);
    (matrices.learned(), ...);
}

template <class... Matrices> void learn_whole(Matrices &...matrices) { (matrices.whole(), ...); }

/* A lane's own registers for an operand that is only read. */
template <class T, int COUNT> struct Lending {
    template <long long ALL> Lending(Local<T, ALL> &from, int at, unsigned) { core->lend_registers(&from.view, at, COUNT); }
};

/* Lanes have come to it: what their share is happens later. */
template <class T, long long COUNT, class... Lendings>
void start_work(unsigned lanes, Work *work, Local<T, COUNT> &registers, int at, int count, const MatrixOrder *matrices, unsigned number, const Lendings &...) {
    done_together(lanes);
    core->start_work({work, &registers.view, at, count, matrices, number});
}
#else
template <class T, int COUNT, class Share, class... Matrices> void learn(Share &, Matrices &...) {}
template <class... Matrices> void learn_whole(Matrices &...) {}
template <class T, int COUNT> struct Lending {
    T own[COUNT];
    const void *mine[TX_WARP] = {};
    const void *const *all;
    template <class Array> Lending(Array &from, int at, unsigned lanes) {
        for (int each = 0; each < COUNT; ++each) own[each] = from[at + each];
        std::uint64_t place = reinterpret_cast<std::uintptr_t>(mine);
        place = core->shuffle(lanes, Shuffle::index, place, 0, warpSize, __builtin_LINE());
        all = reinterpret_cast<const void *const *>(static_cast<std::uintptr_t>(place));
        const_cast<const void **>(all)[own_lane()] = own;
    }
};
template <class T, class... Lendings>
void start_work(unsigned lanes, Work *work, T &registers, int at, int, const MatrixOrder *, unsigned, const Lendings &...lent) {
    done_together(lanes);
    const void *const *const table[] = {lent.all..., nullptr};
    work->borrow(table);
    work->run(&registers[at]);
    work->end();
    if (sizeof...(lent) > 0) done_together(lanes);
}
#endif

} // namespace tx_emu

template <int COUNT, int HAVE> void tx_keep_registers() {}
template <class T> T tx_unseen(T value) { return value; }
#if TX_EMU_CHECKED
template <int COUNT, class T, long long ALL> void tx_give_registers(tx_emu::Local<T, ALL> &array, int at) {
    tx_emu::core->give_registers(&array.view, at, COUNT);
}
template <int COUNT, class T, long long ALL> void tx_take_registers(tx_emu::Local<T, ALL> &array, int at) {
    tx_emu::core->take_registers(&array.view, at, COUNT);
}
inline void tx_fence_warpgroup(unsigned lanes) {
    tx_emu::done_together(lanes);
    tx_emu::core->fence_registers();
}
inline void tx_commit_warpgroup() { tx_emu::core->commit_work(); }
template <int PENDING> void tx_wait_warpgroup() { tx_emu::core->wait_for_work(PENDING); }
#else
template <int COUNT, class A> void tx_give_registers(A &, int) {}
template <int COUNT, class A> void tx_take_registers(A &, int) {}
inline void tx_fence_warpgroup(unsigned) {}
inline void tx_commit_warpgroup() {}
template <int PENDING> void tx_wait_warpgroup() {}
#endif

#endif
