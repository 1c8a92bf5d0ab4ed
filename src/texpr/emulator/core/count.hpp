/* Counters: what a kernel asked of memory, a warp's request at a time.

   Lanes run one after another, so a request is put together from what the lanes of a warp do, in order, each on its own: those
   that come to one place in the machine code make one. Lanes that left out what others did in a turn of a loop wait for them at
   its end, and those that leave a loop early behind it. */
#ifndef TEXPR_EMULATOR_COUNT_HPP
#define TEXPR_EMULATOR_COUNT_HPP

#include <algorithm>
#include <deque>
#include <map>

#include "machine.hpp"

namespace tx_emu {

enum class Act : unsigned char { read, write, atomic };

/* Bytes of a sector and of a line of global memory, banks of shared memory and bytes of a word that one gives at a time: those of
   CUDA devices, where the compiler of the core is not told others. */
#ifndef TX_EMU_SECTOR
#define TX_EMU_SECTOR 32u
#endif
#ifndef TX_EMU_LINE
#define TX_EMU_LINE 128u
#endif
#ifndef TX_EMU_BANKS
#define TX_EMU_BANKS 32u
#endif
#ifndef TX_EMU_WORD
#define TX_EMU_WORD 4u
#endif
constexpr unsigned SECTOR = TX_EMU_SECTOR, LINE = TX_EMU_LINE, BANKS = TX_EMU_BANKS, BANK_WORD = TX_EMU_WORD;

/* `*_sectors` and `*_lines` are summed over requests of a warp; `*_packed`: the sectors that the bytes of
   a request would fill, were they neighbours. A request to shared memory takes
   as many wavefronts as words that one bank must give; `shared_least` is what it would take without conflicts. */
struct Counts {
    unsigned long long launches, blocks, threads, block_barriers, barrier_arrivals, warp_barriers, shuffles, votes;
    unsigned long long global_loads, global_load_requests, global_load_sectors, global_load_lines, global_load_packed;
    unsigned long long global_stores, global_store_requests, global_store_sectors, global_store_lines, global_store_packed;
    unsigned long long global_atomics, shared_loads, shared_stores, shared_atomics;
    unsigned long long shared_requests, shared_wavefronts, shared_least, async_copies, tile_loads, tile_stores, tile_bytes;
};

inline std::map<std::string, Counts> counts;
inline Counts *counting = nullptr; /* the running kernel's, where counting is asked for */

struct Request {
    unsigned lanes, size;
    std::uint64_t addresses[LANES];
};

/* An access of a lane that is in no request yet; of no bytes: the end of a turn of a loop. */
struct Touch {
    const void *place;
    std::uint64_t address;
    unsigned size;
    Act act;
    Space space;
};

struct Tally {
    std::vector<std::deque<Touch>> touches; /* by thread */
};

inline unsigned distinct(std::uint64_t *values, unsigned count) {
    std::sort(values, values + count);
    return (unsigned)(std::unique(values, values + count) - values);
}

inline void count_pieces(const Request &request, unsigned bytes, unsigned long long &total) {
    std::uint64_t pieces[2 * LANES];
    unsigned count = 0;
    for (unsigned lane = 0; lane < request.lanes; ++lane) {
        pieces[count++] = request.addresses[lane] / bytes;
        pieces[count++] = (request.addresses[lane] + request.size - 1) / bytes;
    }
    total += distinct(pieces, count);
}

/* Sectors that as many bytes fill as the lanes of a request touch, each once. Lanes touch the same bytes or others: accesses of one
   size lie at multiples of it. */
inline unsigned packed_sectors(const Request &request) {
    std::uint64_t starts[LANES];
    std::copy(request.addresses, request.addresses + request.lanes, starts);
    return (distinct(starts, request.lanes) * request.size + SECTOR - 1) / SECTOR;
}

/* Banks of a word each. A request moves at most a word of each at a time: with 32 lanes and as many banks of 4 bytes, accesses of 8
   bytes go in two halves of the lanes, of 16 bytes in four quarters (CUDA C++ Programming Guide, "Shared Memory" of compute capability 5.x and later: 32 banks of 32 bits
   a cycle). */
inline void count_banks(const Request &request) {
    unsigned each = std::max(BANKS * BANK_WORD / std::max(request.size, BANK_WORD), 1u);
    ++counting->shared_requests;
    for (unsigned from = 0; from < request.lanes; from += each) {
        std::uint64_t words[LANES * std::max(16 / BANK_WORD, 1u)];
        unsigned count = 0;
        for (unsigned lane = from; lane < std::min(from + each, request.lanes); ++lane)
            for (unsigned word = 0; word < std::max(request.size / BANK_WORD, 1u); ++word)
                words[count++] = request.addresses[lane] / BANK_WORD + word;
        count = distinct(words, count);
        unsigned banks[BANKS] = {}, worst = 0;
        for (unsigned word = 0; word < count; ++word) worst = std::max(worst, ++banks[words[word] % BANKS]);
        counting->shared_wavefronts += worst;
        counting->shared_least += (count + BANKS - 1) / BANKS;
    }
}

inline void count_request(const Touch &first, const Request &request) {
    if (first.size == 0) return;
    if (first.space == Space::shared) {
        count_banks(request);
        return;
    }
    bool load = first.act == Act::read;
    ++(load ? counting->global_load_requests : counting->global_store_requests);
    count_pieces(request, SECTOR, load ? counting->global_load_sectors : counting->global_store_sectors);
    count_pieces(request, LINE, load ? counting->global_load_lines : counting->global_store_lines);
    (load ? counting->global_load_packed : counting->global_store_packed) += packed_sectors(request);
}

/* The requests of a warp that can be told: those for which every lane that runs still has come to its next access, or all. Lanes
   that stand at the least place in the machine code go on together, as lanes of a machine do that wait for others where ways
   meet again; so of a loop that lanes leave at different times each turn is one request. */
inline void count_requests(Block &block, unsigned warp, bool all) {
    auto &touches = block.tally->touches;
    unsigned from = warp * LANES, to = std::min(from + LANES, block.size);
    for (;;) {
        const Touch *first = nullptr;
        for (unsigned at = from; at < to; ++at) {
            if (touches[at].empty() && !all && !block.fibers[at].finished) return;
            if (!touches[at].empty() && (!first || touches[at].front().place < first->place)) first = &touches[at].front();
        }
        if (!first) return;
        Touch one = *first;
        Request request{0, one.size, {}};
        for (unsigned at = from; at < to; ++at) {
            if (touches[at].empty() || touches[at].front().place != one.place) continue;
            request.addresses[request.lanes++] = touches[at].front().address;
            touches[at].pop_front();
        }
        count_request(one, request);
    }
}

/* What a lane does next waits for the other lanes; with it some requests may be told. */
inline void await(const Touch &touch) {
    Fiber &me = machine.current();
    Block &block = *me.block;
    if (!block.tally) block.tally = std::make_shared<Tally>();
    auto &touches = block.tally->touches;
    if (touches.empty()) touches.resize(block.size);
    touches[me.index].push_back(touch);
    if (touches[me.index].size() == 1) count_requests(block, me.index / LANES, false);
}

/* An access of `bytes` at once, from `place` in the machine code. */
inline void count_access(Act act, const View &view, std::uint64_t address, unsigned bytes, const void *place) {
    bool global = view.space == Space::global;
    if (act == Act::atomic) {
        ++(global ? counting->global_atomics : counting->shared_atomics);
        return;
    }
    if (act == Act::read) ++(global ? counting->global_loads : counting->shared_loads);
    else ++(global ? counting->global_stores : counting->shared_stores);
    await({place, address, bytes, act, view.space});
}

/* The end of a turn of a loop. */
inline void count_turn() { await({__builtin_return_address(0), 0, 0, Act::read, Space::local}); }

/* All threads of a block meet, or it ends: what they did before is no request with what they do then. */
inline void count_meeting(Block &block) {
    if (!counting || !block.tally) return;
    for (unsigned warp = 0; warp < machine.warps; ++warp) count_requests(block, warp, true);
}

inline void count_end(Block &block) {
    if (!counting) return;
    ++counting->blocks;
    counting->threads += block.size;
    count_meeting(block);
    block.tally.reset();
}

inline void count_barrier(unsigned arrived) {
    if (!counting) return;
    ++counting->block_barriers;
    counting->barrier_arrivals += arrived;
}

/* All lanes of a warp that run meet: as threads of a block do. */
inline void count_warp(Block &block, unsigned warp) {
    if (counting && block.tally && !block.tally->touches.empty()) count_requests(block, warp, true);
}

/* Once a warp: the first of its lanes that comes counts. */
inline void count_together(Together what, const Fiber &me) {
    if (!counting || me.lane != (unsigned)__builtin_ctz(me.warp->live)) return;
    if (what == Together::barrier) ++counting->warp_barriers;
    else if (what >= Together::any) ++counting->votes;
    else ++counting->shuffles;
}

inline std::string counts_json() {
    std::string text = "{";
    for (const auto &[name, c] : counts) {
        if (text.size() > 1) text += ",";
        text += '"' + name + "\":{";
        const std::pair<const char *, unsigned long long> fields[] = {
            {"launches", c.launches}, {"blocks", c.blocks}, {"threads", c.threads}, {"block_barriers", c.block_barriers},
            {"barrier_arrivals", c.barrier_arrivals}, {"warp_barriers", c.warp_barriers}, {"shuffles", c.shuffles},
            {"votes", c.votes}, {"global_loads", c.global_loads}, {"global_load_requests", c.global_load_requests},
            {"global_load_sectors", c.global_load_sectors}, {"global_load_lines", c.global_load_lines},
            {"global_load_packed", c.global_load_packed}, {"global_store_packed", c.global_store_packed},
            {"global_stores", c.global_stores}, {"global_store_requests", c.global_store_requests},
            {"global_store_sectors", c.global_store_sectors}, {"global_store_lines", c.global_store_lines},
            {"global_atomics", c.global_atomics}, {"shared_loads", c.shared_loads}, {"shared_stores", c.shared_stores},
            {"shared_atomics", c.shared_atomics}, {"shared_requests", c.shared_requests},
            {"shared_wavefronts", c.shared_wavefronts}, {"shared_least", c.shared_least},
            {"async_copies", c.async_copies}, {"tile_loads", c.tile_loads}, {"tile_stores", c.tile_stores},
            {"tile_bytes", c.tile_bytes}};
        for (const auto &[field, value] : fields)
            text += (field == fields[0].first ? "\"" : ",\"") + std::string(field) + "\":" + std::to_string(value);
        text += '}';
    }
    return text + "}";
}

} // namespace tx_emu

#endif
