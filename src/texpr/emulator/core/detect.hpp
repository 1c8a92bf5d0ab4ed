/* Each access to memory passes here: bounds, elements never written, races.

   Two accesses to an element race if they are of different threads, one is a plain write (or one is atomic and the other
   is not), and no barrier orders them. A barrier makes known to those that go through it all that each of them did or knew
   (`learn`); shuffles, votes and atomics order nothing. Launches are ordered, as in
   launches.hpp.

   What is kept for an element is small and still enough where barriers join groups that nest: 2, 4, … lanes of a warp at a multiple
   of their number, so many warps, a block, a cluster. If then a writer is not ordered after some reader, it is not ordered
   after one of the two readers that are furthest apart: were both in the group that the writer knows, all would be. So
   for atomics. Barriers of other groups never make it report what is no race, but it may then miss one. */
#ifndef TEXPR_EMULATOR_DETECT_HPP
#define TEXPR_EMULATOR_DETECT_HPP

#include "barriers.hpp"
#include "launches.hpp"
#include "memory.hpp"

namespace tx_emu {

constexpr const char *ACTS[] = {"read", "write", "atomic"};
constexpr const char *BEFORE[] = {
    "read in an earlier launch, not waited for", "write in an earlier launch, not waited for", "atomic in an earlier launch, not waited for"};

inline Access access_of(const Fiber &fiber) {
    unsigned line = fiber.line < 0 ? 0 : fiber.line > 0x7fff ? 0x7fff : (unsigned)fiber.line;
    return {machine.now, fiber.block->number, fiber.index, (std::uint16_t)(line & 0x7fff), false};
}

inline bool same_thread(const Access &a, const Access &b) { return a.block == b.block && a.thread == b.thread; }

/* Whether other blocks of the cluster know of what an agent of `block` did. */
inline bool known_agent(const Block &block, const Access &past) {
    std::size_t agent = past.thread - FIRST_AGENT;
    return agent < block.told.size() && past.stamp <= block.told[agent];
}

inline bool of_cluster(const Cluster &cluster, std::uint32_t number) {
    for (const Block &block : cluster.blocks)
        if (block.number == number) return true;
    return false;
}

/* Whether `me` knows of what an engine did in another block of its cluster by a barrier at which threads of that one arrived. */
inline bool known_afar(const Fiber &me, const Access &past) {
    const Block &block = *me.block;
    if (block.far.empty() || (!past.engine && past.thread < FIRST_AGENT)) return false;
    const auto &rows = block.far[me.index];
    for (const Block &other : block.cluster->blocks) {
        if (other.number != past.block || other.rank >= rows.size()) continue;
        std::size_t column = past.thread >= FIRST_AGENT ? other.size + (past.thread - FIRST_AGENT) : past.thread;
        return column < rows[other.rank].size() && past.stamp <= rows[other.rank][column];
    }
    return false;
}

/* Whether `me` knows of what was done at `past`, an access of this launch. */
inline bool known_to(const Fiber &me, const Access &past) {
    const Block &block = *me.block;
    if (past.engine && past.stamp <= block.cluster->settled && of_cluster(*block.cluster, past.block)) return true;
    if (past.block != block.number) {
        if (known_afar(me, past)) return true;
        if (past.thread < FIRST_AGENT && past.stamp > block.cluster->base) return false;
        for (const Block &other : block.cluster->blocks)
            if (other.number == past.block) return past.thread < FIRST_AGENT || known_agent(other, past);
        return false;
    }
    unsigned thread = past.thread, warp = thread / LANES, mine = me.index / LANES;
    if (me.index < block.met.size()) {
        const auto &row = block.met[me.index];
        unsigned column = thread >= FIRST_AGENT ? block.size + thread - FIRST_AGENT : thread;
        if (column < row.size() && past.stamp <= row[column]) return true;
    }
    if (thread >= FIRST_AGENT) return false;
    if (past.stamp <= block.base || thread == me.index) return true;
    if (!block.known.empty() && past.stamp <= block.known[mine * machine.warps + warp]) return true;
    if (warp != mine) return false;
    if (past.stamp <= me.warp->base) return true;
    return !me.warp->known.empty() && past.stamp <= me.warp->known[me.lane * LANES + thread % LANES];
}

/* How far two threads are apart: the number of the innermost group that holds both. */
inline int distance(const Access &a, const Access &b) {
    if (a.block != b.block) {
        Dim shape = machine.core.cluster_dim, one = block_of(a.block), two = block_of(b.block);
        bool together = one.x / shape.x == two.x / shape.x && one.y / shape.y == two.y / shape.y && one.z / shape.z == two.z / shape.z;
        return together ? 33 : 34;
    }
    return a.thread == b.thread ? 0 : 32 - __builtin_clz((unsigned)(a.thread ^ b.thread));
}

/* What an agent did is said of the thread that started the copy, of which the line is known alone. */
inline Party party(const Access &access, const char *action) {
    return {block_of(access.block), thread_of(access.thread >= FIRST_AGENT ? 0 : access.thread), access.line, action};
}

struct Check {
    const Fiber &me;
    const View &view;
    long long index;
    Act act;
    Stamp fresh; /* what is older is another launch's, or another block's use of the same memory */

    /* Reports a race with `past` where there is one. */
    void against(const Access &past, Act what) const {
        bool overtaken = view.space == Space::global && overtakes(me, past.stamp);
        if (overtaken) return found(Fault::race, view, index, party(past, BEFORE[(int)what]), party(me, ACTS[(int)act]));
        if (past.stamp < fresh || known_to(me, past)) return;
        if (past.thread >= FIRST_AGENT)
            found(Fault::unfinished_copy, view, index, party(past, "was copied into, and its phase not waited for"), party(me, ACTS[(int)act]));
        else
            found(Fault::race, view, index, party(past, ACTS[(int)what]), party(me, ACTS[(int)act]));
    }

    void against(const Access (&past)[2], Act what) const {
        against(past[0], what);
        against(past[1], what);
    }

    /* Whether `past` need not be kept beside `mine`: what is ordered after `mine` is after it too. */
    bool covers(const Access &mine, const Access &past) const {
        return past.stamp < fresh || same_thread(past, mine) || known_to(me, past);
    }

    void keep(Access (&two)[2], const Access &mine) const {
        if (covers(mine, two[0])) two[0] = mine;
        else if (covers(mine, two[1]) || distance(two[0], mine) > distance(two[0], two[1])) two[1] = mine;
    }

    /* One of another array, in the same bytes: any access of it is one of them, and is kept there. */
    void beside(const Cell &cell) const {
        against(cell.write, Act::write);
        if (act == Act::read) return against(cell.atomics, Act::atomic);
        against(cell.reads, Act::read);
        against(cell.atomics, Act::atomic);
    }

    void cell(Cell &cell) const {
        Access mine = access_of(me);
        if (act == Act::read && cell.reads[0].stamp == mine.stamp && same_thread(cell.reads[0], mine)) return;
        against(cell.write, Act::write);
        if (act != Act::read) against(cell.reads, Act::read);
        if (act != Act::atomic) against(cell.atomics, Act::atomic);
        switch (act) {
        case Act::read: keep(cell.reads, mine); break;
        case Act::atomic: keep(cell.atomics, mine); break;
        case Act::write:
            cell.write = mine;
            cell.reads[0] = cell.reads[1] = cell.atomics[0] = cell.atomics[1] = Access{};
            break;
        }
    }
};

/* What lies where an element does, in arrays that share its bytes. */
template <class See> void each_beside(const View &view, long long index, See see) {
    for (SharedArray *other : static_cast<SharedArray *>(view.owner)->others) {
        const View &beside = other->view;
        const char *from = std::max<const char *>(view.base + index * (long long)view.size, beside.base);
        const char *end = std::min<const char *>(view.base + (index + 1) * (long long)view.size, beside.base + beside.count * (long long)beside.size);
        for (long long at = (from - beside.base) / beside.size; from < end && at <= (end - 1 - beside.base) / beside.size; ++at) see(*other, at);
    }
}

/* Reads of elements that nobody wrote; what is written is remembered. */
inline void check_written(const Fiber &me, View &view, long long index, Act act) {
    bool written = true;
    if (view.space == Space::local) {
        auto bytes = static_cast<unsigned char *>(view.shadow);
        written = bytes[index];
        bytes[index] = 1;
    } else if (view.space == Space::shared) {
        Stamp fresh = static_cast<SharedArray *>(view.owner)->fresh;
        Cell &cell = static_cast<Cell *>(view.shadow)[index];
        written = cell.written >= fresh;
        if (act != Act::read) {
            cell.written = machine.now;
            each_beside(view, index, [](SharedArray &other, long long at) { other.cells[(std::size_t)at].written = 0; });
        }
    } else {
        auto &allocation = *static_cast<Allocation *>(view.owner);
        auto from = (std::size_t)(view.base - allocation.base) + (std::size_t)index * view.size;
        written = act == Act::write || allocation.marked(from, view.size);
        if (act != Act::read) allocation.mark(from, view.size);
    }
    if (!written && act != Act::write) found(Fault::uninitialised, view, index, party(me, ACTS[(int)act]));
}

/* The copy among `words` that has to do with what lies at an element, or null. */
inline const Flying *flying_at(const std::unordered_multimap<std::uintptr_t, const Flying *> &words, const View &view, long long index) {
    auto first = reinterpret_cast<std::uintptr_t>(view.base + index * (long long)view.size);
    for (std::uintptr_t word = first / 4; word <= (first + view.size - 1) / 4; ++word) {
        auto found = words.find(word);
        if (found != words.end()) return found->second;
    }
    return nullptr;
}

/* An access before the thread that started `copy` has waited for it, also by that thread itself: to what the copy writes, or a
   write of what it reads. */
[[gnu::cold, gnu::noinline]] inline void met_copy(const Flying &copy, const char *copied, const View &view, long long index, Act act) {
    found(Fault::unfinished_copy, view, index, party(copy.start, copied), party(machine.current(), ACTS[(int)act]));
}

/* Reports an access that comes too early for a copy. */
template <Act ACT> [[gnu::always_inline]] inline bool too_early(const View &view, long long index) {
    const Flying *copy = nullptr;
    const char *copied = nullptr;
    if (view.space == Space::shared) {
        const auto &array = *static_cast<SharedArray *>(view.owner);
        if (!array.flying.empty() && (copy = array.flying[(std::size_t)index])) copied = copy->into;
        else if (ACT != Act::read && !array.reading.empty() && (copy = array.reading[(std::size_t)index])) copied = copy->from;
        if (!copied && !array.others.empty()) each_beside(view, index, [&](SharedArray &other, long long at) {
            const Flying *near = other.flying.empty() ? nullptr : other.flying[(std::size_t)at];
            if (near) copy = near, copied = near->into;
        });
    } else if (view.space == Space::global) {
        if (ACT != Act::read && !machine.sources.empty() && (copy = flying_at(machine.sources, view, index))) copied = copy->from;
        else if (!machine.stored.empty() && (copy = flying_at(machine.stored, view, index))) copied = copy->into;
        if (copy && ACT == Act::atomic && copy->combines) return false;
    }
    if (copied) met_copy(*copy, copied, view, index, ACT);
    return copied != nullptr;
}

/* Remembers a read of shared memory by its thread, which the engine may write only behind a fence of that thread. */
inline void keep_read(SharedArray &array, long long index, const Fiber &me) {
    array.read.resize((std::size_t)array.view.count);
    auto &reads = array.read[(std::size_t)index];
    Access mine = access_of(me);
    for (Access &past : reads)
        if (same_thread(past, mine)) return (void)(past = mine);
    reads.push_back(mine);
}

/* Everything that is looked for at one element. */
template <Act ACT> [[gnu::always_inline]] inline void check_element(View &view, long long index) {
    if (!view.unsure && !view.watched) return; /* nobody writes there */
    if (too_early<ACT>(view, index)) return;
    const Fiber &me = machine.current();
    if (view.unsure) check_written(me, view, index, ACT);
    if (!view.watched) return;
    Stamp fresh = view.space == Space::shared ? static_cast<SharedArray *>(view.owner)->fresh : machine.launch;
    Check check{me, view, index, ACT, fresh};
    Cell *cells = static_cast<Cell *>(view.shadow) + index * view.span;
    if (view.space == Space::shared) each_beside(view, index, [&](SharedArray &other, long long at) { check.beside(other.cells[(std::size_t)at]); });
    for (unsigned each = 0; each < view.span; ++each) check.cell(cells[each]);
}

inline bool inside(const View &view, long long index) { return (unsigned long long)index < (unsigned long long)view.count; }

inline void *outside(const View &view, long long index, Act act) {
    static std::uint64_t nowhere[16];
    std::memset(nowhere, 0xff, sizeof nowhere);
    found(Fault::out_of_bounds, view, index, party(machine.current(), ACTS[(int)act]));
    return nowhere;
}

/* Where `address` would be on a device, whose allocations begin at multiples of 256. */
inline std::uint64_t device_address(const View &view, const char *address) {
    bool global = view.space == Space::global && view.owner;
    return (std::uint64_t)(address - (global ? static_cast<Allocation *>(view.owner)->base : view.base));
}

/* Reports an access of a thread's own register that its tensor core has. */
[[gnu::noinline]] inline void check_kept(const Fiber &me, const View &view, long long index, Act act) {
    const char *at = view.base + index * (long long)view.size;
    for (const Registers &each : me.block->works[me.index].registers)
        if (each.kept && at >= each.first && at < each.first + each.value.size())
            found(Fault::unfinished_copy, view, index, party(each.start, "gave it to a tensor core and had not taken it back"), party(me, ACTS[(int)act]));
}

/* The same of what a thread does itself. */
template <Act ACT> [[gnu::always_inline]] inline void check_own(View &view, long long index) {
    check_element<ACT>(view, index);
    const Fiber &me = machine.current();
    if (view.space == Space::local && !me.block->works.empty()) check_kept(me, view, index, ACT);
    if (ACT != Act::write && view.space == Space::shared && view.watched && !me.block->barriers.empty())
        keep_read(*static_cast<SharedArray *>(view.owner), index, me);
}

template <Act ACT> void *touch(View *given, long long index) {
    View &view = *given;
    const void *place = __builtin_return_address(0);
    if (view.space != Space::local) before_access();
    if (!inside(view, index)) return outside(view, index, ACT);
    if (machine.options.detect) check_own<ACT>(view, index);
    char *address = view.base + index * (long long)view.size;
    if (counting && view.space != Space::local) count_access(ACT, view, device_address(view, address), view.size, place);
    return address;
}

inline void check_aligned(const View &view, long long index, int count, Act act) {
    std::uint64_t address = device_address(view, view.base + index * (long long)view.size);
    if (address % ((unsigned)count * view.size) != 0) found(Fault::misaligned, view, index, party(machine.current(), ACTS[(int)act]));
}

/* Consecutive elements at once. */
template <Act ACT> void *touch_run(View *given, long long index, int count) {
    View &view = *given;
    const void *place = __builtin_return_address(0);
    before_access();
    for (int each = 0; each < count; ++each)
        if (!inside(view, index + each)) return outside(view, index + each, ACT);
    if (machine.options.detect) {
        check_aligned(view, index, count, ACT);
        for (int each = 0; each < count; ++each) check_own<ACT>(view, index + each);
    }
    char *address = view.base + index * (long long)view.size;
    if (counting) count_access(ACT, view, device_address(view, address), (unsigned)count * view.size, place);
    return address;
}

/* The view of shared memory that holds `address`, or null. */
inline View *shared_view_at(const char *address) {
    for (Block *block : machine.blocks)
        for (const auto &array : block->shared) {
            View &view = array->view;
            if (address >= view.base && address < view.base + view.count * view.size) return &view;
        }
    return nullptr;
}

/* An atomic access by its address, where a text gives a pointer of another type than the array's. */
inline void *touch_at(void *address, unsigned size) {
    auto at = static_cast<char *>(address);
    View *view = shared_view_at(at);
    View made{};
    if (!view) {
        Allocation *allocation = memory.find(address);
        if (!allocation || !machine.options.detect) {
            before_access();
            return address;
        }
        made = {allocation->base, (long long)(allocation->bytes / size), size, 1, Space::global, allocation->grain != 0 && size >= allocation->grain,
                !allocation->written_before, allocation->name.c_str(), allocation->cells.as<Cell>(), allocation};
        if (made.watched) made.span = size / (unsigned)allocation->grain;
        view = &made;
    }
    return touch<Act::atomic>(view, (at - view->base) / view->size);
}

} // namespace tx_emu

#endif
