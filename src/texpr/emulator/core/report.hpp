/* What was found: kept once for each pair of lines, counted, and given out as JSON. */
#ifndef TEXPR_EMULATOR_REPORT_HPP
#define TEXPR_EMULATOR_REPORT_HPP

#include <unordered_map>

#include "machine.hpp"

namespace tx_emu {

enum class Fault : unsigned char {
    race, out_of_bounds, uninitialised, divergent_barrier, deadlock, wrong_mask, inactive_lane, stack_overflow, illegal_address,
    misaligned, unfinished_copy, abandoned_copy, missing_fence, bad_barrier, bad_tensor, early_exit
};
constexpr const char *FAULTS[] = {
    "race", "out_of_bounds", "uninitialised", "divergent_barrier", "deadlock", "wrong_mask", "inactive_lane", "stack_overflow",
    "illegal_address", "misaligned", "unfinished_copy", "abandoned_copy", "missing_fence", "bad_barrier", "bad_tensor",
    "early_exit"};

/* A thread and what it did. `action` is null where there is no such thread. */
struct Party {
    Dim block{}, thread{};
    int line = 0;
    const char *action = nullptr;
};

struct Report {
    Fault fault;
    const char *kernel, *source;
    std::string buffer;
    const char *space;
    long long index = 0, count = 0; /* element; elements of the buffer */
    Party first, second;
    unsigned long long times = 1;
};

inline Party party(const Fiber &fiber, const char *action) {
    return {fiber.block_index, fiber.thread_index, fiber.line, action};
}

class Reports {
  public:
    static constexpr std::size_t MOST = 200;

    void add(Report report) {
        ++found_;
        std::string key = key_of(report);
        auto known = places_.find(key);
        if (known != places_.end()) {
            ++reports_[known->second].times;
        } else if (reports_.size() < MOST) {
            places_.emplace(std::move(key), reports_.size());
            reports_.push_back(std::move(report));
        }
    }

    void clear() {
        reports_.clear();
        places_.clear();
    }

    /* How many times anything was found, ever. */
    unsigned long long found() const { return found_; }

    bool saw(Fault fault) const {
        for (const Report &report : reports_)
            if (report.fault == fault) return true;
        return false;
    }

    std::string json() const {
        std::string text = "[";
        for (const Report &report : reports_) {
            if (text.size() > 1) text += ",";
            write(text, report);
        }
        return text + "]";
    }

  private:
    std::vector<Report> reports_;
    std::unordered_map<std::string, std::size_t> places_;
    unsigned long long found_ = 0;

    static std::string key_of(const Report &report) {
        std::string key = FAULTS[(int)report.fault];
        for (const std::string &part :
             {std::string(report.kernel), report.buffer, std::to_string(report.first.line), std::to_string(report.second.line),
              std::string(report.first.action ? report.first.action : ""),
              std::string(report.second.action ? report.second.action : "")})
            key += '\0' + part;
        return key;
    }

    static void write(std::string &text, const std::string &value) {
        static const char *digits = "0123456789abcdef";
        text += '"';
        for (char c : value) {
            if (c == '"' || c == '\\') text += '\\';
            if ((unsigned char)c < 0x20) ((text += "\\u00") += digits[c >> 4]) += digits[c & 15];
            else text += c;
        }
        text += '"';
    }

    static void write(std::string &text, Dim dim) {
        text += '[' + std::to_string(dim.x) + ',' + std::to_string(dim.y) + ',' + std::to_string(dim.z) + ']';
    }

    static void write(std::string &text, const Party &party) {
        if (!party.action) {
            text += "null";
            return;
        }
        text += "{\"block\":";
        write(text, party.block);
        text += ",\"thread\":";
        write(text, party.thread);
        text += ",\"line\":" + std::to_string(party.line) + ",\"action\":";
        write(text, std::string(party.action));
        text += '}';
    }

    static void write(std::string &text, const Report &report) {
        text += "{\"fault\":\"";
        text += FAULTS[(int)report.fault];
        text += "\",\"kernel\":";
        write(text, std::string(report.kernel));
        text += ",\"source\":";
        write(text, std::string(report.source));
        text += ",\"buffer\":";
        write(text, report.buffer);
        text += ",\"space\":";
        write(text, std::string(report.space));
        text += ",\"index\":" + std::to_string(report.index) + ",\"count\":" + std::to_string(report.count) + ",\"first\":";
        write(text, report.first);
        text += ",\"second\":";
        write(text, report.second);
        text += ",\"times\":" + std::to_string(report.times) + '}';
    }
};

inline Reports reports;

inline const char *name_of(Space space) {
    return space == Space::global ? "global" : space == Space::shared ? "shared" : "local";
}

/* A fault at an element. */
inline void found(Fault fault, const View &view, long long index, Party first, Party second = {}) {
    reports.add({fault, machine.kernel->name, machine.kernel->source, view.name, name_of(view.space), index, view.count, first,
                 second});
}

/* A fault of threads, at no element. */
inline void found(Fault fault, Party first, Party second = {}) {
    if (!machine.options.detect && fault != Fault::deadlock && fault != Fault::stack_overflow && fault != Fault::illegal_address)
        return;
    reports.add({fault, machine.kernel->name, machine.kernel->source, "", "", 0, 0, first, second});
}

} // namespace tx_emu

#endif
