/* Barriers in shared memory: arrivals and bytes of a phase, waiting for one, and what that makes known. PTX ISA, "mbarrier".

   Who waited for a phase knows all that those who arrived did or knew then, and what copies wrote whose bytes the phase waited
   for. A copy's writes are those of an agent of the barrier, whom a thread knows only by such a wait, or through others. */
#ifndef TEXPR_EMULATOR_PHASES_HPP
#define TEXPR_EMULATOR_PHASES_HPP

#include <set>

#include "detect.hpp"

namespace tx_emu {

/* A text that stays. */
inline const char *lasting(const std::string &text) {
    static std::set<std::string> texts;
    return texts.insert(text).first->c_str();
}

inline std::string name_of(const Phases &phases) {
    return std::string(phases.view->name) + "[" + std::to_string(phases.index) + "]";
}

/* What a thread waits for, and what of it has come. */
inline const char *waiting_for(const Phases &phases) {
    return lasting("waited at barrier " + name_of(phases) + ", phase " + std::to_string(phases.completed) + ": " +
                   std::to_string(phases.arrived) + " of " + std::to_string(phases.expected) + " bytes and " +
                   std::to_string(phases.count - phases.pending) + " of " + std::to_string(phases.count) + " arrivals came");
}

inline void bad_barrier(const View &view, long long index, const char *what) {
    found(Fault::bad_barrier, view, index, party(machine.current(), what));
}

/* The barrier of an array, or null where there is none that may be used. */
inline Phases *barrier_at(View &view, long long index, const char *what) {
    if (!inside(view, index)) return outside(view, index, Act::atomic), nullptr;
    auto &array = *static_cast<SharedArray *>(view.owner);
    array.phases.resize((std::size_t)view.count);
    auto &phases = array.phases[(std::size_t)index];
    Fiber &me = machine.current();
    if (!phases || !phases->made) return bad_barrier(view, index, what), nullptr;
    if (view.watched && !known_to(me, phases->maker))
        found(Fault::race, view, index, party(phases->maker, "made the barrier"), party(me, "used it"));
    return phases.get();
}

/* What thread `of` of the block is known of up to now by `me`; agents are numbered behind the threads. */
inline Stamp knowledge(const Fiber &me, unsigned of) {
    const Block &block = *me.block;
    Stamp most = 0;
    if (me.index < block.met.size() && of < block.met[me.index].size()) most = block.met[me.index][of];
    if (of >= block.size) return most;
    unsigned warp = of / LANES, mine = me.index / LANES;
    most = std::max(most, block.base);
    if (!block.known.empty()) most = std::max(most, block.known[mine * machine.warps + warp]);
    if (warp != mine) return most;
    most = std::max(most, me.warp->base);
    return me.warp->known.empty() ? most : std::max(most, me.warp->known[me.lane * LANES + of % LANES]);
}

inline std::size_t columns(const Block &block) { return block.size + block.agents; }

inline std::size_t columns_known(const Block &block) { return columns(block); }

inline View *shared_of(View *mine, unsigned rank);

inline void init_barrier(View *given, long long index, unsigned count) {
    View &view = *given;
    before_access();
    if (!inside(view, index)) return (void)outside(view, index, Act::write);
    Fiber &me = machine.current();
    auto &array = *static_cast<SharedArray *>(view.owner);
    array.phases.resize((std::size_t)view.count);
    auto &phases = array.phases[(std::size_t)index];
    if (phases && phases->made) return bad_barrier(view, index, "made the barrier again");
    if (!phases) phases = std::make_unique<Phases>();
    phases->made = true;
    phases->view = &view;
    phases->index = index;
    phases->agent = me.block->agents++;
    phases->maker = access_of(me);
    phases->count = phases->pending = count;
    me.block->met.resize(me.block->size);
    me.block->barriers.push_back(phases.get());
}

/* Barriers that this thread made may be used by copies. */
inline void fence_made() {
    const Fiber &me = machine.current();
    for (Phases *phases : me.block->barriers)
        if (phases->maker.thread == me.index) phases->fenced = true;
}

/* The phase ends where all that it waits for has come. */
inline void try_complete(Phases &phases, Block &block) {
    if (phases.pending != 0 || phases.expected != phases.arrived) return;
    Stamp now = machine.now++;
    phases.coming.resize(columns(block), 0);
    phases.coming[block.size + phases.agent] = now;
    take_in(phases.known, phases.coming);
    phases.coming.clear();
    take_in(phases.far, phases.far_coming);
    phases.far_coming.clear();
    ++phases.completed;
    phases.pending = phases.count;
    phases.expected = phases.arrived = 0;
    unsigned most = 0;
    for (unsigned thread : phases.waiting) most = std::max(most, block.fibers[thread].turns);
    for (unsigned thread : phases.waiting) {
        block.fibers[thread].turns = most;
        wake(block.fibers[thread]);
    }
    phases.waiting.clear();
}

/* What the current thread knows of its block up to now, with what it did itself. */
inline std::vector<Stamp> all_known(const Fiber &me) {
    std::vector<Stamp> row(columns(*me.block), 0);
    for (unsigned of = 0; of < row.size(); ++of) row[of] = knowledge(me, of);
    row[me.index] = machine.now++;
    return row;
}

inline void take_arrival(Phases &phases, Block &block, long long bytes) {
    phases.expected += bytes;
    if (phases.pending == 0) return bad_barrier(*phases.view, phases.index, "arrived at a phase to which all had come");
    --phases.pending;
    try_complete(phases, block);
}

/* Arrives at a barrier; its phase waits for `bytes` more. */
inline void arrive(View *view, long long index, long long bytes) {
    before_access();
    Phases *phases = barrier_at(*view, index, "arrived at a barrier that was not made");
    if (!phases) return;
    Fiber &me = machine.current();
    take_in(phases->coming, all_known(me));
    if (!me.block->far.empty()) take_in(phases->far_coming, me.block->far[me.index]);
    take_arrival(*phases, *me.block, bytes);
}

/* The rows of other blocks of the cluster that a thread has, made where there are none. */
inline std::vector<std::vector<Stamp>> &rows_afar(Fiber &me) {
    if (me.block->far.empty()) me.block->far.resize(me.block->size);
    return me.block->far[me.index];
}

/* Arrives at the same barrier of a block of the cluster. In another one that makes known what engines have done alone. */
inline void arrive_in(View *view, long long index, unsigned rank) {
    Fiber &me = machine.current();
    Block &block = *me.block;
    if (rank >= block.cluster->blocks.size()) return bad_barrier(*view, index, "arrived in a block that its cluster has not");
    if (rank == block.rank) return arrive(view, index, 0);
    before_access();
    Block &other = block.cluster->blocks[rank];
    View &there = *shared_of(view, rank);
    if (other.live == 0)
        return found(Fault::early_exit, there, index, party(me, "arrived at its barrier"), party(other.fibers[0], "had ended"));
    Phases *phases = barrier_at(there, index, "arrived at a barrier that was not made");
    if (!phases) return;
    std::vector<std::vector<Stamp>> known = rows_afar(me);
    known.resize(block.cluster->blocks.size());
    take_in(known[block.rank], all_known(me));
    take_in(phases->coming, known[rank]);
    known[rank].clear();
    take_in(phases->far_coming, known);
    take_arrival(*phases, other, 0);
}

/* Bytes of a copy have come. */
inline void complete_bytes(Phases &phases, Block &block, long long bytes) {
    phases.arrived += bytes;
    try_complete(phases, block);
}

inline void wait_phase(View *view, long long index, int parity) {
    before_access();
    Fiber &me = machine.current();
    Phases *phases = barrier_at(*view, index, "waited at a barrier that was not made");
    if (!phases) return;
    if (parity != 0 && parity != 1) return bad_barrier(*view, index, "waited for a phase whose parity is not 0 or 1");
    while ((int)(phases->completed & 1) == parity) {
        me.wait = Wait::phase;
        me.phases = phases;
        phases->waiting.push_back(me.index);
        clear_ready(*me.block, me.index);
        give_way();
        me.wait = Wait::none;
    }
    take_in(me.block->met[me.index], phases->known);
    if (!phases->far.empty()) take_in(rows_afar(me), phases->far);
    if (phases->completed != 0) phases->unseen.clear();
}

} // namespace tx_emu

#endif
