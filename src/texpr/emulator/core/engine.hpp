/* The engine that copies tiles. A copy may be done at any time after its start: in order and in lockstep when no thread can run
   or a thread waits for it, else when the seed says. PTX ISA, "cp.async.bulk.tensor", "cp.reduce.async.bulk.tensor",
   "cp.async.bulk", "Async proxy".

   Until a load is done its tile holds what no program means to read, and nobody may touch it; then it was written by the agent of
   its barrier (phases.hpp). Of a store nobody may write the tile, or touch what is stored, until its thread has waited. */
#ifndef TEXPR_EMULATOR_ENGINE_HPP
#define TEXPR_EMULATOR_ENGINE_HPP

#include "copies.hpp"
#include "phases.hpp"

namespace tx_emu {

constexpr std::size_t NEVER = ~(std::size_t)0;

inline long long element_of(const View &view, const char *address) { return (address - view.base) / (long long)view.size; }

inline SharedArray &array_of(const View &view) { return *static_cast<SharedArray *>(view.owner); }

/* ---- what may not be touched meanwhile ------------------------------------------------------------------------------------ */

inline void mark(std::vector<const Flying *> &marks, const View &view, const char *near, const Flying *flying) {
    marks.resize((std::size_t)view.count);
    marks[(std::size_t)element_of(view, near)] = flying;
}

inline void unmark(std::vector<const Flying *> &marks, const View &view, const char *near, const Flying &flying) {
    if (marks.empty()) return;
    const Flying *&here = marks[(std::size_t)element_of(view, near)];
    if (here == &flying) here = nullptr;
}

inline void forget_word(std::unordered_multimap<std::uintptr_t, const Flying *> &words, std::uintptr_t word, const Flying &flying) {
    auto [from, end] = words.equal_range(word);
    for (auto at = from; at != end; ++at)
        if (at->second == &flying) {
            words.erase(at);
            return;
        }
}

template <class See> void each_word(const Tile &tile, See see) {
    for (const Piece &piece : tile.pieces) {
        if (!piece.far) continue;
        auto first = reinterpret_cast<std::uintptr_t>(piece.far);
        for (std::uintptr_t word = first / 4; word <= (first + tile.size - 1) / 4; ++word) see(word);
    }
}

inline void watch(Tile &tile) {
    if (!machine.options.detect || !tile.near.watched) return;
    SharedArray &array = array_of(tile.near);
    for (const Piece &piece : tile.pieces)
        if (!tile.store || piece.far) mark(tile.store ? array.reading : array.flying, tile.near, piece.near, &tile);
    auto &words = tile.store ? machine.stored : machine.sources;
    if (tile.far.watched) each_word(tile, [&](std::uintptr_t word) { words.emplace(word, &tile); });
}

/* Its tile may be written again. */
inline void forget_tile(Tile &tile) {
    if (!machine.options.detect || !tile.near.watched) return;
    SharedArray &array = array_of(tile.near);
    for (const Piece &piece : tile.pieces) unmark(tile.store ? array.reading : array.flying, tile.near, piece.near, tile);
}

/* Its tensor may be touched again. */
inline void forget_tensor(Tile &tile) {
    auto &words = tile.store ? machine.stored : machine.sources;
    if (!words.empty()) each_word(tile, [&](std::uintptr_t word) { forget_word(words, word, tile); });
}

/* ---- doing it ------------------------------------------------------------------------------------------------------------- */

/* The threads of the block have all ended, and its shared memory is no one's: what `starter` copies there goes astray. */
inline void check_alive(const Tile &tile, Party starter) {
    if (tile.block->live == 0)
        found(Fault::early_exit, tile.near, element_of(tile.near, tile.pieces[0].near), starter, party(tile.block->fibers[0], "had ended"));
}

/* The next elements of a load arrive: as many as the barrier still waits for, and if it waits for fewer, the rest later. */
inline void land_load(Tile &tile) {
    Phases &phases = *tile.barrier;
    std::size_t left = tile.pieces.size() - tile.done, now = left;
    long long wanted = phases.expected - phases.arrived;
    if (wanted > 0 && wanted < (long long)(left * tile.size)) now = std::max<std::size_t>(1, (std::size_t)wanted / tile.size);
    SharedArray &array = array_of(tile.near);
    if (tile.done == 0) check_alive(tile, party(tile.start, "copied into it"));
    Block &counted = tile.counted ? *tile.counted : *tile.block; /* where the barrier is */
    if (counted.live == 0)
        found(Fault::early_exit, *phases.view, phases.index, party(tile.start, "copied, and counts at its barrier"), party(counted.fibers[0], "had ended"));
    Access agent = tile.start;
    agent.block = counted.number;
    agent.stamp = machine.now;
    agent.thread = (std::uint16_t)(FIRST_AGENT + phases.agent);
    for (std::size_t at = tile.done; at < tile.done + now; ++at) {
        const Piece &piece = tile.pieces[at];
        if (piece.far) std::memcpy(piece.near, piece.far, tile.size);
        else for (unsigned byte = 0; byte < tile.size; ++byte) piece.near[byte] = (char)(tile.fill == 0 ? 0 : byte % 2 ? 0x7f : 0xff);
        unmark(array.flying, tile.near, piece.near, tile);
        if (tile.near.watched) array.cells[(std::size_t)element_of(tile.near, piece.near)].write = agent;
    }
    tile.done += now;
    if (tile.done == tile.pieces.size()) {
        forget_tensor(tile);
        phases.unseen.push_back({tile.start, element_of(tile.near, tile.pieces[0].near), &tile.near});
    }
    complete_bytes(phases, counted, (long long)(now * tile.size));
}

/* A store has read its tile. */
inline void read_tile(Tile &tile) {
    if (!tile.held.empty()) return;
    tile.held.resize(tile.pieces.size() * tile.size);
    for (std::size_t at = 0; at < tile.pieces.size(); ++at) std::memcpy(&tile.held[at * tile.size], tile.pieces[at].near, tile.size);
}

inline void land_store(Tile &tile) {
    if (tile.done == tile.pieces.size()) return;
    read_tile(tile);
    tile.done = tile.pieces.size();
    for (std::size_t at = 0; at < tile.pieces.size(); ++at) {
        char *far = tile.pieces[at].far;
        if (!far) continue;
        if (tile.how == Combine::none) std::memcpy(far, &tile.held[at * tile.size], tile.size);
        else combine(tile.how, tile.element, far, &tile.held[at * tile.size]);
    }
}

/* A copy goes on; when it is done the engine has it no more. */
inline void land_tile(Tile &tile) {
    if (tile.store) land_store(tile);
    else land_load(tile);
    if (tile.done == tile.pieces.size()) machine.tiles.erase(std::find(machine.tiles.begin(), machine.tiles.end(), &tile));
}

/* Now and then a copy goes on. */
inline void land_some_tile() {
    if (machine.options.order == Order::random && !machine.tiles.empty() && machine.random.below(2) == 0)
        land_tile(*machine.tiles[machine.random.below((unsigned)machine.tiles.size())]);
}

/* No thread can run: a copy that was started first goes on. False where there is none. */
inline bool land_a_load() {
    for (Tile *tile : machine.tiles)
        if (!tile->store) return land_tile(*tile), true;
    return false;
}

/* ---- starting ------------------------------------------------------------------------------------------------------------- */

inline void bad_tensor(const char *what) { found(Fault::bad_tensor, party(machine.current(), what)); }

inline bool check_far(View &far, const Tile &tile, Act act) {
    for (const Piece &piece : tile.pieces) {
        if (!piece.far) continue;
        long long index = element_of(far, piece.far);
        if (piece.far < far.base || !inside(far, index)) return outside(far, index, act), false;
    }
    if (!machine.options.detect) return true;
    for (const Piece &piece : tile.pieces) {
        if (!piece.far) continue;
        long long index = element_of(far, piece.far);
        if (act == Act::read) check_element<Act::read>(far, index);
        else if (act == Act::write) check_element<Act::write>(far, index);
        else check_element<Act::atomic>(far, index);
    }
    return true;
}

/* Reports what a thread did at an element unless it came before the engine, by a fence of its own that this thread knows of. */
inline void check_fence(const Tile &tile, long long index, const Access &past, Act act) {
    const Fiber &me = machine.current();
    const Block &block = tile.block ? *tile.block : *me.block;
    if (past.stamp < array_of(tile.near).fresh || past.block != block.number || past.thread >= FIRST_AGENT) return;
    if (past.thread < block.fences.size())
        for (Stamp fence : block.fences[past.thread]) {
            Access at = past;
            at.stamp = fence;
            if (fence >= past.stamp && known_to(me, at)) return;
        }
    const char *starts = tile.store ? "stored from it" : "started a copy into it";
    const char *who = act == Act::read ? "reader" : "writer";
    found(Fault::missing_fence, tile.near, index, party(past, ACTS[(int)act]),
          party(me, lasting(std::string(starts) + ", and no fence of the " + who + " is between")));
}

/* The same of all that threads did at an element, which a load will write, since the last one did; `written`: the last write. */
inline void check_fences(const Tile &tile, long long index, const Access &written) {
    SharedArray &array = array_of(tile.near);
    check_fence(tile, index, written, Act::write);
    if (array.read.empty()) return;
    auto &reads = array.read[(std::size_t)index];
    for (const Access &past : reads) check_fence(tile, index, past, Act::read);
    reads.clear();
}

inline bool check_near(View &near, const Tile &tile) {
    for (const Piece &piece : tile.pieces)
        if (piece.near < near.base || !inside(near, element_of(near, piece.near)))
            return outside(near, element_of(near, piece.near), tile.store ? Act::read : Act::write), false;
    if (!machine.options.detect) return true;
    for (const Piece &piece : tile.pieces) {
        long long index = element_of(near, piece.near);
        if (!tile.store) {
            Access written = near.watched ? array_of(near).cells[(std::size_t)index].write : Access{};
            check_element<Act::write>(near, index);
            if (near.watched) check_fences(tile, index, written);
        } else if (piece.far) {
            if (near.watched) check_fence(tile, index, array_of(near).cells[(std::size_t)index].write, Act::write);
            check_element<Act::read>(near, index);
        }
    }
    return true;
}

/* Hands a copy over to the engine; a load is its own block's, or that of the block that it goes to. */
inline void start(Tile made, View &near, View *far) {
    Fiber &me = machine.current();
    Block &block = made.block ? *made.block : *me.block;
    made.near = near;
    if (far) made.far = *far;
    Act act = !made.store ? Act::read : made.how == Combine::none ? Act::write : Act::atomic;
    if (!check_near(near, made) || (far && !check_far(*far, made, act))) return;
    if (made.store) {
        if (block.bulks.empty()) block.bulks.resize(block.size);
        made.group = block.bulks[me.index].committed;
    }
    if (counting) {
        ++(made.store ? counting->tile_stores : counting->tile_loads);
        counting->tile_bytes += made.pieces.size() * made.size;
    }
    block.tiles.push_back(std::make_unique<Tile>(std::move(made)));
    Tile &tile = *block.tiles.back();
    tile.block = &block;
    tile.start = access_of(me);
    tile.into = tile.store ? "stored into it and had not waited" : "started a copy into it whose phase had not completed";
    tile.from = tile.store ? "stored from it and had not waited" : "started a copy from it whose phase had not completed";
    tile.combines = tile.how != Combine::none;
    if (!tile.store)
        for (const Piece &piece : tile.pieces) std::memset(piece.near, machine.poison, tile.size);
    else block.bulks[me.index].flying.push_back(&tile);
    watch(tile);
    machine.tiles.push_back(&tile);
}

/* The view of a map's tensor, or null where no argument is this map. */
inline View *tensor_view(const void *map) {
    for (auto &[bytes, view] : machine.maps)
        if (std::memcmp(bytes.data(), map, bytes.size()) == 0) return &view;
    return nullptr;
}

inline bool aligned(const View &view, long long index, unsigned align) {
    bool right = reinterpret_cast<std::uintptr_t>(address_in(view, index)) % align == 0;
    if (!right) found(Fault::misaligned, view, index, party(machine.current(), "made a tile of it"));
    return right;
}

inline View *shared_of(View *mine, unsigned rank);

inline Phases *barrier_of_copy(View *view, long long index) {
    Phases *phases = barrier_at(*view, index, "copied with a barrier that was not made");
    if (phases && !phases->fenced)
        found(Fault::missing_fence, *view, index, party(phases->maker, "made the barrier"), party(machine.current(), "copied with it, and no fence of its maker is between"));
    return phases;
}

inline std::vector<Piece> pieces_of(const TileOrder &order, const Tensor &tensor, char *near) {
    if (tensor.columns) return column(tensor, order.at, order.further, near);
    return order.more ? four_rows(tensor, order.at[0], order.further, near) : pieces(tensor, order.at, near, order.barrier == nullptr);
}

/* The same box for several blocks of the cluster: to each its own copy, which lands, and arrives at its own barrier, when it likes. */
inline void multicast(const TileOrder &order, const Tensor &tensor, const Tile &like, View *far) {
    Cluster &cluster = *machine.current().block->cluster;
    for (unsigned rank = 0; rank < 32; ++rank) {
        if (!(order.mask >> rank & 1)) continue;
        if (rank >= cluster.blocks.size()) return bad_tensor("copied to a block that its cluster has not");
        View &near = *shared_of(order.near, rank), &barriers = *shared_of(order.barrier, rank);
        Tile tile = like;
        tile.block = &cluster.blocks[rank];
        tile.near = near;
        tile.pieces = pieces_of(order, tensor, address_in(near, order.place));
        check_alive(tile, party(machine.current(), "copied into it"));
        if ((tile.barrier = barrier_of_copy(&barriers, order.barrier_at))) start(std::move(tile), near, far);
    }
}

/* What is wrong with the coordinates of a copy for its map, or null. */
inline const char *misfit(const TileOrder &order, const Tensor &tensor) {
    bool rows = !tensor.columns && order.more > 0;
    if (order.rank != (rows ? 1u : tensor.rank)) return "gave another number of coordinates than its map has dimensions";
    if (tensor.columns && order.more != tensor.rank - 2u) return "gave another number of offsets than its map has dimensions of space";
    if (tensor.columns && !order.barrier) return "stored a column of pixels";
    if (rows && (tensor.rank != 2 || tensor.box[1] != 1 || tensor.interleave)) return "copied rows by a map that is not of rows";
    for (unsigned at = 0; rows && at < order.more; ++at)
        for (unsigned other = 0; !order.barrier && other < at; ++other)
            if (order.further[at] == order.further[other] && order.further[at] >= 0 && order.further[at] <= (long long)tensor.last[1])
                return "stored two rows of a tile to one of the matrix";
    for (unsigned at = 0; at < order.rank; ++at)
        if (order.at[at] < INT32_MIN || order.at[at] > INT32_MAX) return "gave a coordinate beyond 32 bits";
    /* Found on an H100: texpr/tma/rules.py. CUDA Programming Guide, "Using TMA to transfer multi-dimensional arrays". */
    if (!tensor.interleave && order.at[0] * (long long)tensor.size % 16) return "began a box within 16 bytes, an illegal instruction";
    for (unsigned at = 0; !order.barrier && at < order.rank; ++at)
        if (order.at[at] < 0) return "stored a box that begins before the tensor, an illegal instruction";
    const long long most = tensor.rank == 3 ? 65535 : tensor.rank == 4 ? 255 : 31;
    for (unsigned at = 0; tensor.columns && at < order.more; ++at) {
        if (order.further[at] < 0 || order.further[at] > most) return "gave an offset beyond the range of its rank";
        long long past = (long long)tensor.last[at + 1] + tensor.upper[at];
        if (order.at[at + 1] < tensor.lower[at] || order.at[at + 1] > past) return "began a column outside of its bounding box";
    }
    return nullptr;
}

inline void copy_tile(const TileOrder &order) {
    before_access();
    Tensor tensor;
    View *far = tensor_view(order.map), &near = *order.near;
    if (!decode(order.map, tensor) || !far) return bad_tensor("used a map that was not encoded");
    if (near.size != tensor.size) return bad_tensor("copied elements of another size than its map has");
    if (const char *wrong = misfit(order, tensor)) return bad_tensor(wrong);
    bool rows = !tensor.columns && order.more > 0; /* four are no whole period of a swizzle, and may begin within one */
    if (!aligned(near, order.place, tensor.swizzle && !rows ? tensor.swizzle * 8u : 128u)) return;
    Tile tile{};
    tile.store = order.barrier == nullptr;
    tile.how = (Combine)order.how;
    tile.element = (Element)tensor.element;
    tile.fill = tensor.fill;
    tile.size = tensor.size;
    if (!combines(tile.how, tile.element)) return bad_tensor("combined elements of a type that the engine does not combine so");
    if (order.mask != 0) return multicast(order, tensor, tile, far);
    Block &block = *machine.current().block;
    View *barriers = order.led ? shared_of(order.barrier, block.rank & ~1u) : order.barrier;
    if (order.led) tile.counted = &block.cluster->blocks[block.rank & ~1u];
    if (!tile.store && !(tile.barrier = barrier_of_copy(barriers, order.barrier_at))) return;
    tile.pieces = pieces_of(order, tensor, address_in(near, order.place));
    start(std::move(tile), near, far);
}

inline void copy_run(const RunOrder &order) {
    before_access();
    View &near = *order.near, &far = *order.far;
    Tile tile{};
    tile.store = order.barrier == nullptr;
    tile.size = near.size;
    tile.how = (Combine)order.how;
    tile.element = (Element)order.element;
    if (!combines(tile.how, tile.element)) return bad_tensor("combined elements of a type that the engine does not combine so");
    if (tile.element == Element::f32) tile.element = Element::f32_ftz; /* PTX ISA, "cp.reduce.async.bulk": ".add.f32" */
    if (order.count <= 0 || order.count * (long long)tile.size % 16) return bad_tensor("copied a run that is not whole chunks of 16 bytes");
    if (!aligned(near, order.place, 16) || !aligned(far, order.from, 16)) return;
    if (!tile.store && !(tile.barrier = barrier_of_copy(order.barrier, order.barrier_at))) return;
    for (long long at = 0; at < order.count; ++at)
        tile.pieces.push_back({address_in(near, order.place + at), address_in(far, order.from + at)});
    start(std::move(tile), near, &far);
}

/* ---- fences and waits ----------------------------------------------------------------------------------------------------- */

inline void fence_async() {
    Fiber &me = machine.current();
    Block &block = *me.block;
    if (block.fences.empty()) block.fences.resize(block.size);
    block.fences[me.index].push_back(machine.now++);
}

inline void commit_stores() {
    Fiber &me = machine.current();
    if (!me.block->bulks.empty()) ++me.block->bulks[me.index].committed;
}

/* What a store did becomes what its thread did just now. */
inline void finish_reading(const Fiber &me, Tile &tile) {
    read_tile(tile);
    forget_tile(tile);
    if (tile.waited || !machine.options.detect || !tile.near.watched) return;
    Access done = tile.start;
    done.stamp = machine.now;
    for (const Piece &piece : tile.pieces) {
        if (!piece.far) continue;
        long long index = element_of(tile.near, piece.near);
        Check check{me, tile.near, index, Act::read, array_of(tile.near).fresh};
        check.keep(array_of(tile.near).cells[(std::size_t)index].reads, done);
    }
}

inline void finish_writing(const Fiber &me, Tile &tile) {
    if (tile.done != tile.pieces.size()) land_tile(tile);
    forget_tensor(tile);
    if (!machine.options.detect || !tile.far.watched) return;
    Access done = tile.start;
    done.stamp = machine.now;
    for (const Piece &piece : tile.pieces) {
        if (!piece.far) continue;
        long long index = element_of(tile.far, piece.far);
        Check check{me, tile.far, index, Act::write, machine.launch};
        Cell *cells = static_cast<Cell *>(tile.far.shadow) + index * tile.far.span;
        for (unsigned part = 0; part < tile.far.span; ++part) {
            if (tile.combines) check.keep(cells[part].atomics, done);
            else cells[part].write = done;
        }
    }
}

inline void wait_for_stores(int pending, bool read) {
    before_access();
    Fiber &me = machine.current();
    if (me.block->bulks.empty()) return;
    Bulks &mine = me.block->bulks[me.index];
    for (Tile *tile : mine.flying) {
        if (tile->group + (unsigned)pending >= mine.committed) continue;
        finish_reading(me, *tile);
        tile->waited = true;
        if (!read) finish_writing(me, *tile);
    }
    if (!read)
        while (!mine.flying.empty() && mine.flying.front()->group + (unsigned)pending < mine.committed) mine.flying.pop_front();
}

/* The current thread ends: its stores must have read their tiles. */
inline void report_unread(const Fiber &me) {
    if (me.block->bulks.empty() || !machine.options.detect) return;
    for (const Tile *tile : me.block->bulks[me.index].flying)
        if (!tile->waited)
            found(Fault::abandoned_copy, tile->near, element_of(tile->near, tile->pieces[0].near),
                  party(tile->start, "stored from it and never waited"));
}

/* The block has ended, or is given up: loads that nobody waited for, and stores that write still. */
inline void end_tiles(Block &block) {
    for (Phases *phases : block.barriers)
        for (const Unseen &each : phases->unseen)
            if (!machine.stopped && machine.options.detect)
                found(Fault::abandoned_copy, *each.view, each.index, party(each.start, "copied into it, and nobody waited"));
    for (auto &tile : block.tiles) {
        bool flies = tile->done != tile->pieces.size();
        if (flies && !tile->store && !machine.stopped && machine.options.detect)
            found(Fault::abandoned_copy, tile->near, element_of(tile->near, tile->pieces[0].near),
                  party(tile->start, "copied into it, and nobody waited"));
        if (flies && tile->store && !machine.stopped) land_tile(*tile);
        forget_tile(*tile);
        forget_tensor(*tile);
        auto there = std::find(machine.tiles.begin(), machine.tiles.end(), tile.get());
        if (there != machine.tiles.end()) machine.tiles.erase(there);
    }
    for (const auto &array : block.shared) array->phases.clear();
    block.barriers.clear();
    block.tiles.clear();
    block.bulks.clear();
    block.fences.clear();
    block.met.clear();
    block.far.clear();
    block.told.clear();
    block.agents = 0;
}

} // namespace tx_emu

#endif
