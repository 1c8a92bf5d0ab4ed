/* The emulator as one shared library: what a host calls (tx_emu_…), and CUDA's driver interface (driver.hpp). Compiled with
   -fvisibility=hidden, so that nothing else of it is seen. */
#include <cstdio>
#include <mutex>

#include "launch.hpp"

#define TX_API extern "C" __attribute__((visibility("default")))

namespace tx_emu {

constexpr int DONE = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, ILLEGAL_ADDRESS = 700, OUT_OF_RESOURCES = 701, LAUNCH_FAILED = 719;

struct Function {
    const Kernel *kernel;
    std::vector<std::string> names; /* of parameters, where known */
    int most_shared = 48 << 10;     /* bytes that a launch may ask for */
};

static std::mutex one_at_a_time;

static View *core_shared(Site *site) { return shared_array(site); }
static View *core_shared_of(View *view, unsigned rank) { return shared_of(view, rank); }
static View *core_shared_at(const void *address) { return shared_view_at(static_cast<const char *>(address)); }
static void core_barrier(int id, int threads, int line) { gate_barrier(id, threads, line); }
static void core_cluster_barrier(bool relaxed, int line) { cluster_barrier(relaxed, line); }
static void core_warp_barrier(unsigned mask, int line) { together(Together::barrier, mask, 0, 0, (int)LANES, line); }
static std::uint64_t core_shuffle(unsigned mask, Shuffle how, std::uint64_t value, int lane, int width, int line) {
    return together((Together)((int)Together::index + (int)how), mask, value, lane, width, line);
}
static unsigned core_vote(unsigned mask, Vote how, bool value, int line) {
    return (unsigned)together((Together)((int)Together::any + (int)how), mask, value, 0, (int)LANES, line);
}
static unsigned core_cluster_rank() { return machine.current().block->rank; }

static void connect() {
    Core &core = machine.core;
    core.read = touch<Act::read>;
    core.write = touch<Act::write>;
    core.atomic = touch<Act::atomic>;
    core.read_run = touch_run<Act::read>;
    core.write_run = touch_run<Act::write>;
    core.copy = start_copy;
    core.commit = commit_copies;
    core.wait = wait_for_copies;
    core.init_barrier = init_barrier;
    core.arrive = arrive;
    core.arrive_in = arrive_in;
    core.wait_phase = wait_phase;
    core.await_launches = await_launches;
    core.admit_launch = admit_launch;
    core.fence_made = fence_made;
    core.fence_async = fence_async;
    core.copy_tile = copy_tile;
    core.copy_run = copy_run;
    core.commit_stores = commit_stores;
    core.wait_for_stores = wait_for_stores;
    core.lend_registers = lend_registers;
    core.start_work = start_work;
    core.commit_work = commit_work;
    core.wait_for_work = wait_for_work;
    core.give_registers = give_registers;
    core.fence_registers = fence_registers;
    core.take_registers = take_registers;
    core.take_columns = take_columns;
    core.first_column = first_column;
    core.free_columns = free_columns;
    core.fence_columns = fence_columns;
    core.touch_column = touch_column;
    core.launch_work = launch_work;
    core.commit_columns = commit_columns;
    core.shared_block = take_block;
    core.atomic_at = touch_at;
    core.shared = core_shared;
    core.shared_of = core_shared_of;
    core.shared_at = core_shared_at;
    core.barrier = core_barrier;
    core.cluster_barrier = core_cluster_barrier;
    core.warp_barrier = core_warp_barrier;
    core.shuffle = core_shuffle;
    core.vote = core_vote;
    core.cluster_rank = core_cluster_rank;
}

static bool fits(Dim grid, Dim block, Dim cluster) {
    bool none = !grid.x || !grid.y || !grid.z || !block.x || !block.y || !block.z || !cluster.x || !cluster.y || !cluster.z;
    if (none || grid.x > 0x7fffffffu || grid.y > 65535 || grid.z > 65535) return false;
    if (block.x > MOST_THREADS || block.y > MOST_THREADS || block.z > 64) return false;
    if (grid.x % cluster.x || grid.y % cluster.y || grid.z % cluster.z) return false;
    bool together = grid.x == cluster.x && grid.y == cluster.y && grid.z == cluster.z;
    return together || (std::uint64_t)cluster.x * cluster.y * cluster.z <= 16;
}

/* Runs a grid; gives a code of the CUDA driver. The caller has the lock. */
static int launch(
    const Function &function, Dim grid, Dim block, Dim cluster, unsigned long long shared, void **arguments, bool dependent = false
) {
    if (!fits(grid, block, cluster)) return INVALID_VALUE;
    for (unsigned at = 0; at < function.kernel->parameter_count; ++at)
        if (!arguments || !arguments[at]) return INVALID_VALUE;
    if (block.x * block.y * block.z > MOST_THREADS) return OUT_OF_RESOURCES;
    if (machine.core.current) return LAUNCH_FAILED; /* from within a kernel */
    connect();
    machine.block_bytes = shared;
    unsigned long long before = reports.found();
    try {
        if (!run_grid(*function.kernel, grid, block, cluster, arguments, function.names, dependent)) return LAUNCH_FAILED;
    } catch (const std::bad_alloc &) {
        return OUT_OF_MEMORY;
    }
    if (!machine.options.fail || reports.found() == before) return DONE;
    return reports.saw(Fault::out_of_bounds) ? ILLEGAL_ADDRESS : LAUNCH_FAILED;
}

static std::size_t give(const std::string &text, char *buffer, std::size_t capacity) {
    if (buffer && capacity > 0) {
        std::size_t fits = std::min(text.size(), capacity - 1);
        std::memcpy(buffer, text.data(), fits);
        buffer[fits] = 0;
    }
    return text.size() + 1;
}

static int capability = 90;
static std::string refused; /* see tx_emu_refused */

} // namespace tx_emu

using namespace tx_emu;

/* ---- for hosts that know the emulator ----------------------------------------------------------------------------------- */

/* Sets an option of all later launches: "seed" (−1: in order, −2: lockstep, else random by that seed), "detect", "count", "fail"
   (whether a launch in which a fault is found fails), "capability" (90 for 9.0). 1 where there is no such option. */
TX_API int tx_emu_set(const char *name, long long value) {
    if (!name) return INVALID_VALUE;
    std::lock_guard<std::mutex> lock(one_at_a_time);
    std::string option = name;
    Options &options = machine.options;
    if (option == "seed") {
        options.order = value == -1 ? Order::in_order : value == -2 ? Order::lockstep : Order::random;
        options.seed = (std::uint64_t)value;
    } else if (option == "detect") options.detect = value != 0;
    else if (option == "count") options.count = value != 0;
    else if (option == "fail") options.fail = value != 0;
    else if (option == "capability") capability = (int)value;
    else return INVALID_VALUE;
    return DONE;
}

/* Lets kernels touch memory of the host: all of it written already, or none. Memory inside other memory may be registered. `name`
   is for reports; null: none. */
TX_API int tx_emu_register(void *pointer, std::size_t bytes, const char *name) {
    if (!pointer && bytes > 0) return INVALID_VALUE;
    std::lock_guard<std::mutex> lock(one_at_a_time);
    memory.add(pointer, bytes, name ? name : "", true);
    return DONE;
}
TX_API int tx_emu_register_unwritten(void *pointer, std::size_t bytes, const char *name) try {
    if (!pointer && bytes > 0) return INVALID_VALUE;
    std::lock_guard<std::mutex> lock(one_at_a_time);
    memory.add(pointer, bytes, name ? name : "", false);
    return DONE;
} catch (const std::bad_alloc &) {
    return OUT_OF_MEMORY;
}
TX_API int tx_emu_unregister(void *pointer) {
    std::lock_guard<std::mutex> lock(one_at_a_time);
    return memory.remove(pointer) ? DONE : INVALID_VALUE;
}

/* The faults found since they were last cleared, as JSON. Gives the bytes needed, the final 0 included. */
TX_API std::size_t tx_emu_reports(char *buffer, std::size_t capacity) {
    std::lock_guard<std::mutex> lock(one_at_a_time);
    return give(reports.json(), buffer, capacity);
}
TX_API void tx_emu_clear_reports(void) {
    std::lock_guard<std::mutex> lock(one_at_a_time);
    reports.clear();
}

/* The rule that the last map broke that was refused, with the field; empty where none was. */
TX_API std::size_t tx_emu_refused(char *buffer, std::size_t capacity) {
    std::lock_guard<std::mutex> lock(one_at_a_time);
    return give(refused, buffer, capacity);
}

/* What was counted since it was last cleared, by kernel, as JSON. */
TX_API std::size_t tx_emu_counts(char *buffer, std::size_t capacity) {
    std::lock_guard<std::mutex> lock(one_at_a_time);
    return give(counts_json(), buffer, capacity);
}
TX_API void tx_emu_clear_counts(void) {
    std::lock_guard<std::mutex> lock(one_at_a_time);
    counts.clear();
}

/* Names a parameter of a kernel, for reports. `function` is what cuModuleGetFunction gave. */
TX_API int tx_emu_name_argument(Function *function, unsigned at, const char *name) {
    std::lock_guard<std::mutex> lock(one_at_a_time);
    if (!function || !name) return INVALID_VALUE;
    if (at >= function->kernel->parameter_count) return INVALID_VALUE;
    function->names.resize(function->kernel->parameter_count);
    function->names[at] = name;
    return DONE;
}

/* {"checked": …, "parameters": [[kind, bytes], …]} */
TX_API std::size_t tx_emu_signature(const Function *function, char *buffer, std::size_t capacity) {
    if (!function) return give("", buffer, capacity);
    const Kernel &kernel = *function->kernel;
    std::string text = std::string("{\"checked\":") + (kernel.checked ? "true" : "false") + ",\"parameters\":[";
    for (unsigned at = 0; at < kernel.parameter_count; ++at) {
        text += at ? ",[\"" : "[\"";
        text += kernel.parameters[at].kind;
        text += "\"," + std::to_string(kernel.parameters[at].size) + "]";
    }
    return give(text + "]}", buffer, capacity);
}

/* cuLaunchKernel with clusters, and as much shared memory as the kernel likes. `shape`: grid, block and cluster, nine numbers. */
TX_API int tx_emu_launch(const Function *function, const unsigned *shape, void **arguments) {
    std::lock_guard<std::mutex> lock(one_at_a_time);
    if (!function || !shape) return INVALID_VALUE;
    Dim grid{shape[0], shape[1], shape[2]}, block{shape[3], shape[4], shape[5]}, cluster{shape[6], shape[7], shape[8]};
    return launch(*function, grid, block, cluster, ~0ull, arguments);
}

#include "driver.hpp"
