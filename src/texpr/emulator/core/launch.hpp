/* Running a grid: arguments, blocks, the loop that gives threads their first turn, and what happens when none can run. */
#ifndef TEXPR_EMULATOR_LAUNCH_HPP
#define TEXPR_EMULATOR_LAUNCH_HPP

#include <pthread.h>
#include <signal.h>

#include <numeric>

#include "engine.hpp"
#include "lanes.hpp"
#include "columns.hpp"

namespace tx_emu {

/* ---- one thread ------------------------------------------------------------------------------------------------------ */

/* The current thread has ended: others may have waited for that. */
inline void end_thread() {
    Fiber &me = machine.current();
    Block &block = *me.block;
    report_abandoned(me);
    report_unread(me);
    report_unwaited(me);
    report_uncommitted(me);
    me.finished = true;
    clear_ready(block, me.index);
    if (--block.live == 0) admit_at_end(block);
    --block.cluster->live;
    me.warp->live &= ~(1u << me.lane);
    Gate &gate = block.gates[0];
    if (gate.arrived != 0 && gate.arrived == block.live) let_go(block, gate);
    for (unsigned waiting = me.warp->waiting; waiting != 0; waiting &= waiting - 1) {
        Fiber &other = lane_of(me, (unsigned)__builtin_ctz(waiting));
        if (other.wait == Wait::lanes) try_together(other);
    }
    Cluster &cluster = *block.cluster;
    if (cluster.arrived != 0 && cluster.arrived == cluster.live) let_go(cluster);
}

/* What each stack runs: a thread, and where the next one has not started, that one too, on the same stack. */
inline void run_fiber() {
    for (;;) {
        machine.kernel->entry(machine.arguments);
        end_thread();
        Fiber &me = machine.current();
        Fiber *next = me.block->cluster->live == 0 ? nullptr : pick(&me);
        if (next && !next->started) {
            next->stack = me.stack;
            next->started = true;
            machine.core.current = next;
            continue;
        }
        machine.stacks.give(me.stack);
        if (next) resume(me.context, *next);
        else switch_context(me.context, machine.main);
    }
}

inline void out_of_stacks() {
    found(Fault::stack_overflow, party(machine.current(), "found no memory for its stack"));
    stop();
}

/* ---- blocks ---------------------------------------------------------------------------------------------------------- */

inline void start_block(Block &block, Cluster &cluster, unsigned rank, Dim index) {
    Dim grid = machine.core.grid_dim;
    block.index = index;
    block.number = index.x + grid.x * (index.y + grid.y * index.z);
    block.rank = rank;
    block.cluster = &cluster;
    block.size = block.live = machine.threads;
    block.ready = 0;
    block.start = ++machine.now;
    block.admitted = block.awaited = false;
    block.base = 0;
    block.known.clear();
    std::memset(block.ready_bits, 0, sizeof block.ready_bits);
    for (Gate &gate : block.gates) gate = Gate{};
    block.warps.resize(machine.warps);
    block.fibers.resize(machine.threads);
    for (unsigned warp = 0; warp < machine.warps; ++warp) {
        unsigned lanes = std::min(LANES, machine.threads - warp * LANES);
        block.warps[warp].born = block.warps[warp].live = lanes == LANES ? ALL_LANES : (1u << lanes) - 1u;
        block.warps[warp].waiting = 0;
        block.warps[warp].base = 0;
        block.warps[warp].known.clear();
    }
    Dim shape = machine.core.block_dim, thread{0, 0, 0};
    for (unsigned at = 0; at < machine.threads; ++at) {
        Fiber &fiber = block.fibers[at];
        fiber.thread_index = thread;
        fiber.block_index = index;
        fiber.line = 0;
        fiber.block = &block;
        fiber.warp = &block.warps[at / LANES];
        fiber.index = (std::uint16_t)at;
        fiber.lane = (std::uint8_t)(at % LANES);
        fiber.started = fiber.finished = fiber.awaited = false;
        fiber.wait = Wait::none;
        fiber.turns = 0;
        if (++thread.x == shape.x) thread.x = 0, ++thread.y;
        if (thread.y == shape.y) thread.y = 0, ++thread.z;
    }
    for (unsigned at = 0; at < machine.threads; ++at) set_ready(block, at);
}

/* The clusters of a grid in the order in which they start: by number, or a permutation that the seed chooses. */
class Queue {
  public:
    Queue() {
        Dim grid = machine.core.grid_dim, shape = machine.core.cluster_dim;
        clusters_ = {grid.x / shape.x, grid.y / shape.y, grid.z / shape.z};
        total_ = (std::uint64_t)clusters_.x * clusters_.y * clusters_.z;
        if (machine.options.order != Order::random) return;
        offset_ = machine.random.next() % total_;
        do step_ = machine.random.next() % total_;
        while (std::gcd(step_, total_) != 1);
    }

    bool empty() const { return taken_ == total_; }

    void start_next() {
        std::uint64_t number = (std::uint64_t)(((unsigned __int128)step_ * taken_++ + offset_) % total_);
        Dim first{(unsigned)(number % clusters_.x), (unsigned)(number / clusters_.x % clusters_.y),
                  (unsigned)(number / clusters_.x / clusters_.y)};
        Dim shape = machine.core.cluster_dim;
        unsigned size = shape.x * shape.y * shape.z;
        if (machine.idle.empty()) machine.idle.push_back(std::make_unique<Cluster>());
        std::unique_ptr<Cluster> cluster = std::move(machine.idle.back());
        machine.idle.pop_back();
        cluster->blocks.resize(size);
        cluster->live = size * machine.threads;
        cluster->arrived = 0;
        cluster->base = cluster->settled = 0;
        cluster->relaxed = false;
        for (unsigned rank = 0; rank < size; ++rank) {
            Dim inside{rank % shape.x, rank / shape.x % shape.y, rank / shape.x / shape.y};
            Dim index{first.x * shape.x + inside.x, first.y * shape.y + inside.y, first.z * shape.z + inside.z};
            start_block(cluster->blocks[rank], *cluster, rank, index);
            machine.blocks.push_back(&cluster->blocks[rank]);
        }
        machine.running.push_back(std::move(cluster));
    }

  private:
    Dim clusters_{};
    std::uint64_t total_ = 0, taken_ = 0, step_ = 1, offset_ = 0;
};

/* What blocks of a cluster that ended read of each other behind the last barrier that joined them: there the other block may have
   ended before, and its shared memory was no one's. That is so whichever came first this time. */
inline void check_reach(Cluster &cluster) {
    if (cluster.blocks.size() < 2 || !machine.options.detect || !machine.kernel->checked) return;
    for (Block &block : cluster.blocks)
        for (const auto &array : block.shared) {
            if (array->fresh != block.start || !array->view.watched) continue;
            for (long long at = 0; at < array->view.count; ++at)
                for (const Access &past : array->cells[(std::size_t)at].reads) {
                    if (past.stamp < array->fresh || past.block == block.number || past.stamp <= cluster.base) continue;
                    found(Fault::early_exit, array->view, at, party(past, "read"), party(block.fibers[0], "meets it no more"));
                }
        }
}

/* Puts away the clusters that ended (or all). */
inline void retire(bool all) {
    auto &running = machine.running;
    for (std::size_t at = running.size(); at-- > 0;) {
        if (!all && running[at]->live != 0) continue;
        if (!all) check_reach(*running[at]);
        for (Block &block : running[at]->blocks) {
            count_end(block);
            forget_copies(block);
            forget_columns(block);
            end_tiles(block);
            forget_works(block);
            for (Fiber &fiber : block.fibers)
                if (fiber.started && !fiber.finished) machine.stacks.give(fiber.stack);
            machine.ready -= block.ready;
            machine.blocks.erase(std::find(machine.blocks.begin(), machine.blocks.end(), &block));
        }
        machine.idle.push_back(std::move(running[at]));
        running.erase(running.begin() + (std::ptrdiff_t)at);
    }
}

/* ---- nothing can run ------------------------------------------------------------------------------------------------- */

inline bool same_wait(const Fiber &a, const Fiber &b) {
    if (a.wait != b.wait || a.finished != b.finished) return false;
    if (a.wait == Wait::phase) return a.phases == b.phases;
    return a.wait == Wait::gate ? a.gate == b.gate : a.wait != Wait::lanes || (a.warp == b.warp && a.mask == b.mask && a.together == b.together);
}

/* Two lanes of a warp that wait for each other with different masks, or for different things. */
inline bool report_masks(const Block &block) {
    for (const Fiber &one : block.fibers) {
        if (one.wait != Wait::lanes) continue;
        for (unsigned lane = 0; lane < LANES; ++lane) {
            if (!((one.mask & one.warp->live) >> lane & 1)) continue;
            const Fiber &other = lane_of(one, lane);
            if (other.wait != Wait::lanes || same_wait(one, other)) continue;
            found(Fault::wrong_mask, party(one, waiting_at(one)), party(other, waiting_at(other)));
            return true;
        }
    }
    return false;
}

/* A thread that waits, and one that does not wait with it: at another barrier if there is one, else one that ended. */
inline void report_deadlock(const Block &block) {
    const Fiber *first = nullptr, *elsewhere = nullptr;
    for (const Fiber &fiber : block.fibers) {
        if (fiber.finished) continue;
        if (!first) first = &fiber;
        else if (!elsewhere && !same_wait(*first, fiber)) elsewhere = &fiber;
    }
    if (!first) return;
    if (!elsewhere) elsewhere = ended_thread(block);
    for (const Block &other : block.cluster->blocks) /* of its cluster, one that is somewhere else */
        for (const Fiber &fiber : other.fibers)
            if (!elsewhere && !same_wait(*first, fiber)) elsewhere = &fiber;
    found(Fault::deadlock, party(*first, waiting_at(*first)), elsewhere ? party(*elsewhere, waiting_at(*elsewhere)) : Party{});
}

inline void report_standstill() {
    for (const Block *block : machine.blocks)
        if (block->live != 0 && !report_masks(*block)) report_deadlock(*block);
}

/* ---- faults of the machine that runs us -------------------------------------------------------------------------------- */

/* While a grid runs, a touch of a stack's guard page, or of memory that is not there, ends the launch and not the process. */
class Signals {
  public:
    Signals() {
        running_ = this;
        thread_ = pthread_self();
        stack_t mine{};
        mine.ss_sp = memory_.data();
        mine.ss_size = memory_.size();
        sigaltstack(&mine, &stack_before_);
        struct sigaction action {};
        action.sa_sigaction = caught;
        action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
        sigaction(SIGSEGV, &action, &segv_before_);
        sigaction(SIGBUS, &action, &bus_before_);
    }
    ~Signals() {
        restore();
        sigaltstack(&stack_before_, nullptr);
    }
    Signals(const Signals &) = delete;
    Signals &operator=(const Signals &) = delete;

  private:
    std::vector<char> memory_ = std::vector<char>(64 << 10);
    stack_t stack_before_{};
    struct sigaction segv_before_ {}, bus_before_{};
    pthread_t thread_{};
    static inline Signals *running_ = nullptr;

    void restore() {
        sigaction(SIGSEGV, &segv_before_, nullptr);
        sigaction(SIGBUS, &bus_before_, nullptr);
    }

    /* Runs on a stack of its own and does not return: it switches to the launch's loop, as a fiber would. A fault that is no
       kernel's happens again, to whoever handled such faults before. */
    static void caught(int, siginfo_t *info, void *) {
        if (!machine.core.current || !pthread_equal(pthread_self(), running_->thread_)) {
            running_->restore();
            return;
        }
        bool overflow = machine.stacks.guards(info->si_addr);
        const char *what = overflow ? "used up its stack" : "touched memory that is not there";
        found(overflow ? Fault::stack_overflow : Fault::illegal_address, party(machine.current(), what));
        stop();
    }
};

/* ---- a launch -------------------------------------------------------------------------------------------------------- */

/* The arguments as the kernel's text takes them: where it is checked, pointers to global memory become views. */
class Arguments {
  public:
    Arguments(const Kernel &kernel, void **given, const std::vector<std::string> &names) : given_(given, given + kernel.parameter_count) {
        find_maps(kernel);
        if (!kernel.checked) return;
        views_.resize(kernel.parameter_count);
        pointers_.resize(kernel.parameter_count);
        names_.resize(kernel.parameter_count);
        for (unsigned at = 0; at < kernel.parameter_count; ++at)
            if (global(kernel.parameters[at])) attach(at, kernel.parameters[at], names);
        if (machine.options.detect)
            for (unsigned at = 0; at < kernel.parameter_count; ++at)
                if (global(kernel.parameters[at])) watch(kernel, at);
        for (auto &[bytes, view] : machine.maps)
            if (view.watched) show_history(view);
    }

    void **data() { return given_.data(); }

  private:
    std::vector<void *> given_;
    std::vector<View> views_;
    std::vector<View *> pointers_;
    std::vector<std::string> names_;

    /* Tensor maps among what is passed by value. What they are of may be written by the engine. */
    void find_maps(const Kernel &kernel) {
        machine.maps.clear();
        for (unsigned at = 0; at < kernel.parameter_count; ++at) {
            Tensor tensor;
            if (kernel.parameters[at].kind != 'x' || kernel.parameters[at].size != 128 || !decode(given_[at], tensor)) continue;
            std::array<char, 128> bytes;
            std::memcpy(bytes.data(), given_[at], bytes.size());
            auto base = reinterpret_cast<char *>(tensor.base);
            Allocation *allocation = memory.find(base);
            long long left = allocation ? allocation->base + allocation->bytes - base : 0;
            bool watched = allocation && kernel.checked && machine.options.detect;
            View view{base, left / tensor.size, tensor.size, 1, Space::global, watched, allocation && kernel.checked && !allocation->written_before,
                      allocation && !allocation->name.empty() ? allocation->name.c_str() : "a tensor", nullptr, allocation};
            if (watched) allocation->history(tensor.size);
            machine.maps.emplace_back(bytes, view);
        }
    }

    /* Where the history of what a view shows begins. */
    static void show_history(View &view) {
        auto allocation = static_cast<Allocation *>(view.owner);
        view.shadow = allocation->cells.as<Cell>() + (std::size_t)(view.base - allocation->base) / allocation->grain;
        view.span = view.size / (unsigned)allocation->grain;
    }

    static bool global(const Parameter &parameter) { return parameter.kind == 'g' || parameter.kind == 'c'; }

    void attach(unsigned at, const Parameter &parameter, const std::vector<std::string> &names) {
        char *base = *static_cast<char **>(given_[at]);
        Allocation *allocation = memory.find(base);
        names_[at] = at < names.size() && !names[at].empty()            ? names[at]
                     : allocation && !allocation->name.empty() ? allocation->name
                                                               : "argument " + std::to_string(at);
        long long left = allocation ? allocation->base + allocation->bytes - base : 0;
        views_[at] = {base, left / parameter.size, parameter.size, 1, Space::global, false,
                      allocation && !allocation->written_before, names_[at].c_str(), nullptr, allocation};
        pointers_[at] = &views_[at];
        given_[at] = &pointers_[at];
        if (allocation && machine.options.detect && (written(parameter) || machine.order.dependent)) allocation->history(parameter.size);
    }

    static bool written(const Parameter &parameter) { return parameter.kind == 'g'; }

    /* Memory that no parameter may write needs no history, unless another launch that overlaps may. */
    void watch(const Kernel &kernel, unsigned at) {
        View &view = views_[at];
        auto allocation = static_cast<Allocation *>(view.owner);
        if (allocation && (machine.order.dependent || *kernel.overlaps)) view.watched = true;
        for (unsigned other = 0; allocation && other < kernel.parameter_count; ++other)
            if (views_[other].owner == allocation && written(kernel.parameters[other])) view.watched = true;
        for (const auto &[bytes, mapped] : machine.maps)
            if (allocation && mapped.owner == allocation) view.watched = true;
        if (!view.watched) return;
        allocation->history(view.size);
        show_history(view);
    }
};

inline void forget_sites() {
    for (Site *site : machine.sites) site->slot = -1;
    machine.sites.clear();
}

inline void land_some() {
    land_some_copy();
    land_some_tile();
    compute_some();
    launch_some(false);
}

inline void begin(const Options &options, bool dependent) {
    machine.turns = {};
    machine.random.state = options.seed;
    machine.stopped = false;
    machine.patience = 0;
    machine.poison = 0xff;
    if (options.order == Order::lockstep) machine.patience = 1;
    if (options.order == Order::random) {
        static const unsigned freedom[] = {8, 0, 4, 1};
        machine.freedom = freedom[options.seed % 4];
        machine.favours = 0;
        static const unsigned patience[] = {2, 5, 20, 100}; /* from a few accesses to whole statements */
        static const unsigned char poison[] = {0xff, 0x7f, 0xfb, 0x55};
        machine.patience = patience[machine.random.below(4)];
        machine.poison = poison[machine.random.below(4)];
    }
    refuel();
    if (machine.now > 0xf0000000u) { /* start the count again before it runs over */
        memory.forget_history();
        for (auto &cluster : machine.idle) cluster->blocks.clear();
        machine.now = 1;
        machine.order = {};
    }
    machine.launch = ++machine.now;
    order_launch(dependent);
    forget_sites();
    for (auto &cluster : machine.idle)
        for (Block &block : cluster->blocks) block.shared.clear();
}

inline std::size_t resident_clusters() {
    if (machine.options.order != Order::random) return 1;
    Dim shape = machine.core.cluster_dim;
    unsigned threads = machine.threads * shape.x * shape.y * shape.z;
    return std::max(2u, std::min(8u, 2048 / threads));
}

/* Runs a grid to its end, or until it is given up. False where it was. */
inline bool run_grid(
    const Kernel &kernel, Dim grid, Dim block, Dim cluster, void **given, const std::vector<std::string> &names, bool dependent
) {
    begin(machine.options, dependent);
    machine.kernel = &kernel;
    machine.core.grid_dim = grid;
    machine.core.block_dim = block;
    machine.core.cluster_dim = cluster;
    machine.threads = block.x * block.y * block.z;
    machine.warps = (machine.threads + LANES - 1) / LANES;
    counting = machine.options.count ? &counts[kernel.name] : nullptr;
    if (counting) ++counting->launches;
    machine.core.turn = counting ? count_turn : nullptr;
    Arguments arguments(kernel, given, names);
    machine.arguments = arguments.data();
    *kernel.core = &machine.core;
    Signals signals;
    Queue queue;
    std::size_t most = resident_clusters();
    while (!machine.stopped) {
        retire(false);
        while (!queue.empty() && machine.running.size() < most) queue.start_next();
        if (machine.running.empty()) break;
        Fiber *next = pick(nullptr);
        if (!next && (land_a_load() || launch_some(true))) continue;
        if (!next) {
            report_standstill();
            machine.stopped = true;
        } else {
            resume(machine.main, *next);
        }
    }
    retire(true);
    machine.core.current = nullptr;
    machine.ready = 0;
    return !machine.stopped;
}

/* ---- shared memory ----------------------------------------------------------------------------------------------------- */

constexpr unsigned MOST_ALIGNMENT = 1024;

/* An address at a multiple of `align`, and of no greater power of two, so that what needs more is seen. */
inline char *aligned_within(char *memory, unsigned align) {
    auto first = (reinterpret_cast<std::uintptr_t>(memory) + MOST_ALIGNMENT - 1) / MOST_ALIGNMENT * MOST_ALIGNMENT;
    return reinterpret_cast<char *>(first + (align < MOST_ALIGNMENT ? align : 0));
}

/* The kernel takes `bytes` of shared memory that it does not declare. */
inline void take_block(long long bytes) {
    if ((unsigned long long)bytes > machine.block_bytes)
        found(Fault::illegal_address, party(machine.current(), "needs more shared memory than the launch asked for"));
}

/* The most that a block of any device shares, and so what places may lie in. */
constexpr long long MOST_SHARED = 228 << 10;

/* Where an array lies that has a place of its own, in memory whose first address is that of what the block shares. */
inline char *place_of(Block &block, const Site &site, std::size_t bytes) {
    if (block.arena.empty()) block.arena.resize((MOST_SHARED + 2 * MOST_ALIGNMENT) / sizeof(std::max_align_t));
    return aligned_within(reinterpret_cast<char *>(block.arena.data()), MOST_ALIGNMENT) + std::min<long long>(site.offset, MOST_SHARED - (long long)bytes);
}

/* Arrays that are there already learn of one that has some of their bytes, and it of them. */
inline void acquaint(Block &block, SharedArray &array) {
    array.others.clear();
    auto end = [](const View &view) { return view.base + view.count * (long long)view.size; };
    for (const auto &other : block.shared) {
        if (other.get() == &array || other->fresh != block.start) continue;
        if (end(other->view) <= array.view.base || end(array.view) <= other->view.base) continue;
        array.others.push_back(other.get());
        other->others.push_back(&array);
    }
}

inline View *shared_array(Site *site) {
    Block &block = *machine.current().block;
    if (site->slot < 0) {
        site->slot = (int)machine.sites.size();
        machine.sites.push_back(site);
    }
    auto slot = (std::size_t)site->slot;
    while (block.shared.size() <= slot) {
        block.shared.push_back(std::make_unique<SharedArray>());
        block.shared.back()->slot = block.shared.size() - 1;
    }
    SharedArray &array = *block.shared[slot];
    if (array.fresh == block.start) return &array.view;
    array.fresh = block.start;
    array.flying.clear();
    array.reading.clear();
    array.read.clear();
    std::size_t bytes = (std::size_t)site->count * site->size;
    bool placed = site->offset >= 0 && (long long)bytes <= MOST_SHARED;
    if (!placed) array.memory.resize((bytes + 2 * MOST_ALIGNMENT) / sizeof(std::max_align_t) + 1);
    char *base = placed ? place_of(block, *site, bytes) : aligned_within(reinterpret_cast<char *>(array.memory.data()), site->align);
    std::memset(base, machine.poison, bytes);
    bool checked = machine.kernel->checked && machine.options.detect;
    if (checked) array.cells.resize((std::size_t)site->count);
    array.view = {base, site->count, site->size, 1, Space::shared,
                  checked && (machine.threads > 1 || block.cluster->blocks.size() > 1), checked, site->name, array.cells.data(), &array};
    acquaint(block, array);
    return &array.view;
}

/* The same array of another block of the cluster. */
inline View *shared_of(View *mine, unsigned rank) {
    Block &block = *machine.current().block;
    std::size_t slot = static_cast<SharedArray *>(mine->owner)->slot;
    if (rank >= block.cluster->blocks.size()) return mine;
    Block &other = block.cluster->blocks[rank];
    if (other.shared.size() <= slot || other.shared[slot]->fresh != other.start) {
        Thread *me = machine.core.current;
        machine.core.current = &other.fibers[0];
        shared_array(machine.sites[slot]);
        machine.core.current = me;
    }
    return &other.shared[slot]->view;
}

} // namespace tx_emu

#endif
