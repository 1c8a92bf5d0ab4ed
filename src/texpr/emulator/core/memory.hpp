/* Memory a grid may touch: what was allocated or registered, which of its bytes were written, and its history. */
#ifndef TEXPR_EMULATOR_MEMORY_HPP
#define TEXPR_EMULATOR_MEMORY_HPP

#include <sys/mman.h>

#include <algorithm>
#include <new>
#include <utility>

#include "machine.hpp"

namespace tx_emu {

/* Zeroed pages, which cost nothing until touched. */
class Pages {
  public:
    Pages() = default;
    explicit Pages(std::size_t bytes) : bytes_(bytes) {
        if (bytes == 0) return;
        void *mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (mapped == MAP_FAILED) throw std::bad_alloc();
        at_ = static_cast<char *>(mapped);
    }
    ~Pages() {
        if (at_) munmap(at_, bytes_);
    }
    Pages(Pages &&other) noexcept : at_(std::exchange(other.at_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
    Pages &operator=(Pages &&other) noexcept {
        std::swap(at_, other.at_);
        std::swap(bytes_, other.bytes_);
        return *this;
    }
    template <class T> T *as() const { return reinterpret_cast<T *>(at_); }

  private:
    char *at_ = nullptr;
    std::size_t bytes_ = 0;
};

struct Allocation {
    char *base;
    std::size_t bytes;
    std::string name;
    bool written_before; /* all of it, when it was registered */
    Pages own;           /* the memory itself, where the emulator allocated it */
    Pages written;       /* a bit for each byte, unless written_before */
    Pages cells;         /* made by the first launch that needs a history */
    std::size_t grain = 0; /* bytes that share a cell */

    bool holds(const void *pointer) const {
        auto at = static_cast<const char *>(pointer);
        return at >= base && (at < base + bytes || at == base);
    }

    void mark(std::size_t from, std::size_t size) {
        auto bits = written.as<unsigned char>();
        std::size_t at = from, end = from + size;
        for (; at < end && at % 8 != 0; ++at) bits[at / 8] |= (unsigned char)(1u << at % 8);
        if (at + 8 <= end) {
            std::memset(bits + at / 8, 0xff, (end - at) / 8);
            at += (end - at) / 8 * 8;
        }
        for (; at < end; ++at) bits[at / 8] |= (unsigned char)(1u << at % 8);
    }

    bool marked(std::size_t from, std::size_t size) const {
        auto bits = written.as<const unsigned char>();
        for (std::size_t at = from; at < from + size; ++at)
            if (!(bits[at / 8] >> at % 8 & 1)) return false;
        return true;
    }

    /* The history, with cells for elements of `size` bytes or smaller. Only between launches, when none is needed. */
    Cell *history(std::size_t size) {
        if (grain == 0 || size < grain) {
            cells = Pages();
            cells = Pages((bytes / size + 1) * sizeof(Cell));
            grain = size;
        }
        return cells.as<Cell>();
    }
};

class Memory {
  public:
    void add(void *base, std::size_t bytes, const char *name, bool written) {
        Allocation made{static_cast<char *>(base), bytes, name, written, {}, Pages(written ? 0 : bytes / 8 + 1), {}};
        allocations_.push_back(std::make_unique<Allocation>(std::move(made)));
    }

    void *allocate(std::size_t bytes) {
        Pages pages(bytes);
        void *base = pages.as<void>();
        add(base, bytes, "", false);
        allocations_.back()->own = std::move(pages);
        return base;
    }

    /* Forgets the last that was added at `base`. False where there is none. */
    bool remove(const void *base) {
        for (std::size_t at = allocations_.size(); at-- > 0;) {
            if (allocations_[at]->base != base) continue;
            allocations_.erase(allocations_.begin() + (std::ptrdiff_t)at);
            return true;
        }
        return false;
    }

    /* The smallest registered memory that holds `pointer`, the last added first; null where none does. */
    Allocation *find(const void *pointer) const {
        Allocation *best = nullptr;
        for (const auto &each : allocations_)
            if (each->holds(pointer) && (!best || each->bytes <= best->bytes)) best = each.get();
        return best;
    }

    /* All of `size` bytes at `pointer` is written by the host. */
    void mark(const void *pointer, std::size_t size) {
        auto from = static_cast<const char *>(pointer), end = from + size;
        for (const auto &each : allocations_) {
            const char *low = std::max<const char *>(from, each->base);
            const char *high = std::min<const char *>(end, each->base + each->bytes);
            if (low < high && !each->written_before) each->mark((std::size_t)(low - each->base), (std::size_t)(high - low));
        }
    }

    /* Whether all of `size` bytes at `pointer` is registered memory. */
    bool has(const void *pointer, std::size_t size) const {
        const Allocation *found = find(pointer);
        return found && (std::size_t)(found->base + found->bytes - static_cast<const char *>(pointer)) >= size;
    }

    void forget_history() {
        for (const auto &each : allocations_) {
            each->cells = Pages();
            each->grain = 0;
        }
    }

  private:
    std::vector<std::unique_ptr<Allocation>> allocations_;
};

inline Memory memory;

} // namespace tx_emu

#endif
