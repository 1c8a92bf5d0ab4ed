/* Tensor memory: 128 lanes of the columns that a block has taken, element `column * 128 + lane`. What a thread launches there reads
   its matrices, and is done, in the order of the launches of that thread: when no thread can run, or when the seed says. A commit
   behind it arrives at its barrier then: what was read and written was so by the agent of the barrier (phases.hpp). PTX ISA,
   "tcgen05.mma", "tcgen05.commit", "tcgen05 memory consistency model".

   What threads did in tensor memory comes before what others do there only behind a fence "before" of theirs, and one "after" of the
   others', once these know of the first. */
#ifndef TEXPR_EMULATOR_COLUMNS_HPP
#define TEXPR_EMULATOR_COLUMNS_HPP

#include "warpgroup.hpp"

namespace tx_emu {

constexpr long long ROWS = 128;

inline const char *const AHEAD = "did it, and no fence `after` of this thread is behind one `before` of the first";

inline Columns *columns_of(const char *what) {
    Columns &columns = machine.current().block->columns;
    if (columns.view && !columns.freed) return &columns;
    found(Fault::illegal_address, party(machine.current(), what));
    return nullptr;
}

inline void take_columns(View *word, long long at, View *view, bool pair) {
    before_access();
    Fiber &me = machine.current();
    Columns &columns = me.block->columns;
    if (columns.view) return found(Fault::illegal_address, party(me, "took columns of tensor memory again"));
    columns.view = view;
    columns.freed = false;
    columns.taker = access_of(me);
    columns.pair = pair;
    unsigned of = pair ? me.block->cluster->blocks[me.block->rank / 2 * 2].number : me.block->number;
    columns.first = 32u * (of % 4u); /* as many from there on in both blocks of a pair */
    columns.word = word->base + at * (long long)word->size;
    me.block->met.resize(me.block->size);
}

inline unsigned first_column(View *word, long long at) {
    before_access();
    Fiber &me = machine.current();
    Columns *columns = columns_of("asked where columns begin that nobody had taken");
    if (!columns) return 0;
    if (columns->word != word->base + at * (long long)word->size || !known_to(me, columns->taker))
        found(Fault::race, *word, at, party(columns->taker, "took columns"), party(me, "asked where they begin"));
    return columns->first;
}

inline void fence_columns(bool after) {
    Fiber &me = machine.current();
    Block &block = *me.block;
    Columns &columns = block.columns;
    columns.before.resize(block.size);
    columns.seen.resize(block.size);
    columns.seen_far.resize(block.size);
    if (!after) return columns.before[me.index].push_back(machine.now++);
    std::vector<Stamp> &row = columns.seen[me.index];
    columns.seen_far[me.index] = block.cluster->base;
    row.assign(columns_known(block), 0);
    for (unsigned of = 0; of < row.size(); ++of) row[of] = of == me.index ? machine.now : knowledge(me, of);
}

/* Reports what was done at an element if no fences are between that and what this thread does. */
inline void check_columns_fenced(const Fiber &me, View &view, long long index, const Access &past, const char *action) {
    const Block &block = *me.block;
    if (past.stamp < array_of(view).fresh) return;
    const bool agent = past.thread >= FIRST_AGENT;
    if (past.block != block.number) {
        if (agent) return;
        for (const Block &other : block.cluster->blocks) {
            if (other.number != past.block || past.thread >= other.columns.before.size()) continue;
            Stamp seen = me.index < block.columns.seen_far.size() ? block.columns.seen_far[me.index] : 0;
            for (Stamp fence : other.columns.before[past.thread])
                if (fence >= past.stamp && fence <= seen) return;
        }
        return found(Fault::missing_fence, view, index, party(past, action), party(me, AHEAD));
    }
    unsigned of = agent ? block.size + past.thread - FIRST_AGENT : past.thread;
    if (!agent && past.thread == me.index) return;
    const auto &columns = block.columns;
    Stamp seen = me.index < columns.seen.size() && of < columns.seen[me.index].size() ? columns.seen[me.index][of] : 0;
    if (agent && past.stamp <= seen) return;
    if (!agent && past.thread < columns.before.size())
        for (Stamp fence : columns.before[past.thread])
            if (fence >= past.stamp && fence <= seen) return;
    found(Fault::missing_fence, view, index, party(past, action), party(me, AHEAD));
}

inline void check_columns_fenced(const Fiber &me, View &view, long long index, Act act) {
    const Cell &cell = array_of(view).cells[(std::size_t)index];
    check_columns_fenced(me, view, index, cell.write, "wrote to tensor memory");
    if (act != Act::read)
        for (const Access &past : cell.reads) check_columns_fenced(me, view, index, past, "read of tensor memory");
}

/* Where a thread's own access to a column of a lane is. */
inline void *touch_column(unsigned column, unsigned lane, bool write) {
    static std::uint32_t nowhere;
    before_access();
    Fiber &me = machine.current();
    Columns *columns = columns_of("touched tensor memory that the block does not have");
    if (!columns) return &nowhere;
    View &view = *columns->view;
    long long index = (long long)(column - columns->first) * ROWS + lane;
    if (column < columns->first || !inside(view, index)) return outside(view, index, write ? Act::write : Act::read);
    if (me.index / LANES % 4 != lane / LANES) found(Fault::illegal_address, view, index, party(me, "is of a warp that does not reach this lane"));
    if (machine.options.detect && view.watched) {
        if (write && !columns->launcher.empty()) columns->launcher[(std::size_t)index] = 0;
        check_columns_fenced(me, view, index, write ? Act::write : Act::read);
        if (write) check_element<Act::write>(view, index);
        else check_element<Act::read>(view, index);
    }
    return view.base + index * (long long)view.size;
}

/* Who launches something on columns of a block, as `launcher` has it. */
inline std::uint16_t launcher_of(const Block &home, const Block &by, unsigned thread) {
    return (std::uint16_t)(thread + 1u + (&home == &by ? 0u : FAR_LAUNCHER));
}

/* Whether what is there was launched by this thread: what it launches next comes behind that. */
inline bool mine(const Fiber &me, const Block &home, long long index) {
    const auto &launcher = home.columns.launcher;
    return !launcher.empty() && launcher[(std::size_t)index] == launcher_of(home, *me.block, me.index);
}

/* What a copy overwrites its thread's products may still read, and other copies write: nothing keeps their order. */
inline bool check_copied(const Fiber &me, View &view, long long first, long long count) {
    if (first < 0 || first + count > view.count) return outside(view, first < 0 ? first : view.count, Act::write), false;
    if (!machine.options.detect || !view.watched) return true;
    SharedArray &array = array_of(view);
    array.flying.resize((std::size_t)view.count);
    for (long long index = first; index < first + count; ++index) {
        check_columns_fenced(me, view, index, Act::write);
        check_element<Act::write>(view, index);
    }
    return true;
}

/* Columns that a product reads: its own thread's copies to them come before. */
inline bool check_read(const Fiber &me, View &view, const Matrix &read) {
    for (long long index : read.elements) {
        if (!inside(view, index)) return outside(view, index < 0 ? index : view.count, Act::read), false;
        if (!machine.options.detect || !view.watched) continue;
        SharedArray &array = array_of(view);
        array.flying.resize((std::size_t)view.count);
        const Flying *flying = array.flying[(std::size_t)index];
        if (flying && same_thread(flying->start, access_of(me)) && static_cast<const Launch *>(flying)->copies) continue;
        if (!flying && mine(me, *me.block, index)) continue;
        check_columns_fenced(me, view, index, Act::read);
        check_element<Act::read>(view, index);
    }
    return true;
}

/* Whether nobody wrote what a product of a pair adds to: it is of a block that has no such rows. */
inline bool is_nothing(const Block &home, View &view, long long index) {
    return home.columns.pair && static_cast<Cell *>(view.shadow)[index].written < array_of(view).fresh;
}

inline bool check_launched(const Fiber &me, const Block &home, View &view, long long first, long long count) {
    if (first < 0 || first + count > view.count) return outside(view, first < 0 ? first : view.count, Act::write), false;
    if (!machine.options.detect || !view.watched) return true;
    SharedArray &array = array_of(view);
    array.flying.resize((std::size_t)view.count);
    for (long long index = first; index < first + count; ++index) {
        const Flying *flying = array.flying[(std::size_t)index];
        if (flying && same_thread(flying->start, access_of(me))) continue; /* of one thread they keep their order */
        if (!flying && is_nothing(home, view, index)) continue;
        if (!flying && mine(me, home, index)) {
            Cell &cell = array.cells[(std::size_t)index];
            Check{me, view, index, Act::write, array.fresh}.against(cell.reads, Act::read);
            for (const Access &past : cell.reads) check_columns_fenced(me, view, index, past, "read of tensor memory");
            cell.write = access_of(me);
            cell.reads[0] = cell.reads[1] = Access{};
            continue;
        }
        check_columns_fenced(me, view, index, Act::write);
        check_element<Act::read>(view, index);
        check_element<Act::write>(view, index);
    }
    return true;
}

/* The block whose columns a launch is about: one of a pair, or that of the thread; null where it has none. */
inline Block *home_of(const Fiber &me, const Columns &columns, unsigned pair) {
    if (columns.pair != (pair != 0)) {
        found(Fault::illegal_address, *columns.view, 0, party(columns.taker, "took columns"), party(me, "launched for as many blocks as did not"));
        return nullptr;
    }
    if (!pair) return me.block;
    unsigned rank = me.block->rank / 2 * 2 + pair - 1;
    Block *home = rank < me.block->cluster->blocks.size() ? &me.block->cluster->blocks[rank] : nullptr;
    if (home && home->live && home->columns.view && !home->columns.freed && home->columns.first == columns.first &&
        (home == me.block || known_to(me, home->columns.taker)))
        return home;
    found(Fault::illegal_address, *columns.view, 0, party(columns.taker, "took columns"), party(me, "launched for a block that has none, as it knows"));
    return nullptr;
}

inline std::deque<Launch> &launches_of(Fiber &me) {
    auto &all = me.block->launches;
    if (all.empty()) all.resize(me.block->size);
    return all[me.index];
}

inline void launch_work(const LaunchOrder &order) {
    before_access();
    Fiber &me = machine.current();
    Columns *columns = columns_of("launched a product in tensor memory that the block does not have");
    Block *home = columns ? home_of(me, *columns, order.pair) : nullptr;
    if (!home) return order.work->end();
    View &view = *home->columns.view;
    long long first = ((long long)order.column - columns->first) * ROWS, count = order.count * ROWS;
    auto &mine = launches_of(me);
    Launch &launch = mine.emplace_back();
    static_cast<Flying &>(launch) = {access_of(me), "launched a product in it whose commit had not come", "launched a product that reads it whose commit had not come", false};
    launch.block = home;
    for (unsigned at = 0; at < order.number; ++at) {
        const MatrixOrder &matrix = order.matrices[at];
        launch.matrices.push_back({matrix.view, matrix.first, matrix.span, {matrix.elements, matrix.elements + matrix.count}});
        if (!check_matrix(me, launch.matrices.back())) launch.matrices.back().elements.clear();
    }
    ++machine.launched;
    launch.copies = order.copies;
    bool fine = order.copies ? check_copied(me, view, first, count) : check_launched(me, *home, view, first, count);
    for (unsigned at = 0; fine && at < order.others; ++at) {
        const ColumnOrder &read = order.reads[at];
        Matrix &kept = launch.matrices.emplace_back();
        kept.view = &view;
        kept.first = ((long long)read.column - columns->first) * ROWS;
        for (long long index = 0; index < read.count * ROWS; ++index) kept.elements.push_back(kept.first + index);
        if (!(fine = check_read(me, view, kept))) kept.elements.clear();
    }
    if (!fine) {
        order.work->end();
        return;
    }
    launch.work = order.work;
    launch.view = &view;
    launch.first = first;
    launch.count = count;
    if (!machine.options.detect || !view.watched) return;
    SharedArray &array = array_of(view);
    for (long long index = first; index < first + count; ++index) array.flying[(std::size_t)index] = &launch;
    for (const Matrix &matrix : launch.matrices) {
        SharedArray &read = array_of(*matrix.view);
        read.reading.resize((std::size_t)read.view.count);
        for (long long index : matrix.elements) read.reading[(std::size_t)index] = &launch;
    }
}

inline Phases *committed_to(View *barriers, long long at) {
    Phases *phases = barrier_at(*barriers, at, "committed to a barrier that was not made");
    if (phases && !phases->fenced)
        found(Fault::missing_fence, *barriers, at, party(phases->maker, "made the barrier"),
              party(machine.current(), "committed to it, and no fence of its maker is between"));
    return phases;
}

inline void commit_columns(View *barriers, long long at, bool pair) {
    before_access();
    Fiber &me = machine.current();
    Phases *phases = committed_to(barriers, at), *beside = nullptr;
    unsigned rank = me.block->rank ^ 1u;
    if (pair && rank < me.block->cluster->blocks.size()) beside = committed_to(shared_of(barriers, rank), at);
    if (!phases || (pair && !beside)) return;
    Launch &launch = launches_of(me).emplace_back();
    launch.start = access_of(me);
    launch.phases = phases;
    launch.beside = beside;
    ++machine.launched;
}

/* The block of a cluster in which an array is. */
inline bool has(const Block &block, const View &view) {
    std::size_t slot = array_of(view).slot;
    return slot < block.shared.size() && block.shared[slot].get() == view.owner;
}

/* What was launched is no more under way: in each block the agent of the barrier that its commit arrives at there did it. */
inline void land_launch(Block &block, Launch &launch, const Launch &commit) {
    Block *other = commit.beside ? &block.cluster->blocks[block.rank ^ 1u] : nullptr;
    auto agent_in = [&](const Block &home) {
        Access agent = launch.start;
        agent.stamp = machine.now;
        agent.block = home.number;
        agent.thread = (std::uint16_t)(FIRST_AGENT + (&home == other ? commit.beside : commit.phases)->agent);
        return agent;
    };
    for (const Matrix &matrix : launch.matrices) {
        if (!matrix.view->watched || !machine.options.detect) continue;
        SharedArray &array = array_of(*matrix.view);
        Access agent = agent_in(other && has(*other, *matrix.view) ? *other : block);
        for (long long index : matrix.elements) {
            if (!array.reading.empty() && array.reading[(std::size_t)index] == &launch) array.reading[(std::size_t)index] = nullptr;
            Check check{block.fibers[launch.start.thread], *matrix.view, index, Act::read, array.fresh};
            check.keep(array.cells[(std::size_t)index].reads, agent);
        }
    }
    if (launch.view && launch.view->watched && machine.options.detect) {
        SharedArray &array = array_of(*launch.view);
        Block &home = *launch.block;
        Access agent = agent_in(home);
        home.columns.launcher.resize((std::size_t)launch.view->count);
        for (long long index = launch.first; index < launch.first + launch.count; ++index) {
            if (array.flying[(std::size_t)index] == &launch) array.flying[(std::size_t)index] = nullptr;
            if (is_nothing(home, *launch.view, index)) continue;
            home.columns.launcher[(std::size_t)index] = launcher_of(home, block, launch.start.thread);
            array.cells[(std::size_t)index].write = agent;
        }
    }
}

/* A commit comes at the barrier of one block. */
inline void arrive_committed(Block &block, Phases &phases, const Launch *first, const Launch &commit) {
    if (block.live == 0)
        return found(Fault::early_exit, *phases.view, phases.index, party(commit.start, "committed to its barrier"), party(block.fibers[0], "had ended"));
    if (first && first->view) phases.unseen.push_back({first->start, first->first, first->view});
    if (phases.pending == 0) return bad_barrier(*phases.view, phases.index, "committed to a phase to which all had come");
    --phases.pending;
    try_complete(phases, block);
}

/* The next thing that a thread launched is done, or its commit comes. */
inline void launch_next(Block &block, std::deque<Launch> &mine) {
    for (std::size_t at = 0; at < mine.size(); ++at) {
        Launch &launch = mine[at];
        if (launch.done) continue;
        launch.done = true;
        --machine.launched;
        if (launch.work) {
            if (launch.block->live == 0)
                found(Fault::early_exit, *launch.view, launch.first, party(launch.start, "launched a product in it"), party(launch.block->fibers[0], "had ended"));
            auto first = launch.block->columns.first * (std::uintptr_t)(ROWS * launch.view->size); /* where column 0 would be */
            launch.work->run(reinterpret_cast<void *>(reinterpret_cast<std::uintptr_t>(launch.view->base) - first));
            launch.work->end();
            return;
        }
        if (!launch.phases) return;
        Launch commit = launch;
        for (std::size_t before = 0; before < at; ++before) land_launch(block, mine[before], commit);
        Launch first = mine[0];
        first.start = commit.start;
        mine.erase(mine.begin(), mine.begin() + (std::ptrdiff_t)at + 1);
        arrive_committed(block, *commit.phases, at > 0 ? &first : nullptr, commit);
        if (commit.beside) arrive_committed(block.cluster->blocks[block.rank ^ 1u], *commit.beside, nullptr, commit);
        return;
    }
}

inline bool launch_some(bool any) {
    if (machine.launched == 0) return false;
    if (!any && (machine.options.order != Order::random || machine.random.below(4) != 0)) return false;
    for (Block *block : machine.blocks)
        for (auto &mine : block->launches)
            for (const Launch &launch : mine)
                if (!launch.done) return launch_next(*block, mine), true;
    return false;
}

inline void free_columns(unsigned first, long long count, bool pair) {
    before_access();
    Fiber &me = machine.current();
    Columns *columns = columns_of("gave back columns that the block does not have");
    if (!columns) return;
    View &view = *columns->view;
    if (pair != columns->pair) return found(Fault::illegal_address, view, 0, party(columns->taker, "took columns"), party(me, "gave them back of another number of blocks"));
    if (first != columns->first || count * ROWS != view.count || me.index / LANES != columns->taker.thread / LANES)
        return found(Fault::illegal_address, view, 0, party(columns->taker, "took columns"), party(me, "gave back other ones, or of another warp"));
    columns->freed = true;
    if (!machine.options.detect || !view.watched) return;
    for (long long index = 0; index < view.count; ++index) {
        if (array_of(view).cells[(std::size_t)index].write.stamp < array_of(view).fresh) continue;
        check_columns_fenced(me, view, index, Act::write);
        check_element<Act::write>(view, index);
    }
}

/* The current thread ends. */
inline void report_uncommitted(const Fiber &me) {
    if (me.block->launches.empty() || !machine.options.detect) return;
    const auto &mine = me.block->launches[me.index];
    bool open = false;
    for (const Launch &launch : mine) open = launch.phases == nullptr;
    if (open && mine.back().view) found(Fault::abandoned_copy, *mine.back().view, mine.back().first, party(mine.back().start, "launched a product in it and never committed"));
}

/* The block has ended, or is given up. */
inline void forget_columns(Block &block) {
    for (auto &mine : block.launches)
        for (Launch &launch : mine) {
            if (!launch.done) --machine.launched;
            for (const Matrix &matrix : launch.matrices) {
                auto &marks = array_of(*matrix.view).reading;
                for (long long index : matrix.elements)
                    if (!marks.empty() && marks[(std::size_t)index] == &launch) marks[(std::size_t)index] = nullptr;
            }
            if (launch.work && !launch.done) launch.work->end();
        }
    block.launches.clear();
    if (block.columns.view && !block.columns.freed && !machine.stopped && machine.options.detect)
        found(Fault::abandoned_copy, *block.columns.view, 0, party(block.columns.taker, "took columns of tensor memory, and nobody gave them back"));
    block.columns = Columns{};
}

} // namespace tx_emu

#endif
