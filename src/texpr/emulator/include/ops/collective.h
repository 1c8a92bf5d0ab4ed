/* What lanes hold while they do an instruction together. Included by texpr_emulator_ops.h. */
#ifndef TEXPR_EMULATOR_COLLECTIVE_H
#define TEXPR_EMULATOR_COLLECTIVE_H

namespace tx_emu TX_EMU_HIDDEN {

inline unsigned own_lane() {
    return (threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) & (TX_WARP - 1u);
}

/* All lanes have done it: what others hold is not looked at any more. */
inline void done_together(unsigned lanes, int line = __builtin_LINE()) {
    core->shuffle(lanes, Shuffle::index, 0, 0, warpSize, line);
}

/* An operand in registers of the lanes of a group, or at addresses that they say, as it was when all had come. At says in which lane,
   and in which register of it, an element is. Of lanes that say one address the first `says`. What a lane holds itself it may give another value; an element of another lane is only read. */
template <class T, int COUNT, class At> struct Held {
    T own[COUNT];
    const T *mine[TX_WARP];
    const T *const *all;
    unsigned lane, first;
    int copy = 0;

    template <class Array>
    Held(Array &from, int at, unsigned group, unsigned lanes, bool says = true, int line = __builtin_LINE())
        : lane(own_lane() % group), first(own_lane() - lane) {
        for (int each = 0; says && each < COUNT; ++each) own[each] = from[at + each];
        std::uint64_t place = reinterpret_cast<std::uintptr_t>(mine);
        place = core->shuffle(lanes, Shuffle::index, place, 0, warpSize, line);
        all = reinterpret_cast<const T *const *>(static_cast<std::uintptr_t>(place));
        const_cast<const T **>(all)[own_lane()] = own;
        done_together(lanes, line);
    }
    Held(const Held &) = delete;
    Held &operator=(const Held &) = delete;

    struct Element {
        Held *held;
        int slot;
        unsigned lane;
        operator T() const { return held->all[held->first + lane][slot]; }
        T operator=(T value) const {
            if (lane == held->lane) held->own[slot] = value;
            return value;
        }
        template <class U> T operator+=(const U &value) const { return *this = static_cast<T>(static_cast<T>(*this) + static_cast<T>(value)); }
    };
    Element operator[](long long e) { return {this, At::slot((int)e, copy), (unsigned)At::lane((int)e, copy)}; }

    template <class Array> void put_back(Array &to, int at) const {
        for (int each = 0; each < COUNT; ++each) to[at + each] = own[each];
    }
};

/* An operand at addresses that lanes say, which gets values: each is stored by the first lane that says where it is. */
template <class T, int COUNT, class At> struct Stored {
    T own[COUNT];
    bool given[COUNT] = {};
    unsigned lane;

    template <class Array> Stored(Array &, int, unsigned group, unsigned) : lane(own_lane() % group) {}
    Stored(const Stored &) = delete;
    Stored &operator=(const Stored &) = delete;

    struct Element {
        Stored *held;
        int slot;
        unsigned lane;
        T operator=(T value) const {
            if (lane == held->lane) held->own[slot] = value, held->given[slot] = true;
            return value;
        }
    };
    Element operator[](long long e) { return {this, At::slot((int)e, 0), (unsigned)At::lane((int)e, 0)}; }

    template <class Array> void put_back(Array &to, int at) const {
        for (int each = 0; each < COUNT; ++each)
            if (given[each]) to[at + each] = own[each];
    }
};

} // namespace tx_emu

#endif
