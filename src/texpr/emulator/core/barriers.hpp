/* Barriers of a block (and of some of its warps) and of a cluster: waiting, letting go, and what each makes known. */
#ifndef TEXPR_EMULATOR_BARRIERS_HPP
#define TEXPR_EMULATOR_BARRIERS_HPP

#include <algorithm>

#include "count.hpp"
#include "report.hpp"
#include "schedule.hpp"

namespace tx_emu {

inline const char *waiting_for(const Phases &phases);

inline const char *waiting_at(const Fiber &fiber) {
    switch (fiber.wait) {
    case Wait::none: return fiber.finished ? "ended" : "ran";
    case Wait::gate: return fiber.gate == 0 ? "waited at __syncthreads" : "waited at a named barrier";
    case Wait::cluster: return "waited at the cluster's barrier";
    case Wait::phase: return waiting_for(*fiber.phases);
    case Wait::lanes: break;
    }
    switch (fiber.together) {
    case Together::barrier: return "waited at __syncwarp";
    case Together::any:
    case Together::all:
    case Together::ballot: return "waited at a vote";
    default: return "waited at a shuffle";
    }
}

inline const Fiber *ended_thread(const Block &block) {
    for (unsigned index = 0; index < block.size; ++index)
        if (block.fibers[index].finished) return &block.fibers[index];
    return nullptr;
}

inline void take_in(std::vector<Stamp> &row, const std::vector<Stamp> &other) {
    if (row.size() < other.size()) row.resize(other.size(), 0);
    for (std::size_t at = 0; at < other.size(); ++at) row[at] = std::max(row[at], other[at]);
}

inline void take_in(std::vector<std::vector<Stamp>> &rows, const std::vector<std::vector<Stamp>> &others) {
    if (rows.size() < others.size()) rows.resize(others.size());
    for (std::size_t at = 0; at < others.size(); ++at) take_in(rows[at], others[at]);
}

/* What threads know of other blocks of their cluster they now all know. */
inline void meet_far(Block &block, const std::uint64_t *who) {
    if (block.far.empty()) return;
    std::vector<std::vector<Stamp>> most;
    each_of(block, who, [&](Fiber &fiber) { take_in(most, block.far[fiber.index]); });
    each_of(block, who, [&](Fiber &fiber) { block.far[fiber.index] = most; });
}

/* What threads know by barriers in shared memory they now all know. Where all of a block meet, only what agents did is new. */
inline void meet(Block &block, const std::uint64_t *who, bool all) {
    if (block.met.empty()) return;
    meet_far(block, who);
    std::size_t first = all ? block.size : 0;
    std::vector<Stamp> most(block.size + block.agents, 0);
    each_of(block, who, [&](Fiber &fiber) {
        const auto &row = block.met[fiber.index];
        for (std::size_t at = first; at < row.size(); ++at) most[at] = std::max(most[at], row[at]);
    });
    each_of(block, who, [&](Fiber &fiber) {
        auto &row = block.met[fiber.index];
        row.resize(most.size(), 0);
        for (std::size_t at = first; at < row.size(); ++at) row[at] = most[at];
    });
}

/* What the warps that went through `gate` together now know: up to now, each other; else, what any of them knew. */
inline void learn(Block &block, const Gate &gate) {
    unsigned warps = machine.warps;
    Stamp now = machine.now++;
    meet(block, gate.who, gate.threads == 0 || gate.arrived == block.size);
    if (gate.threads == 0 || gate.arrived == block.size) {
        block.base = now;
        return;
    }
    if (block.known.empty()) block.known.assign(warps * warps, 0);
    std::vector<unsigned> here;
    for (unsigned warp = 0; warp < warps; ++warp)
        if (lanes_in(gate.who, warp)) here.push_back(warp);
    std::vector<Stamp> row(warps, 0);
    for (unsigned one : here)
        for (unsigned other = 0; other < warps; ++other) row[other] = std::max(row[other], block.known[one * warps + other]);
    for (unsigned one : here) row[one] = now;
    for (unsigned one : here) std::copy(row.begin(), row.end(), block.known.begin() + one * warps);
}

inline void report_divergence(Block &block, const Gate &gate) {
    const Fiber &first = block.fibers[gate.first];
    if (gate.mixed) {
        const Fiber &other = block.fibers[gate.other];
        found(Fault::divergent_barrier, party(first, waiting_at(first)), party(other, waiting_at(other)));
    }
    if (gate.threads == 0 && block.live != block.size)
        if (const Fiber *ended = ended_thread(block))
            found(Fault::divergent_barrier, party(first, waiting_at(first)), party(*ended, waiting_at(*ended)));
    if (gate.threads == 0) return;
    for (unsigned warp = 0; warp < machine.warps; ++warp) {
        unsigned came = lanes_in(gate.who, warp), absent = block.warps[warp].born & ~came;
        if (came == 0 || absent == 0) continue;
        const Fiber &one = block.fibers[warp * LANES + (unsigned)__builtin_ctz(came)];
        const Fiber &other = block.fibers[warp * LANES + (unsigned)__builtin_ctz(absent)];
        found(Fault::divergent_barrier, party(one, waiting_at(one)), party(other, waiting_at(other)));
        return;
    }
}

inline void let_go(Block &block, Gate &gate) {
    if (gate.mixed || gate.arrived != block.size) report_divergence(block, gate);
    learn(block, gate);
    count_barrier(gate.arrived);
    if (gate.arrived == block.live) count_meeting(block);
    level_out(block, gate.who);
    each_of(block, gate.who, queue);
    for (unsigned word = 0; word < (block.size + 63) / 64; ++word) {
        block.ready_bits[word] |= gate.who[word];
        gate.who[word] = 0;
    }
    block.ready += gate.arrived;
    machine.ready += gate.arrived;
    gate.arrived = 0;
    gate.mixed = false;
}

/* The current thread arrives at a barrier of its block. */
inline void gate_barrier(int id, int threads, int line) {
    Fiber &me = machine.current();
    Block &block = *me.block;
    Gate &gate = block.gates[(unsigned)id % GATES];
    me.wait = Wait::gate;
    me.gate = (std::uint8_t)id;
    me.emitted_line = line;
    if (gate.arrived == 0) {
        gate.threads = threads;
        gate.line = line;
        gate.first = me.index;
    } else if (gate.threads != threads || (id == 0 && gate.line != line)) { /* a named one may stand in several places */
        gate.mixed = true;
        gate.other = me.index;
    }
    gate.who[me.index / 64] |= 1ull << (me.index % 64);
    ++gate.arrived;
    clear_ready(block, me.index);
    if (gate.arrived == (gate.threads == 0 ? block.live : (unsigned)gate.threads)) let_go(block, gate);
    give_way();
    me.wait = Wait::none;
}

/* What any thread of a block knows of its agents the other blocks now know, and, but behind a relaxed barrier, all its threads. */
inline void tell(Block &block, bool relaxed) {
    if (block.met.empty()) return;
    if (relaxed) {
        block.told.assign(block.agents, 0);
        for (const auto &row : block.met)
            for (std::size_t at = block.size; at < row.size(); ++at) block.told[at - block.size] = std::max(block.told[at - block.size], row[at]);
        return;
    }
    std::uint64_t all[WORDS];
    for (unsigned word = 0; word < WORDS; ++word) all[word] = 0;
    for (unsigned index = 0; index < block.size; ++index) all[index / 64] |= 1ull << (index % 64);
    meet(block, all, true);
    block.told.assign(block.met[0].begin() + block.size, block.met[0].end());
}

/* Behind a relaxed one, at which one thread came so, all know what engines did, and of each other no more than before. */
inline void let_go(Cluster &cluster) {
    cluster.settled = machine.now++;
    if (!cluster.relaxed) cluster.base = cluster.settled;
    cluster.arrived = 0;
    unsigned most = 0;
    for (Block &block : cluster.blocks)
        for (Fiber &fiber : block.fibers) most = std::max(most, fiber.turns);
    for (Block &block : cluster.blocks) {
        if (!cluster.relaxed) block.base = cluster.base;
        tell(block, cluster.relaxed);
        for (Fiber &fiber : block.fibers) {
            if (fiber.wait != Wait::cluster) continue;
            fiber.turns = most;
            wake(fiber);
        }
    }
    cluster.relaxed = false;
}

/* The current thread arrives at its cluster's barrier. Threads that ended are not waited for (PTX ISA, "barrier.cluster"). */
inline void cluster_barrier(bool relaxed, int line) {
    Fiber &me = machine.current();
    Cluster &cluster = *me.block->cluster;
    me.wait = Wait::cluster;
    me.emitted_line = line;
    clear_ready(*me.block, me.index);
    cluster.relaxed |= relaxed;
    if (++cluster.arrived == cluster.live) let_go(cluster);
    give_way();
}

} // namespace tx_emu

#endif
