/* Which thread runs next. A thread runs until it waits, ends, or (not in order) has used up its accesses to memory.

   In order: the next thread of the block that can run, from the one that ran on, around. Lockstep: the first of
   those that have had the fewest turns, for one access; threads that meet are level from then on. Random: some choices fall on
   any thread of any running block, the others on a favourite warp, which so runs as far ahead of all others as barriers let it;
   both depend on the seed alone. */
#ifndef TEXPR_EMULATOR_SCHEDULE_HPP
#define TEXPR_EMULATOR_SCHEDULE_HPP

#include <algorithm>

#include "machine.hpp"

namespace tx_emu {

/* In lockstep, `fiber` is among those whose turn it may be. */
inline void queue(Fiber &fiber) {
    if (machine.options.order != Order::lockstep) return;
    machine.turns.push({fiber.turns, fiber.block->rank * MOST_THREADS + fiber.index, &fiber});
}

inline bool is_ready(const Fiber &fiber) { return fiber.block->ready_bits[fiber.index / 64] >> (fiber.index % 64) & 1; }

inline void set_ready(Block &block, unsigned index) {
    block.ready_bits[index / 64] |= 1ull << (index % 64);
    ++block.ready;
    ++machine.ready;
    queue(block.fibers[index]);
}

inline void clear_ready(Block &block, unsigned index) {
    block.ready_bits[index / 64] &= ~(1ull << (index % 64));
    --block.ready;
    --machine.ready;
}

/* Calls `visit(fiber)` for the threads of `block` whose bits are set. */
template <class Visit> void each_of(Block &block, const std::uint64_t *bits, Visit visit) {
    for (unsigned word = 0; word < (block.size + 63) / 64; ++word)
        for (std::uint64_t left = bits[word]; left != 0; left &= left - 1)
            visit(block.fibers[word * 64 + (unsigned)__builtin_ctzll(left)]);
}

/* Threads of `block` meet: each has had as many turns as the one that had most. `bits`: which threads. */
inline void level_out(Block &block, const std::uint64_t *bits) {
    unsigned most = 0;
    each_of(block, bits, [&](Fiber &fiber) { most = std::max(most, fiber.turns); });
    each_of(block, bits, [&](Fiber &fiber) { fiber.turns = most; });
}

inline void wake(Fiber &fiber) {
    fiber.wait = Wait::none;
    set_ready(*fiber.block, fiber.index);
}

/* The first thread at or after `from`, around, that can run. There is one. */
inline Fiber *ready_from(Block &block, unsigned from) {
    unsigned words = (block.size + 63) / 64;
    if (from >= block.size) from = 0;
    unsigned word = from / 64;
    std::uint64_t bits = block.ready_bits[word] & (~0ull << (from % 64));
    while (bits == 0) {
        word = word + 1 == words ? 0 : word + 1;
        bits = block.ready_bits[word];
    }
    return &block.fibers[word * 64 + (unsigned)__builtin_ctzll(bits)];
}

/* A thread of `warp` that can run, any of them; where none can, one of the next warp of which one can. */
inline Fiber *ready_in(Block &block, unsigned warp) {
    std::uint32_t lanes = lanes_in(block.ready_bits, warp);
    if (lanes == 0) return ready_from(block, (warp + 1) * LANES);
    unsigned turn = machine.random.below(LANES);
    std::uint32_t turned = (lanes >> turn) | (turn == 0 ? 0 : lanes << (LANES - turn));
    return &block.fibers[warp * LANES + (turn + (unsigned)__builtin_ctz(turned)) % LANES];
}

inline Fiber *pick_randomly() {
    auto &blocks = machine.blocks;
    auto count = (unsigned)blocks.size();
    if (machine.favours-- == 0) {
        machine.favours = machine.random.below(512);
        machine.favourite_block = machine.random.below(count);
        machine.favourite_warp = machine.random.below(machine.warps);
    }
    bool free = machine.random.below(8) < machine.freedom;
    unsigned at = free ? machine.random.below(count) : machine.favourite_block % count;
    while (blocks[at]->ready == 0) at = at + 1 == count ? 0 : at + 1;
    return free ? ready_from(*blocks[at], machine.random.below(blocks[at]->size)) : ready_in(*blocks[at], machine.favourite_warp);
}

/* The first of the threads in line that can run and had no turn since; who runs on and has another one comes again. */
inline Fiber *pick_in_step() {
    for (;; machine.turns.pop()) {
        const Turn &turn = machine.turns.top();
        if (is_ready(*turn.fiber) && turn.fiber->turns == turn.turns) return turn.fiber;
    }
}

/* The thread to run after `from` (or at first), or null where none can. */
inline Fiber *pick(Fiber *from) {
    if (machine.ready == 0) return nullptr;
    auto &blocks = machine.blocks;
    if (machine.options.order == Order::random) return pick_randomly();
    if (machine.options.order == Order::lockstep) return pick_in_step();
    if (from && from->block->ready != 0) return ready_from(*from->block, from->index + 1u);
    std::size_t at = 0;
    while (from && blocks[at] != from->block) ++at;
    while (blocks[at]->ready == 0) at = at + 1 == blocks.size() ? 0 : at + 1;
    return ready_from(*blocks[at], 0);
}

void run_fiber();
[[noreturn]] void out_of_stacks();

/* Let `next` run until `from` is switched to again. */
inline void resume(Context &from, Fiber &next) {
    machine.core.current = &next;
    if (!next.started) {
        if (!machine.stacks.take(next.stack)) out_of_stacks();
        next.started = true;
        start_context(next.context, next.stack, run_fiber);
    }
    switch_context(from, next.context);
}

/* The current thread gives way, whether it can run on or waits. Where no thread can run, the launch's loop sees to it. */
inline void give_way() {
    Fiber &from = machine.current();
    Fiber *next = pick(&from);
    if (next == &from) return;
    if (next) resume(from.context, *next);
    else switch_context(from.context, machine.main);
}

inline void refuel() {
    unsigned patience = machine.patience;
    machine.fuel = patience == 0 ? INT_MAX : patience == 1 ? 1 : (int)(1 + machine.random.below(2 * patience - 1));
}

inline void land_some();

/* Called before each access to memory that threads share. */
inline void before_access() {
    if (--machine.fuel > 0) return;
    refuel();
    land_some();
    if (machine.patience == 0) return;
    ++machine.current().turns;
    queue(machine.current());
    give_way();
}

/* Gives the launch up, from whatever thread runs. */
[[noreturn]] inline void stop() {
    machine.stopped = true;
    Context nowhere;
    switch_context(nowhere, machine.main);
    std::abort();
}

} // namespace tx_emu

#endif
