/* The order of launches. A launch that is not dependent begins when all before it have ended. A dependent one may start when all
   blocks of the one before have admitted it, or have ended; so its threads know no more of earlier launches than those who admitted
   it did, until they wait. Then they know what the launch before did, and what that one knew in its turn: all, if some thread
   of it waited. CUDA programming guide, "Programmatic Dependent Launch and Synchronization".

   Launches are run one after the other all the same: what a thread touches that it does not know of is a race. */
#ifndef TEXPR_EMULATOR_LAUNCHES_HPP
#define TEXPR_EMULATOR_LAUNCHES_HPP

#include "machine.hpp"

namespace tx_emu {

/* A launch begins, of which `machine.launch` is the moment. */
inline void order_launch(bool dependent) {
    Order_of_launches &order = machine.order;
    bool lost = order.dependent && !order.waited; /* the one before ended without having waited itself */
    Stamp now = machine.launch;
    if (!dependent || order.launch == 0) order = {false, false, now, now, now, now, now};
    else if (lost) order = {true, false, order.admitted, std::min(order.known, order.gap_from), order.launch, now, now};
    else order = {true, false, order.admitted, order.gap_from, order.gap_to, now, now};
}

/* All launches have ended: the host has waited for them, or does something on their stream. */
inline void settle() { machine.order = {}; }

inline bool has_waited(const Fiber &me) { return me.awaited || !machine.order.dependent; }

/* Whether `me` may not know of what an earlier launch did at `stamp`. */
inline bool overtakes(const Fiber &me, Stamp stamp) {
    const Order_of_launches &order = machine.order;
    if (stamp == 0 || stamp >= machine.launch) return false;
    return has_waited(me) ? stamp >= order.gap_from && stamp < order.gap_to : stamp >= order.known;
}

inline void await_launches() {
    Fiber &me = machine.current();
    me.awaited = me.block->awaited = machine.order.waited = true;
}

inline void admit_launch() {
    Fiber &me = machine.current();
    if (!me.block->admitted && !has_waited(me)) machine.order.admitted = std::min(machine.order.admitted, machine.order.known);
    me.block->admitted = true;
}

/* A block has ended, which admits the next launch if nobody in it did. */
inline void admit_at_end(const Block &block) {
    if (!block.admitted && machine.order.dependent && !block.awaited)
        machine.order.admitted = std::min(machine.order.admitted, machine.order.known);
}

} // namespace tx_emu

#endif
