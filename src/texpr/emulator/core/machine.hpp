/* The state of a running grid: threads as fibers, their warps, blocks and clusters. One grid runs at a time. */
#ifndef TEXPR_EMULATOR_MACHINE_HPP
#define TEXPR_EMULATOR_MACHINE_HPP

#include <climits>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "texpr_emulator_abi.h"
#include "fiber.hpp"

namespace tx_emu {

constexpr unsigned LANES = 32, MOST_THREADS = 1024, WORDS = MOST_THREADS / 64, GATES = 16;

/* A moment: one count for the whole process, moved on by each barrier. A later moment has a greater stamp, also between
   launches, so history need not be erased when a block or a launch begins. */
using Stamp = std::uint32_t;

/* Who touched an element, when, from which line. */
struct Access {
    Stamp stamp;
    std::uint32_t block;
    std::uint16_t thread, line;
};

/* The history of an element: its last plain write, and of the reads and of the atomics since then two each that are as far
   apart as any two (see detect.hpp). `written` is when it was last written in any way. */
struct Cell {
    Access write, reads[2], atomics[2];
    Stamp written;
};

enum class Wait : unsigned char { none, gate, cluster, lanes };

/* What lanes of a warp do together. */
enum class Together : unsigned char { barrier, index, up, down, exclusive_or, any, all, ballot };

struct Block;
struct Warp;
struct Cluster;

/* What a barrier of the block touches comes first and fits into one line of the cache. */
struct alignas(64) Fiber : Thread {
    int emitted_line; /* of the barrier it waits at, in the emitted text */
    std::uint16_t index; /* in the block */
    std::uint8_t lane, gate;
    bool started, finished;
    Wait wait;
    Together together;
    Block *block;
    Context context;
    unsigned mask;
    int operand, width;
    std::uint64_t value; /* given to the other lanes; then what is got from them */
    unsigned turns;      /* how often it gave way to other threads, or as often as one that it met */
    Warp *warp;
    Stack stack;
};

/* `known[a * LANES + b]`: up to when lane a knows what lane b did, where that is later than `base`, up to when every lane
   knows every other. Empty until a barrier of some lanes only. */
struct Warp {
    unsigned born, live, waiting;
    Stamp base;
    std::vector<Stamp> known;
};

/* A barrier of a block: 0 is __syncthreads, whose `threads` is 0. */
struct Gate {
    unsigned arrived = 0;
    int threads = 0, line = 0;
    std::uint16_t first = 0, other = 0; /* two that arrived; where `mixed`, `other` came to another barrier than `first` */
    bool mixed = false;
    std::uint64_t who[WORDS] = {};
};

/* An asynchronous copy that its thread has not waited for. `start`: who started it, where. `place`: in `Machine::airborne`. */
struct Copy {
    CopyOrder order;
    Access start;
    unsigned group;
    bool landed;
    std::size_t place;
};

/* The copies of a thread, in order; those of one group have its number, and `committed` is the number of the open group. */
struct Copies {
    std::deque<Copy> flying;
    unsigned committed = 0;
};

/* `flying`: by element, the copy that will write it; empty until one does. */
struct SharedArray {
    View view{};
    std::size_t slot = 0;
    std::vector<Cell> cells;
    std::vector<std::max_align_t> memory;
    std::vector<const Copy *> flying;
    Stamp fresh = 0;
};

struct Tally; /* see count.hpp */

/* `known`: as in Warp, between warps; empty until a barrier of some warps only. */
struct Block {
    unsigned number, rank, size, live, ready;
    Dim index;
    Cluster *cluster;
    std::uint64_t ready_bits[WORDS];
    std::vector<Fiber> fibers;
    std::vector<Warp> warps;
    Gate gates[GATES];
    Stamp start, base;
    std::vector<Stamp> known;
    std::vector<std::unique_ptr<SharedArray>> shared; /* by slot of their sites */
    std::shared_ptr<Tally> tally;
    std::vector<Copies> copies; /* by thread; empty until one starts a copy */
};

/* The blocks that run together; without clusters, one. */
struct Cluster {
    std::vector<Block> blocks;
    unsigned live, arrived;
    Stamp base;
};

enum class Order : unsigned char { in_order, lockstep, random };

struct Options {
    Order order = Order::in_order;
    std::uint64_t seed = 0;
    bool detect = true, count = false, fail = true;
};

/* Pseudo-random numbers: SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014). */
struct Random {
    std::uint64_t state = 0;
    std::uint64_t next() {
        std::uint64_t z = (state += 0x9e3779b97f4a7c15u);
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        return z ^ (z >> 31);
    }
    unsigned below(unsigned bound) { return (unsigned)(((next() >> 32) * bound) >> 32); }
};

struct Machine {
    Core core{};
    Options options;
    Random random;
    Stacks stacks;
    Context main;
    const Kernel *kernel = nullptr;
    void **arguments = nullptr;

    std::vector<std::unique_ptr<Cluster>> running, idle; /* clusters, kept for their memory */
    std::vector<Block *> blocks;                         /* of those that run */
    unsigned ready = 0;                                  /* threads that can run, in all blocks */
    bool stopped = false;                                /* the launch is given up */
    unsigned warps = 0, threads = 0;                     /* of a block */

    Stamp now = 1, launch = 1; /* when the launch began */
    int fuel = INT_MAX;        /* accesses until another thread has its turn */
    unsigned patience = 0;     /* about how many accesses that is; 0: never */
    unsigned freedom = 0;      /* of 8 choices, how many are made among all threads; the others keep to a favourite */
    unsigned favourite_block = 0, favourite_warp = 0, favours = 0; /* until when it stays the favourite */
    unsigned char poison = 0xff;
    std::vector<Site *> sites; /* shared arrays met in this launch */
    std::vector<Copy *> airborne; /* copies that may land at any time; where order is not random, they land when waited for */
    std::unordered_multimap<std::uintptr_t, const Copy *> sources; /* copies by the words of 4 bytes that they read */

    Fiber &current() { return *static_cast<Fiber *>(core.current); }
};

inline Machine machine;

inline Dim thread_of(unsigned index) {
    Dim shape = machine.core.block_dim;
    return {index % shape.x, index / shape.x % shape.y, index / shape.x / shape.y};
}

inline Dim block_of(unsigned number) {
    Dim shape = machine.core.grid_dim;
    return {number % shape.x, number / shape.x % shape.y, number / shape.x / shape.y};
}

} // namespace tx_emu

#endif
