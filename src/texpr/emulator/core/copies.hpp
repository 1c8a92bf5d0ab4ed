/* Asynchronous copies. One may land at any time between its start and the wait for it: in order and in lockstep at the wait, else
   when the seed says. Until then what it writes holds what no program means to read. The thread that started it may touch it
   after the wait, others after a barrier behind that; so may the source be written. PTX ISA, "cp.async" and "cp.async.wait_group".

   A start is a write of the target and a read of the source by the thread; the wait is both once more, so that nobody is taken
   to know of them by a barrier before the wait. */
#ifndef TEXPR_EMULATOR_COPIES_HPP
#define TEXPR_EMULATOR_COPIES_HPP

#include "detect.hpp"

namespace tx_emu {

inline char *address_in(const View &view, long long index) { return view.base + index * (long long)view.size; }

inline unsigned bytes_of(const CopyOrder &order) { return (unsigned)order.count * order.target->size; }

inline void ground(Copy &copy) {
    auto &airborne = machine.airborne;
    if (copy.place >= airborne.size() || airborne[copy.place] != &copy) return;
    airborne.back()->place = copy.place;
    airborne[copy.place] = airborne.back();
    airborne.pop_back();
}

inline void land(Copy &copy) {
    if (copy.landed) return;
    copy.landed = true;
    ground(copy);
    const CopyOrder &order = copy.order;
    char *to = address_in(*order.target, order.at);
    if (order.when) std::memcpy(to, address_in(*order.source, order.from), bytes_of(order));
    else std::memset(to, 0, bytes_of(order));
}

/* Now and then a copy lands. */
inline void land_some_copy() {
    if (!machine.airborne.empty() && machine.random.below(2) == 0) land(*machine.airborne[machine.random.below((unsigned)machine.airborne.size())]);
}

/* The words that a copy reads, where somebody might write them. */
template <class See> void each_word(const Copy &copy, See see) {
    if (!copy.order.when || !copy.order.changing) return;
    auto first = reinterpret_cast<std::uintptr_t>(address_in(*copy.order.source, copy.order.from));
    for (std::uintptr_t word = first / 4; word < (first + bytes_of(copy.order)) / 4; ++word) see(word);
}

inline void watch(const Copy &copy) {
    auto &array = *static_cast<SharedArray *>(copy.order.target->owner);
    array.flying.resize((std::size_t)copy.order.target->count);
    for (int each = 0; each < copy.order.count; ++each) array.flying[(std::size_t)(copy.order.at + each)] = &copy;
    each_word(copy, [&](std::uintptr_t word) { machine.sources.emplace(word, &copy); });
}

inline void forget(const Copy &copy) {
    auto &array = *static_cast<SharedArray *>(copy.order.target->owner);
    for (int each = 0; each < copy.order.count && !array.flying.empty(); ++each) {
        const Flying *&here = array.flying[(std::size_t)(copy.order.at + each)];
        if (here == &copy) here = nullptr;
    }
    each_word(copy, [&](std::uintptr_t word) {
        auto [from, end] = machine.sources.equal_range(word);
        for (auto at = from; at != end; ++at)
            if (at->second == &copy) {
                machine.sources.erase(at);
                return;
            }
    });
}

/* False where it would leave its arrays. */
inline bool check_copy(const CopyOrder &order) {
    for (int each = 0; each < order.count; ++each) {
        if (!inside(*order.target, order.at + each)) return outside(*order.target, order.at + each, Act::write), false;
        if (order.when && !inside(*order.source, order.from + each)) return outside(*order.source, order.from + each, Act::read), false;
    }
    if (!machine.options.detect) return true;
    check_aligned(*order.target, order.at, order.count, Act::write);
    if (order.when) check_aligned(*order.source, order.from, order.count, Act::read);
    for (int each = 0; each < order.count; ++each) {
        check_element<Act::write>(*order.target, order.at + each);
        if (order.when) check_element<Act::read>(*order.source, order.from + each);
    }
    return true;
}

inline void count_copy(const CopyOrder &order, const void *place) {
    if (!counting) return;
    ++counting->async_copies;
    const View &to = *order.target, &from = *order.source;
    count_access(Act::write, to, device_address(to, address_in(to, order.at)), bytes_of(order), place);
    if (!order.when) return;
    auto beside = static_cast<const char *>(place) + 1; /* another request, of the same instruction */
    count_access(Act::read, from, device_address(from, address_in(from, order.from)), bytes_of(order), beside);
}

inline void start_copy(const CopyOrder &order) {
    const void *place = __builtin_return_address(0);
    before_access();
    Fiber &me = machine.current();
    if (!check_copy(order)) return;
    count_copy(order, place);
    auto &all = me.block->copies;
    if (all.empty()) all.resize(me.block->size);
    Copies &mine = all[me.index];
    mine.flying.push_back({{access_of(me), "copied into it and had not waited", "copied from it and had not waited", false},
                           order, mine.committed, false, machine.airborne.size()});
    Copy &copy = mine.flying.back();
    std::memset(address_in(*order.target, order.at), machine.poison, bytes_of(order));
    if (machine.options.detect) watch(copy);
    if (machine.options.order == Order::random) machine.airborne.push_back(&copy);
}

inline void commit_copies() {
    Fiber &me = machine.current();
    if (!me.block->copies.empty()) ++me.block->copies[me.index].committed;
}

/* What a copy did becomes what its thread did just now. */
inline void finish(const Fiber &me, Copy &copy) {
    land(copy);
    if (!machine.options.detect) return;
    forget(copy);
    Access done = copy.start;
    done.stamp = machine.now;
    for (int each = 0; each < copy.order.count; ++each) {
        View &to = *copy.order.target, &from = *copy.order.source;
        if (to.watched) static_cast<Cell *>(to.shadow)[copy.order.at + each].write = done;
        if (!copy.order.when || !from.watched) continue;
        Check check{me, from, copy.order.from + each, Act::read, machine.launch};
        Cell *cells = static_cast<Cell *>(from.shadow) + (copy.order.from + each) * from.span;
        for (unsigned part = 0; part < from.span; ++part) check.keep(cells[part].reads, done);
    }
}

inline void wait_for_copies(int pending) {
    Fiber &me = machine.current();
    if (me.block->copies.empty()) return;
    Copies &mine = me.block->copies[me.index];
    while (!mine.flying.empty() && mine.flying.front().group + (unsigned)pending < mine.committed) {
        finish(me, mine.flying.front());
        mine.flying.pop_front();
    }
}

/* The current thread ends. */
inline void report_abandoned(const Fiber &me) {
    if (me.block->copies.empty() || !machine.options.detect) return;
    for (const Copy &copy : me.block->copies[me.index].flying)
        found(Fault::abandoned_copy, *copy.order.target, copy.order.at, party(copy.start, "copied into it and never waited"));
}

/* The block has ended, or is given up. */
inline void forget_copies(Block &block) {
    for (Copies &each : block.copies)
        for (Copy &copy : each.flying) {
            ground(copy);
            forget(copy);
        }
    block.copies.clear();
}

} // namespace tx_emu

#endif
