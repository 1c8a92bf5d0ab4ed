/* The tensor core of a warpgroup, a lane's share at a time: at the lane's wait, in order and in lockstep, else when the seed says,
   it reads what its results are made of, in matrices and in registers as the lane had given them, and computes. PTX ISA,
   "wgmma.mma_async", "wgmma.fence", "wgmma.wait_group".

   It has registers as they were at the lane's last fence that named them; meanwhile they hold what no program means to read, and
   what the lane does to them is lost. The lane has them again where it takes them behind a wait for all that has to do with them.
   So it is with registers that are only read, of which each lane of a warp lends its own to all.
   Until its wait nobody may write what it reads. It reads through the async proxy: what a thread wrote before comes before it only
   behind a fence of that thread. */
#ifndef TEXPR_EMULATOR_WARPGROUP_HPP
#define TEXPR_EMULATOR_WARPGROUP_HPP

#include "engine.hpp"

namespace tx_emu {

inline Works &works_of(Fiber &me) {
    auto &all = me.block->works;
    if (all.empty()) all.resize(me.block->size);
    return all[me.index];
}

inline Registers &piece(Works &mine, char *first, std::size_t bytes) {
    mine.registers.emplace_back();
    Registers &made = mine.registers.back();
    made.first = first;
    made.value.assign(bytes, (char)machine.poison);
    return made;
}

/* What is known of registers from one fence to the next is of those of one start: each is a piece of what fences and waits name. */
inline std::vector<Registers *> pieces_of(Works &mine, View *view, long long at, int count) {
    char *from = address_in(*view, at), *end = from + (std::size_t)count * view->size;
    std::vector<Registers *> found;
    for (auto &each : mine.registers)
        if (each.first >= from && each.first + each.value.size() <= end) found.push_back(&each);
    std::sort(found.begin(), found.end(), [](const Registers *one, const Registers *other) { return one->first < other->first; });
    std::vector<std::pair<char *, char *>> gaps;
    for (const Registers *each : found) {
        if (from < each->first) gaps.emplace_back(from, each->first);
        from = std::max(from, each->first + each->value.size());
    }
    if (from < end) gaps.emplace_back(from, end);
    for (auto [first, last] : gaps) found.push_back(&piece(mine, first, (std::size_t)(last - first)));
    return found;
}

/* The registers of a start: a part of a larger piece that nothing has been started on becomes one of its own. */
inline Registers &registers_of(Works &mine, View *view, long long at, int count) {
    char *first = address_in(*view, at);
    std::size_t bytes = (std::size_t)count * view->size;
    for (auto &each : mine.registers)
        if (each.first == first && each.value.size() == bytes) return each;
    for (auto &each : mine.registers) {
        std::size_t before = (std::size_t)(first - each.first), size = each.value.size();
        if (each.kept || first < each.first || before + bytes > size) continue;
        auto part = [&](std::size_t from, std::size_t to) {
            Registers &made = piece(mine, each.first + from, to - from);
            std::copy(each.value.begin() + (std::ptrdiff_t)from, each.value.begin() + (std::ptrdiff_t)to, made.value.begin());
            made.given = each.given, made.giving = each.giving;
        };
        if (before) part(0, before);
        if (before + bytes < size) part(before + bytes, size);
        each.value = std::vector<char>(each.value.begin() + (std::ptrdiff_t)before, each.value.begin() + (std::ptrdiff_t)(before + bytes));
        each.first = first;
        return each;
    }
    return piece(mine, first, bytes);
}

inline void give_registers(View *view, long long at, int count) {
    for (Registers *each : pieces_of(works_of(machine.current()), view, at, count)) each->giving = true;
}

/* What the lane did to the registers that it gives is what the tensor core has of them, unless that has them already. */
inline void fence_registers() {
    for (auto &each : works_of(machine.current()).registers) {
        if (!each.giving) continue;
        each.giving = false;
        each.given = true;
        if (!each.kept) std::memcpy(each.value.data(), each.first, each.value.size());
    }
}

/* Behind a wait: the lane has what was computed. */
inline void take_registers(View *view, long long at, int count) {
    for (Registers *each : pieces_of(works_of(machine.current()), view, at, count)) {
        if (each->flying != 0 || !each->kept) continue;
        std::memcpy(each->first, each->value.data(), each->value.size());
        each->kept = false;
    }
}

/* Reports a thread's write that the tensor core reads, unless a fence of that thread comes between. */
inline void check_proxy(const Fiber &me, View &view, long long index) {
    const Access &past = array_of(view).cells[(std::size_t)index].write;
    const Block &block = *me.block;
    if (past.stamp < array_of(view).fresh || past.block != block.number || past.thread >= FIRST_AGENT) return;
    if (past.thread < block.fences.size())
        for (Stamp fence : block.fences[past.thread]) {
            Access at = past;
            at.stamp = fence;
            if (fence >= past.stamp && known_to(me, at)) return;
        }
    found(Fault::missing_fence, view, index, party(past, "write"), party(me, "read it by a tensor core, and no fence of the writer is between"));
}

inline bool check_matrix(const Fiber &me, const Matrix &matrix) {
    View &view = *matrix.view;
    auto start = reinterpret_cast<std::uintptr_t>(address_in(view, matrix.first));
    if (start % 16 || (matrix.span && start % (8 * matrix.span) >= matrix.span))
        found(Fault::misaligned, view, matrix.first, party(me, "described a matrix that starts there"));
    for (long long index : matrix.elements)
        if (!inside(view, index)) return outside(view, index, Act::read), false;
    if (!machine.options.detect || !view.watched) return true;
    for (long long index : matrix.elements) {
        check_proxy(me, view, index);
        check_element<Act::read>(view, index);
    }
    return true;
}

inline void unmark(Share &share) {
    for (const Matrix &matrix : share.matrices) {
        auto &marks = array_of(*matrix.view).reading;
        for (long long index : matrix.elements)
            if (!marks.empty() && marks[(std::size_t)index] == &share) marks[(std::size_t)index] = nullptr;
    }
}

/* It is computed. */
inline void compute(Share &share) {
    if (share.done) return;
    share.done = true;
    std::vector<std::array<const void *, LANES>> lent(share.loans ? share.loans->operands.size() : 0);
    std::vector<const void *const *> operands;
    for (std::size_t at = 0; at < lent.size(); ++at) {
        for (unsigned lane = 0; lane < LANES; ++lane) {
            const std::vector<char> &own = share.loans->operands[at][lane];
            lent[at][lane] = own.empty() ? nullptr : own.data();
        }
        operands.push_back(lent[at].data());
    }
    share.work->borrow(operands.data());
    share.work->run(share.registers->value.data());
    --share.registers->flying;
    for (Registers *each : share.lent) --each->flying;
}

/* The first share of a lane that is not computed. */
inline void compute_next(Works &works) {
    for (auto &share : works.flying)
        if (!share.done) return compute(share);
}

inline void compute_some() {
    if (machine.options.order != Order::random || machine.shares == 0 || machine.random.below(4) != 0) return;
    Block &block = *machine.blocks[machine.random.below((unsigned)machine.blocks.size())];
    if (!block.works.empty()) compute_next(block.works[machine.random.below((unsigned)block.works.size())]);
}

/* The tensor core has them from now on. */
inline void hand_over(Fiber &me, Registers &registers, View *view, long long at) {
    bool changed = !registers.kept && std::memcmp(registers.first, registers.value.data(), registers.value.size()) != 0;
    if (!registers.given || changed) found(Fault::missing_fence, *view, at, party(me, "gave it to a tensor core, and no fence is between what it did to it and that"));
    std::memset(registers.first, machine.poison, registers.value.size());
    ++registers.flying;
    registers.kept = true;
    registers.start = access_of(me);
}

/* Before lanes come to a start: an operand of it that is read in registers. */
inline void lend_registers(View *view, long long at, int count) {
    before_access();
    Fiber &me = machine.current();
    Works &mine = works_of(me);
    Registers &registers = registers_of(mine, view, at, count);
    if (mine.lent.empty()) {
        auto &all = me.block->loans;
        if (all.empty()) all.resize((me.block->size + LANES - 1) / LANES);
        std::shared_ptr<Loans> &latest = all[me.index / LANES];
        if (!latest || latest->number != mine.lending) latest = std::make_shared<Loans>(Loans{mine.lending, {}});
        mine.loans = latest;
        ++mine.lending;
    }
    auto &operands = mine.loans->operands;
    if (operands.size() <= mine.lent.size()) operands.resize(mine.lent.size() + 1);
    operands[mine.lent.size()][me.index % LANES] = registers.value;
    mine.lent.push_back(&registers);
    hand_over(me, registers, view, at);
}

inline void start_work(const WorkOrder &order) {
    before_access();
    Fiber &me = machine.current();
    Works &mine = works_of(me);
    Registers &registers = registers_of(mine, order.registers, order.at, order.count);
    Share &share = mine.flying.emplace_back();
    static_cast<Flying &>(share) = {access_of(me), "", "read it by a tensor core and had not waited", false};
    share.work = order.work;
    share.registers = &registers;
    share.group = mine.committed;
    for (unsigned at = 0; at < order.number; ++at) {
        const MatrixOrder &matrix = order.matrices[at];
        share.matrices.push_back({matrix.view, matrix.first, matrix.span, {matrix.elements, matrix.elements + matrix.count}});
        if (!check_matrix(me, share.matrices.back())) share.matrices.back().elements.clear();
    }
    hand_over(me, registers, order.registers, order.at);
    share.lent.swap(mine.lent);
    share.loans.swap(mine.loans);
    if (machine.options.detect)
        for (const Matrix &matrix : share.matrices) {
            SharedArray &array = array_of(*matrix.view);
            array.reading.resize((std::size_t)array.view.count);
            for (long long index : matrix.elements) array.reading[(std::size_t)index] = &share;
        }
    ++machine.shares;
}

inline void commit_work() { ++works_of(machine.current()).committed; }

/* What a share read becomes what its lane did just now. */
inline void finish(const Fiber &me, Share &share) {
    compute(share);
    unmark(share);
    share.work->end();
    --machine.shares;
    if (!machine.options.detect) return;
    Access done = share.start;
    done.stamp = machine.now;
    done.engine = true;
    for (const Matrix &matrix : share.matrices) {
        if (!matrix.view->watched) continue;
        for (long long index : matrix.elements) {
            Check check{me, *matrix.view, index, Act::read, array_of(*matrix.view).fresh};
            check.keep(array_of(*matrix.view).cells[(std::size_t)index].reads, done);
        }
    }
}

inline void wait_for_work(int pending) {
    before_access();
    Fiber &me = machine.current();
    Works &mine = works_of(me);
    while (!mine.flying.empty() && mine.flying.front().group + (unsigned)pending < mine.committed) {
        finish(me, mine.flying.front());
        mine.flying.pop_front();
    }
}

/* The current thread ends. */
inline void report_unwaited(const Fiber &me) {
    if (me.block->works.empty() || !machine.options.detect) return;
    for (const auto &share : me.block->works[me.index].flying)
        found(Fault::abandoned_copy, *share.matrices[0].view, share.matrices[0].first, party(share.start, "read it by a tensor core and never waited"));
}

/* The block has ended, or is given up. */
inline void forget_works(Block &block) {
    for (Works &works : block.works)
        for (auto &share : works.flying) {
            unmark(share);
            share.work->end();
            --machine.shares;
        }
    block.works.clear();
    block.loans.clear();
}

} // namespace tx_emu

#endif
