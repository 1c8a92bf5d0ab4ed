/* The interface between a kernel compiled for the emulator and the emulator's core. Both include this file. */
#ifndef TEXPR_EMULATOR_ABI_H
#define TEXPR_EMULATOR_ABI_H

#include <cstdint>

/* Lanes of a warp: 32, as every CUDA device has, unless the kernel's text or the build of the core defines another number. */
#ifndef TX_WARP
#define TX_WARP 32u
#endif

namespace tx_emu {

constexpr unsigned ABI = 13;

struct Dim {
    unsigned x, y, z;
};

enum class Space : unsigned char { global, shared, local };

/* An array as one thread, one block or one launch sees it. `shadow` is the core's, but for local arrays: there, one byte an
   element, not 0 once written. */
struct View {
    char *base;
    long long count; /* elements */
    unsigned size;   /* bytes of an element */
    unsigned span;   /* cells of history that an element has */
    Space space;
    bool watched; /* a thread's access can race with another's: the core keeps its history */
    bool unsure;  /* not all of it was written before the launch */
    const char *name;
    void *shadow;
    void *owner;
};

/* A shared array of a kernel's text; `slot` is assigned by the core on first use. Its address is a multiple of `align` bytes;
   it lies `offset` bytes into what the block shares, where others may lie too, or, with −1, by itself. */
struct Site {
    const char *name;
    unsigned size;
    long long count;
    int slot;
    unsigned align;
    long long offset;
};

struct Thread {
    Dim thread_index, block_index;
    int line; /* of the .te */
};

enum class Shuffle : unsigned char { index, up, down, exclusive_or };
enum class Vote : unsigned char { any, all, ballot };

/* Elements to be copied asynchronously; zeros where not `when`. `changing`: the kernel may write the source. */
struct CopyOrder {
    View *target;
    long long at;
    View *source;
    long long from;
    int count;
    bool when, changing;
};

/* A tile to be copied between `near[place]` and the box at coordinates `at` of a tensor. With a barrier it is loaded, else stored;
   `how`: 0, or what it is combined by: add, min, max, and, or, xor. `mask`: the blocks of the cluster that a load goes to, at the
   same place in each, a bit a rank; 0: to this block alone. */
struct TileOrder {
    View *near;
    long long place;
    const void *map; /* 128 bytes */
    unsigned rank;
    long long at[5];
    View *barrier;
    long long barrier_at;
    unsigned char how;
    unsigned mask;
    unsigned more;        /* the number of offsets of a filter, or of rows */
    long long further[4]; /* offsets, W first, of a map in im2col mode; rows of a matrix otherwise */
    bool led;             /* the barrier is the first block's of a pair */
};

/* A run of elements between shared and global memory; loaded with a barrier, else stored: combined by `how`, as in a `TileOrder`, as
   elements of the type that the driver numbers so. */
struct RunOrder {
    View *near;
    long long place;
    View *far;
    long long from, count;
    View *barrier;
    long long barrier_at;
    unsigned char how, element;
};

/* A matrix in shared memory that a tensor core reads: its elements, by their numbers in the array; where it starts; the bytes within
   which chunks of it move. */
struct MatrixOrder {
    View *view;
    const long long *elements;
    unsigned count;
    long long first;
    unsigned span;
};

/* What a tensor core does for a lane, on its registers. */
struct Work {
    /* Before it runs: for each operand that is read in registers those of the lanes of the warp, null of one that lent none. */
    virtual void borrow(const void *const *const *) {}
    virtual void run(void *registers) = 0;
    virtual void end() = 0; /* it is needed no more */

  protected:
    ~Work() = default;
};

/* Work on `count` registers of a lane, from `at` on, that reads matrices, and registers that lanes have lent before. */
struct WorkOrder {
    Work *work;
    View *registers;
    long long at;
    int count;
    const MatrixOrder *matrices;
    unsigned number;
};

/* Columns of tensor memory, from `column` on. */
struct ColumnOrder {
    unsigned column;
    int count;
};

/* Work that a thread launches on `count` columns of tensor memory, from `column` on, and that reads others; `copies`: it copies.
   `pair`: 1 or 2 where it is the first or the second block of a pair whose columns they are, else 0. */
struct LaunchOrder {
    Work *work;
    unsigned column;
    int count;
    const MatrixOrder *matrices;
    unsigned number;
    const ColumnOrder *reads;
    unsigned others;
    bool copies;
    unsigned pair;
};

/* `line` is a line of the emitted text: it identifies a barrier. */
struct Core {
    Thread *current;
    Dim block_dim, grid_dim, cluster_dim;
    void *(*read)(View *view, long long index);
    void *(*write)(View *view, long long index);
    void *(*atomic)(View *view, long long index);
    void *(*read_run)(View *view, long long index, int count); /* of consecutive elements, at once */
    void *(*write_run)(View *view, long long index, int count);
    void (*copy)(const CopyOrder &order);
    void (*commit)();
    void (*wait)(int pending);
    void (*init_barrier)(View *view, long long index, unsigned count);
    void (*arrive)(View *view, long long index, long long bytes);
    void (*arrive_in)(View *view, long long index, unsigned rank);
    void (*wait_phase)(View *view, long long index, int parity);
    void (*await_launches)();
    void (*admit_launch)();
    void (*fence_made)();
    void (*fence_async)();
    void (*copy_tile)(const TileOrder &order);
    void (*copy_run)(const RunOrder &order);
    void (*commit_stores)();
    void (*wait_for_stores)(int pending, bool read);
    void (*lend_registers)(View *view, long long at, int count);
    void (*start_work)(const WorkOrder &order);
    void (*commit_work)();
    void (*wait_for_work)(int pending);
    void (*give_registers)(View *view, long long at, int count);
    void (*fence_registers)();
    void (*take_registers)(View *view, long long at, int count);
    void (*take_columns)(View *word, long long at, View *columns, bool pair);
    unsigned (*first_column)(View *word, long long at);
    void (*free_columns)(unsigned first, long long count, bool pair);
    void (*fence_columns)(bool after);
    void *(*touch_column)(unsigned column, unsigned lane, bool write);
    void (*launch_work)(const LaunchOrder &order);
    void (*commit_columns)(View *barriers, long long at, bool pair);
    void (*shared_block)(long long bytes); /* dynamic shared memory of the launch */
    void *(*atomic_at)(void *address, unsigned size);
    View *(*shared)(Site *site);
    View *(*shared_of)(View *view, unsigned rank);
    View *(*shared_at)(const void *address);
    void (*barrier)(int id, int threads, int line);
    void (*cluster_barrier)(bool relaxed, int line);
    void (*warp_barrier)(unsigned mask, int line);
    std::uint64_t (*shuffle)(unsigned mask, Shuffle how, std::uint64_t value, int lane, int width, int line);
    unsigned (*vote)(unsigned mask, Vote how, bool value, int line);
    unsigned (*cluster_rank)();
    void (*turn)(); /* the end of a loop iteration; null if counting is off */
};

/* kind: 'g' global memory, 'c' the same read only, 'f' float, 'i' signed, 'u' unsigned, 'x' another type by value. */
struct Parameter {
    char kind;
    unsigned size;
};

/* One kernel, under the symbol NAME__emu_kernel. `core` is its pointer to the core. */
struct Kernel {
    unsigned abi, lanes; /* of a warp, as the text assumes */
    bool checked;
    unsigned parameter_count;
    const Parameter *parameters;
    const char *name, *source;
    void (*entry)(void **arguments);
    Core **core;
    bool const *overlaps; /* whether launches of the text's kernels may overlap */
};

} // namespace tx_emu

#endif
