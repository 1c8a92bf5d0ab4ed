/* What lanes of a warp do together: barriers, shuffles, votes. Only the barrier makes memory known. */
#ifndef TEXPR_EMULATOR_LANES_HPP
#define TEXPR_EMULATOR_LANES_HPP

#include "barriers.hpp"

namespace tx_emu {

inline Fiber &lane_of(const Fiber &me, unsigned lane) { return me.block->fibers[me.index - me.lane + lane]; }

/* The lanes of `mask` now know what each of them did or knew. */
inline void learn(Fiber &me, unsigned mask) {
    Warp &warp = *me.warp;
    Stamp now = machine.now++;
    std::uint64_t bits[WORDS] = {};
    bits[me.index / 64] = (std::uint64_t)mask << (me.index / LANES * LANES % 64);
    meet(*me.block, bits, false);
    if (mask == warp.born) {
        warp.base = now;
        return;
    }
    if (warp.known.empty()) warp.known.assign(LANES * LANES, 0);
    Stamp row[LANES] = {};
    for (unsigned one = 0; one < LANES; ++one)
        for (unsigned other = 0; (mask >> one & 1) && other < LANES; ++other)
            row[other] = std::max(row[other], warp.known[one * LANES + other]);
    for (unsigned lane = 0; lane < LANES; ++lane)
        if (mask >> lane & 1) row[lane] = now;
    for (unsigned one = 0; one < LANES; ++one)
        if (mask >> one & 1) std::copy(row, row + LANES, warp.known.begin() + one * LANES);
}

/* The lane whose value `fiber` gets (PTX ISA, "shfl.sync"). */
inline unsigned source_lane(const Fiber &fiber) {
    int lane = fiber.lane, start = lane & ~(fiber.width - 1), end = start + fiber.width - 1, from = lane;
    switch (fiber.together) {
    case Together::index: from = start | (fiber.operand & (fiber.width - 1)); break;
    case Together::up: from = lane - fiber.operand < start ? lane : lane - fiber.operand; break;
    case Together::down: from = lane + fiber.operand > end ? lane : lane + fiber.operand; break;
    default: from = (lane ^ fiber.operand) > end ? lane : lane ^ fiber.operand; break;
    }
    return (unsigned)from % LANES;
}

inline void exchange(Fiber &me, unsigned mask) {
    std::uint64_t got[LANES] = {};
    for (unsigned lane = 0; lane < LANES; ++lane) {
        if (!(mask >> lane & 1)) continue;
        Fiber &fiber = lane_of(me, lane);
        unsigned from = source_lane(fiber);
        got[lane] = ~0ull;
        if (mask >> from & 1) {
            got[lane] = lane_of(me, from).value;
        } else {
            bool exists = me.warp->born >> from & 1;
            const Fiber *source = exists ? &lane_of(me, from) : nullptr;
            Party other = source ? party(*source, waiting_at(*source)) : Party{};
            found(Fault::inactive_lane, party(fiber, "read a lane that takes no part"), other);
        }
    }
    for (unsigned lane = 0; lane < LANES; ++lane)
        if (mask >> lane & 1) lane_of(me, lane).value = got[lane];
}

inline void take_votes(Fiber &me, unsigned mask) {
    unsigned ballot = 0;
    for (unsigned lane = 0; lane < LANES; ++lane)
        if ((mask >> lane & 1) && lane_of(me, lane).value) ballot |= 1u << lane;
    std::uint64_t answer = ballot;
    if (me.together == Together::any) answer = ballot != 0;
    if (me.together == Together::all) answer = ballot == mask;
    for (unsigned lane = 0; lane < LANES; ++lane)
        if (mask >> lane & 1) lane_of(me, lane).value = answer;
}

/* Completes what `me` waits for, if every lane of its mask that has not ended waits for the same. */
inline void try_together(Fiber &me) {
    Warp &warp = *me.warp;
    unsigned mask = me.mask & warp.live;
    if ((warp.waiting & mask) != mask) return;
    for (unsigned lane = 0; lane < LANES; ++lane) {
        if (!(mask >> lane & 1)) continue;
        Fiber &other = lane_of(me, lane);
        if (other.mask != me.mask || other.together != me.together) return;
    }
    switch (me.together) {
    case Together::barrier: learn(me, mask); break;
    case Together::any:
    case Together::all:
    case Together::ballot: take_votes(me, mask); break;
    default: exchange(me, mask); break;
    }
    if (mask == warp.live) count_warp(*me.block, me.index / LANES);
    warp.waiting &= ~mask;
    std::uint64_t bits[WORDS] = {};
    bits[me.index / 64] = (std::uint64_t)mask << (me.index / LANES * LANES % 64);
    level_out(*me.block, bits);
    for (unsigned lane = 0; lane < LANES; ++lane)
        if (mask >> lane & 1) wake(lane_of(me, lane));
}

/* The current thread does `what` with the lanes of `mask`; returns what it gets. */
inline std::uint64_t together(Together what, unsigned mask, std::uint64_t value, int operand, int width, int line) {
    Fiber &me = machine.current();
    unsigned mine = 1u << me.lane;
    count_together(what, me);
    me.wait = Wait::lanes;
    me.together = what;
    me.mask = mask & me.warp->born;
    me.value = value;
    me.operand = operand;
    me.width = width;
    me.emitted_line = line;
    if (!(mask & mine)) {
        found(Fault::wrong_mask, party(me, waiting_at(me)));
        me.mask |= mine;
    }
    me.warp->waiting |= mine;
    clear_ready(*me.block, me.index);
    try_together(me);
    give_way();
    return me.value;
}

} // namespace tx_emu

#endif
