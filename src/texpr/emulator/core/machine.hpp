/* The state of a running grid: threads as fibers, their warps, blocks and clusters. One grid runs at a time. */
#ifndef TEXPR_EMULATOR_MACHINE_HPP
#define TEXPR_EMULATOR_MACHINE_HPP

#include <array>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <queue>
#include <string>
#include <unordered_map>
#include <vector>

#include "texpr_emulator_abi.h"
#include "fiber.hpp"
#include "tensor.hpp"

namespace tx_emu {

constexpr unsigned LANES = TX_WARP, MOST_THREADS = 1024, WORDS = MOST_THREADS / 64, GATES = 16;
static_assert(LANES >= 1 && LANES <= 32 && (LANES & (LANES - 1)) == 0, "a warp is a power of two of lanes, at most the bits of a mask");

constexpr unsigned ALL_LANES = ~0u >> (32 - LANES);

/* The lanes of a warp in a set of threads, 64 a word. */
inline unsigned lanes_in(const std::uint64_t *bits, unsigned warp) {
    return (unsigned)(bits[warp * LANES / 64] >> (warp * LANES % 64)) & ALL_LANES;
}

constexpr unsigned FIRST_AGENT = 0x8000; /* the "threads" that write for the engine: a barrier's agent is this plus its number */

/* A moment: one count for the whole process, moved on by each barrier. A later moment has a greater stamp, also between
   launches, so history need not be erased when a block or a launch begins. */
using Stamp = std::uint32_t;

/* Who touched an element, when, from which line. */
struct Access {
    Stamp stamp;
    std::uint32_t block;
    std::uint16_t thread, line : 15, engine : 1; /* a tensor core did it, and its thread has waited for that */
};

/* The history of an element: its last plain write, and of the reads and of the atomics since then two each that are as far
   apart as any two (see detect.hpp). `written` is when it was last written in any way. */
struct Cell {
    Access write, reads[2], atomics[2];
    Stamp written;
};

enum class Wait : unsigned char { none, gate, cluster, lanes, phase };

/* What lanes of a warp do together. */
enum class Together : unsigned char { barrier, index, up, down, exclusive_or, any, all, ballot };

struct Block;
struct Warp;
struct Cluster;
struct Phases;

/* What a barrier of the block touches comes first and fits into one line of the cache. */
struct alignas(64) Fiber : Thread {
    int emitted_line; /* of the barrier it waits at, in the emitted text */
    std::uint16_t index; /* in the block */
    std::uint8_t lane, gate;
    bool started, finished;
    bool awaited; /* it has waited for the launch before */
    Wait wait;
    Together together;
    Block *block;
    Context context;
    unsigned mask;
    int operand, width;
    std::uint64_t value; /* given to the other lanes; then what is got from them */
    unsigned turns;      /* how often it gave way to other threads, or as often as one that it met */
    Warp *warp;
    Phases *phases; /* that it waits for, if it waits for one */
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

/* What goes on while threads do. `start`: who started it, where; `into`, `from`: what is said of that to who touches what it
   writes or reads too early. `combines`: others may combine with the same memory. */
struct Flying {
    Access start;
    const char *into, *from;
    bool combines;
};

/* An asynchronous copy that its thread has not waited for. `place`: in `Machine::airborne`. */
struct Copy : Flying {
    CopyOrder order;
    unsigned group;
    bool landed;
    std::size_t place;
};

/* The copies of a thread, in order; those of one group have its number, and `committed` is the number of the open group. */
struct Copies {
    std::deque<Copy> flying;
    unsigned committed = 0;
};

/* A copy of the engine. `done`: elements of a load that have landed; all of a store's, or none. `held`: what a store has read. */
struct Tile : Flying {
    bool store, waited;
    Combine how;
    Element element;
    std::uint8_t fill;
    unsigned size, group;
    std::size_t done;
    View near, far;
    Block *block, *counted; /* that of the tile; that of the barrier, where it is another one */
    Phases *barrier;
    std::vector<Piece> pieces;
    std::vector<char> held;
};

/* The stores of a thread, as in `Copies`. */
struct Bulks {
    std::deque<Tile *> flying;
    unsigned committed = 0;
};

/* A matrix in shared memory, as in a `MatrixOrder`. */
struct Matrix {
    View *view;
    long long first;
    unsigned span;
    std::vector<long long> elements;
};

/* Registers of a lane as its tensor core has them: `value`. `given`: a fence named them; `giving`: the next one does. `flying`: how
   much there is to be done on them. `kept`: the lane has not taken them back since something was started on them, at `start`. */
struct Registers {
    char *first = nullptr;
    std::vector<char> value;
    bool given = false, giving = false, kept = false;
    unsigned flying = 0;
    Access start{};
};

/* What the lanes of a warp lend to their start of that number, as they had given it: by operand and lane. */
struct Loans {
    unsigned number = 0;
    std::vector<std::array<std::vector<char>, LANES>> operands;
};

/* What a tensor core is to do for a lane. `lent`: what the lane lent to it. */
struct Share : Flying {
    Work *work = nullptr;
    Registers *registers = nullptr;
    std::vector<Registers *> lent;
    std::shared_ptr<Loans> loans;
    unsigned group = 0;
    bool done = false;
    std::vector<Matrix> matrices;
};

/* All of a lane, as in `Copies`. */
struct Works {
    std::deque<Share> flying;
    unsigned committed = 0, lending = 0; /* `lending`: how many starts the lane lent registers to */
    std::deque<Registers> registers;
    std::vector<Registers *> lent; /* to the next start */
    std::shared_ptr<Loans> loans;
};

/* What a thread launched in tensor memory of `block`, `first` and `count` elements of it; or a commit, with the barrier that it arrives
   at, and, of a pair, that of the other block, `beside`. */
struct Launch : Flying {
    Work *work = nullptr;
    Block *block = nullptr;
    Phases *phases = nullptr, *beside = nullptr;
    View *view = nullptr;
    long long first = 0, count = 0;
    bool done = false;
    std::vector<Matrix> matrices;
    bool copies = false;
};

/* The columns of tensor memory that a block has taken, from `first` on. `before`: by thread, when it fenced off what it did there;
   `launcher`: by element, one more than the thread that launched its last value, with FAR_LAUNCHER for one of the other block of a
   pair, 0 where a thread stored it itself; `seen`: up to when it knew others and agents at its last fence "after"; `seen_far`: the
   same of threads of the other blocks of its cluster. `pair`: both blocks of a pair took them. */
constexpr std::uint16_t FAR_LAUNCHER = 0x8000;

struct Columns {
    View *view = nullptr;
    char *word = nullptr;
    unsigned first = 0;
    bool freed = false, pair = false;
    Access taker{};
    std::vector<std::vector<Stamp>> before, seen;
    std::vector<Stamp> seen_far;
    std::vector<std::uint16_t> launcher;
};

/* A load that has landed and that nobody has waited for. */
struct Unseen {
    Access start;
    long long index;
    const View *view;
};

/* A barrier in shared memory. `completed`: how many phases; of this one, `pending` arrivals of `count` and bytes. `fenced`: copies
   may use it. `known`: what is known, by thread and agent, to who has waited; `coming`: what those who came to this phase know;
   `far`, `far_coming`: the same of other blocks of the cluster, by their rank. */
struct Phases {
    bool made = false, fenced = false;
    const View *view = nullptr;
    long long index = 0;
    Access maker{};
    unsigned agent = 0, count = 0, pending = 0;
    long long expected = 0, arrived = 0;
    unsigned long long completed = 0;
    std::vector<unsigned> waiting;
    std::vector<Stamp> known, coming;
    std::vector<std::vector<Stamp>> far, far_coming;
    std::vector<Unseen> unseen;
};

/* `flying`, `reading`: by element, the copy that will write it, and the store that reads it; empty until one does. `others`: arrays
   of which some bytes are this one's, too. `read`: by element, the last read of each thread since the engine wrote it; empty where
   the block has no barrier for a copy. */
struct SharedArray {
    View view{};
    std::size_t slot = 0;
    std::vector<Cell> cells;
    std::vector<std::max_align_t> memory;
    std::vector<const Flying *> flying, reading;
    std::vector<std::vector<Access>> read;
    std::vector<SharedArray *> others;
    std::vector<std::unique_ptr<Phases>> phases; /* by element, where those are barriers */
    Stamp fresh = 0;
};

struct Tally; /* see count.hpp */

/* `known`: as in Warp, between warps; empty until a barrier of some warps only. */
struct Block {
    unsigned number, rank, size, live, ready;
    bool admitted, awaited; /* a thread has let the next launch start; has waited for the one before */
    Dim index;
    Cluster *cluster;
    std::uint64_t ready_bits[WORDS];
    std::vector<Fiber> fibers;
    std::vector<Warp> warps;
    Gate gates[GATES];
    Stamp start, base;
    std::vector<Stamp> known;
    std::vector<std::unique_ptr<SharedArray>> shared; /* by slot of their sites */
    std::vector<std::max_align_t> arena;              /* where those lie that have places of their own */
    std::shared_ptr<Tally> tally;
    std::vector<Copies> copies; /* by thread; empty until one starts a copy */
    std::vector<Phases *> barriers;
    unsigned agents = 0;
    std::vector<std::vector<Stamp>> met;    /* by thread: up to when it knows others and agents by barriers in shared memory */
    std::vector<std::vector<std::vector<Stamp>>> far; /* by thread and rank: the same of other blocks; empty until one arrives there */
    std::vector<Stamp> told;                /* by agent: up to when the other blocks of its cluster know it */
    std::vector<std::vector<Stamp>> fences; /* by thread: when it fenced off what it did from copies */
    std::vector<std::unique_ptr<Tile>> tiles;
    std::vector<Bulks> bulks; /* by thread; empty until one starts a store */
    std::vector<Works> works; /* by thread; empty until one has a tensor core do something */
    std::vector<std::deque<Launch>> launches; /* by thread; empty until one launches something in tensor memory */
    Columns columns;
    std::vector<std::shared_ptr<Loans>> loans; /* by warp: of the latest start */
};

/* The blocks that run together; without clusters, one. */
struct Cluster {
    std::vector<Block> blocks;
    unsigned live, arrived;
    bool relaxed; /* one that has arrived is relaxed */
    Stamp base, settled; /* when all knew all, and when all knew what engines had done */
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

/* A thread that could run when it had had so many turns. It comes first of those of fewest turns, by its place in its cluster. */
struct Turn {
    unsigned turns, place;
    Fiber *fiber;
    bool operator<(const Turn &other) const { return turns != other.turns ? turns > other.turns : place > other.place; }
};

/* Of the launch that runs: whether it may have begun before the one before it ended, and whether a thread has waited for that; up to
   when threads that have not know what earlier ones did, and between which moments others do not; up to when those of a dependent
   next one will. */
struct Order_of_launches {
    bool dependent = false, waited = false;
    Stamp known = 0, gap_from = 0, gap_to = 0, admitted = 0, launch = 0;
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
    std::priority_queue<Turn> turns;                     /* in lockstep, each of them, and some that can not or had turns since */
    bool stopped = false;                                /* the launch is given up */
    unsigned warps = 0, threads = 0;                     /* of a block */

    Stamp now = 1, launch = 1; /* when the launch began */
    Order_of_launches order;
    int fuel = INT_MAX;        /* accesses until another thread has its turn */
    unsigned patience = 0;     /* about how many accesses that is; 0: never */
    unsigned freedom = 0;      /* of 8 choices, how many are made among all threads; the others keep to a favourite */
    unsigned favourite_block = 0, favourite_warp = 0, favours = 0; /* until when it stays the favourite */
    unsigned char poison = 0xff;
    std::vector<Site *> sites; /* shared arrays met in this launch */
    std::vector<Copy *> airborne; /* copies that may land at any time; where order is not random, they land when waited for */
    unsigned launched = 0;        /* what threads have launched in tensor memory, and commits, that are to be done */
    unsigned shares = 0;          /* what tensor cores have to do for lanes */
    std::vector<Tile *> tiles;    /* that the engine is at work on, in order of their start */
    std::vector<std::pair<std::array<char, 128>, View>> maps; /* arguments that are tensor maps, and their tensors */
    unsigned long long block_bytes = ~0ull; /* of shared memory that the launch asked for */
    std::unordered_multimap<std::uintptr_t, const Flying *> sources; /* what reads them, by words of 4 bytes of global memory */
    std::unordered_multimap<std::uintptr_t, const Flying *> stored;  /* and what writes them */

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
