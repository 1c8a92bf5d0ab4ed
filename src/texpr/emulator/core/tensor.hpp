/* Tensor maps: what the driver checks and encodes, and which bytes a box means. CUDA driver API, "cuTensorMapEncodeTiled"; PTX ISA,
   "Tensors". Dimension 0 is the innermost. */
#ifndef TEXPR_EMULATOR_TENSOR_HPP
#define TEXPR_EMULATOR_TENSOR_HPP

#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace tx_emu {

constexpr unsigned MOST_RANK = 5;

/* The 128 bytes of a map, as this emulator encodes them. `interleave` and `swizzle` are in bytes. */
struct Tensor {
    std::uint32_t magic;
    std::uint8_t element, rank, size, fill, interleave, swizzle;
    std::uint8_t steps[MOST_RANK];
    std::uint16_t box[MOST_RANK];
    std::uint64_t base, strides[MOST_RANK - 1];
    std::uint32_t last[MOST_RANK]; /* the greatest index along each dimension: sizes are up to 2^32 */
    std::int16_t lower[MOST_RANK - 2], upper[MOST_RANK - 2];
    std::uint8_t columns; /* whether in im2col mode: then the box is channels and pixels */

    unsigned tile(unsigned at) const { return (box[at] + steps[at] - 1u) / steps[at]; }
};
static_assert(sizeof(Tensor) <= 128, "as large as CUtensorMap");

constexpr std::uint32_t TENSOR_MAGIC = 0x7e27a921;

/* Elements of `CUtensorMapDataType`, in its order. */
constexpr unsigned ELEMENT_SIZES[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};
constexpr unsigned ELEMENTS = sizeof ELEMENT_SIZES / sizeof *ELEMENT_SIZES;
enum class Element : std::uint8_t { u8, u16, u32, i32, u64, i64, f16, f32, f64, bf16, f32_ftz, tf32, tf32_ftz };

inline bool floating(unsigned element) { return element >= (unsigned)Element::f16; }

/* What cuTensorMapEncodeTiled is given, or, with corners, cuTensorMapEncodeIm2col: `box` is then channels and pixels. */
struct Encoding {
    void *map;
    int element;
    unsigned rank;
    const void *base;
    const std::uint64_t *sizes, *strides;
    const std::uint32_t *box, *steps;
    int interleave, swizzle, promotion, fill;
    const int *lower = nullptr, *upper = nullptr;
};

/* The rule of im2col mode that an encoding breaks, or empty. The corners' ranges depend on the rank. */
inline std::string broken_column(const Encoding &given) {
    auto field = [](const char *name, unsigned at) { return std::string(name) + " " + std::to_string(at) + ": "; };
    const int most = given.rank == 3 ? 32767 : given.rank == 4 ? 127 : 15;
    if (!given.upper) return "arrays: none is null";
    for (unsigned at = 0; at + 2 < given.rank; ++at) {
        int low = given.lower[at], high = given.upper[at];
        if (low < -most - 1 || low > most) return field("lower corner", at) + std::to_string(-most - 1) + " to " + std::to_string(most);
        if (high < -most - 1 || high > most) return field("upper corner", at) + std::to_string(-most - 1) + " to " + std::to_string(most);
        if ((std::int64_t)given.sizes[at + 1] + high - low < 1) return field("bounding box", at) + "not empty";
    }
    if (given.box[0] < 1 || given.box[0] > 256) return "channels: 1 to 256";
    if (given.box[1] < 1 || given.box[1] > 1024) return "pixels: 1 to 1024";
    return "";
}

/* The rule that an encoding breaks, with the field, or empty. */
inline std::string broken_rule(const Encoding &given) {
    auto field = [](const char *name, unsigned at) { return std::string(name) + " " + std::to_string(at) + ": "; };
    if (!given.map || reinterpret_cast<std::uintptr_t>(given.map) % 64) return "map: its address is a multiple of 64";
    if (given.element < 0 || (unsigned)given.element >= ELEMENTS) return "element: one of the types of CUtensorMapDataType";
    if (given.interleave < 0 || given.interleave > 2) return "interleave: none, 16 or 32 bytes";
    if (given.swizzle < 0 || given.swizzle > 3) return "swizzle: none, 32, 64 or 128 bytes";
    if (given.promotion < 0 || given.promotion > 3) return "promotion: none, 64, 128 or 256 bytes";
    if (given.fill < 0 || given.fill > 1) return "fill: zero or nan";
    unsigned least = given.interleave || given.lower ? 3 : 1, size = ELEMENT_SIZES[given.element], align = given.interleave == 2 ? 32 : 16;
    if (given.rank < least || given.rank > MOST_RANK) return "rank: 1 to 5, 3 to 5 if interleaved or in im2col mode";
    if (given.fill == 1 && !floating((unsigned)given.element)) return "fill: nan for floating-point elements alone";
    if (given.interleave == 2 && given.swizzle != 1) return "swizzle: of 32 bytes where slices have 32";
    auto base = reinterpret_cast<std::uintptr_t>(given.base);
    if (base == 0 || base % align) return "base: a multiple of " + std::to_string(align);
    if (!given.sizes || !given.box || !given.steps || (given.rank > 1 && !given.strides)) return "arrays: none is null";
    for (unsigned at = 0; at < given.rank; ++at)
        if (given.sizes[at] < 1 || given.sizes[at] > (1ull << 32)) return field("size", at) + "1 to 2^32";
    for (unsigned at = 0; at + 1 < given.rank; ++at) {
        if (given.strides[at] % align) return field("stride", at + 1) + "a multiple of " + std::to_string(align);
        if (given.strides[at] >= (1ull << 40)) return field("stride", at + 1) + "less than 2^40";
    }
    for (unsigned at = 0; at < given.rank; ++at) {
        if (!given.lower && (given.box[at] < 1 || given.box[at] > 256)) return field("box", at) + "1 to 256";
        if (given.steps[at] < 1 || given.steps[at] > 8) return field("step", at) + "1 to 8";
    }
    if (given.lower) {
        std::string broken = broken_column(given);
        if (!broken.empty()) return broken;
    }
    if (given.interleave == 0) {
        unsigned row = given.box[0] * size;
        if (given.steps[0] != 1) return "step 0: 1 if not interleaved";
        if (row % 16) return "box 0: a multiple of 16 bytes";
        if (given.swizzle && row > (16u << given.swizzle)) return "box 0: at most as many bytes as the swizzle";
    }
    return "";
}

inline void encode(const Encoding &given) {
    Tensor tensor{};
    tensor.magic = TENSOR_MAGIC;
    tensor.element = (std::uint8_t)given.element;
    tensor.rank = (std::uint8_t)given.rank;
    tensor.size = (std::uint8_t)ELEMENT_SIZES[given.element];
    tensor.fill = (std::uint8_t)given.fill;
    tensor.interleave = (std::uint8_t)(given.interleave * 16);
    tensor.swizzle = (std::uint8_t)(given.swizzle ? 16 << given.swizzle : 0);
    tensor.base = reinterpret_cast<std::uintptr_t>(given.base);
    for (unsigned at = 0; at < given.rank; ++at) {
        tensor.last[at] = (std::uint32_t)(given.sizes[at] - 1);
        tensor.box[at] = (std::uint16_t)(!given.lower || at < 2 ? given.box[at] : 1);
        tensor.steps[at] = (std::uint8_t)given.steps[at];
        if (at > 0) tensor.strides[at - 1] = given.strides[at - 1];
    }
    tensor.columns = given.lower != nullptr;
    for (unsigned at = 0; given.lower && at + 2 < given.rank; ++at) {
        tensor.lower[at] = (std::int16_t)given.lower[at];
        tensor.upper[at] = (std::int16_t)given.upper[at];
    }
    std::memset(given.map, 0, 128);
    std::memcpy(given.map, &tensor, sizeof tensor);
}

/* False where the bytes are no map. */
inline bool decode(const void *map, Tensor &tensor) {
    std::memcpy(&tensor, map, sizeof tensor);
    return tensor.magic == TENSOR_MAGIC;
}

/* An element of a tile: where it lies in shared memory, and in the tensor; null where that is outside of it. */
struct Piece {
    char *near, *far;
};

/* Where a swizzle keeps a byte: 16 bytes stay together, and move within the span by the number of the line of 128 bytes. */
inline std::uintptr_t swizzled(std::uintptr_t address, unsigned span) {
    return span == 0 ? address : address ^ ((address >> 7 & (span / 16 - 1)) << 4);
}

/* One dimension of a walk over a tile, innermost first: how many there are, and per step how far apart in the tensor, and which
   coordinate and size they are tested against. */
struct Walk {
    unsigned count;
    std::int64_t first, step, size, stride;
};

/* The dimensions of a box at `at`. Where channels lie in slices, those are a dimension of their own behind the last of space:
   slices follow each other after all of it. PTX ISA, "Interleave layout": NC/8[D][H]WC8; the order is a reading of that name. */
inline std::vector<Walk> walks(const Tensor &tensor, const long long *at) {
    std::vector<Walk> found;
    auto dimension = [&](unsigned d) {
        std::int64_t stride = d == 0 ? tensor.size : (std::int64_t)tensor.strides[d - 1];
        found.push_back({tensor.tile(d), at[d], tensor.steps[d], (std::int64_t)tensor.last[d] + 1, stride});
    };
    if (tensor.interleave == 0) {
        for (unsigned d = 0; d < tensor.rank; ++d) dimension(d);
        return found;
    }
    unsigned channels = tensor.interleave / tensor.size, slices = tensor.box[0] / channels, outer = tensor.rank - 1u;
    std::int64_t all = (std::int64_t)tensor.last[0] + 1, there = (all + channels - 1) / channels;
    found.push_back({channels, 0, 1, channels, tensor.size});
    for (unsigned d = 1; d < outer; ++d) dimension(d);
    std::int64_t apart = (std::int64_t)(tensor.strides[outer - 2] * ((std::uint64_t)tensor.last[outer - 1] + 1));
    found.push_back({(slices + tensor.steps[0] - 1u) / tensor.steps[0], at[0] / channels, tensor.steps[0], there, apart});
    dimension(outer);
    return found;
}

/* The elements of the tile that begins at `near`. A store writes whole chunks of 16 bytes of a row, where some of it is in bounds:
   so seen on an H100. */
inline std::vector<Piece> pieces(const Tensor &tensor, const long long *at, char *near, bool store) {
    std::vector<Walk> dimensions = walks(tensor, at);
    std::int64_t whole = store && tensor.size < 16 ? 16 / tensor.size : 1;
    dimensions[0].size = (dimensions[0].size + whole - 1) / whole * whole;
    unsigned row = dimensions[0].count * tensor.size, pitch = row < tensor.swizzle ? tensor.swizzle : row;
    std::vector<Piece> found;
    std::vector<unsigned> index(dimensions.size(), 0);
    auto start = reinterpret_cast<std::uintptr_t>(near);
    for (std::uint64_t number = 0;; ++number) { /* of the row */
        for (unsigned column = 0; column < dimensions[0].count; ++column) {
            index[0] = column;
            bool inside = true;
            std::int64_t offset = 0;
            for (std::size_t d = 0; d < dimensions.size(); ++d) {
                std::int64_t place = dimensions[d].first + dimensions[d].step * (std::int64_t)index[d];
                inside = inside && place >= 0 && place < dimensions[d].size;
                offset += place * dimensions[d].stride;
            }
            std::uintptr_t linear = start + number * pitch + column * tensor.size;
            found.push_back({reinterpret_cast<char *>(swizzled(linear, tensor.swizzle)),
                             inside ? reinterpret_cast<char *>(tensor.base + (std::uint64_t)offset) : nullptr});
        }
        std::size_t d = 1;
        while (d < dimensions.size() && ++index[d] == dimensions[d].count) index[d++] = 0;
        if (d >= dimensions.size()) return found;
    }
}

/* The elements of a column of pixels in im2col mode: `at` is a channel, the first pixel, which lies in the bounding box, and an
   image; offsets are added to each. PTX ISA, "im2col mode". */
inline std::vector<Piece> column(const Tensor &tensor, const long long *at, const long long *offsets, char *near) {
    unsigned channels = tensor.box[0], row = channels * tensor.size, pitch = row < tensor.swizzle ? tensor.swizzle : row;
    std::vector<Piece> found;
    std::int64_t pixel[MOST_RANK];
    for (unsigned d = 0; d < tensor.rank; ++d) pixel[d] = at[d];
    auto start = reinterpret_cast<std::uintptr_t>(near);
    for (unsigned number = 0; number < tensor.box[1]; ++number) {
        bool there = true;
        std::int64_t offset = 0;
        for (unsigned d = 1; d < tensor.rank; ++d) {
            std::int64_t place = pixel[d] + (d + 1 < tensor.rank ? offsets[d - 1] : 0);
            there = there && place >= 0 && place <= (std::int64_t)tensor.last[d];
            offset += place * (std::int64_t)tensor.strides[d - 1];
        }
        for (unsigned c = 0; c < channels; ++c) {
            std::int64_t channel = pixel[0] + c;
            bool inside = there && channel >= 0 && channel <= (std::int64_t)tensor.last[0];
            std::uintptr_t linear = start + number * pitch + c * tensor.size;
            found.push_back({reinterpret_cast<char *>(swizzled(linear, tensor.swizzle)),
                             inside ? reinterpret_cast<char *>(tensor.base + (std::uint64_t)(offset + channel * tensor.size)) : nullptr});
        }
        unsigned d = 1;
        for (; d + 1 < tensor.rank; ++d) { /* to the next pixel of the box, W first, and from the last one to the next image */
            pixel[d] += tensor.steps[d];
            if (pixel[d] <= (std::int64_t)tensor.last[d] + tensor.upper[d - 1]) break;
            pixel[d] = tensor.lower[d - 1];
        }
        if (d + 1 == tensor.rank) ++pixel[d];
    }
    return found;
}

/* The elements of four rows, one behind the other. */
inline std::vector<Piece> four_rows(const Tensor &tensor, long long from, const long long *rows, char *near) {
    unsigned row = tensor.box[0] * tensor.size, pitch = row < tensor.swizzle ? tensor.swizzle : row;
    std::vector<Piece> found;
    for (unsigned number = 0; number < 4; ++number)
        for (unsigned c = 0; c < tensor.box[0]; ++c) {
            std::int64_t place = from + c;
            bool inside = place >= 0 && place <= (std::int64_t)tensor.last[0] && rows[number] >= 0 && rows[number] <= (std::int64_t)tensor.last[1];
            std::uintptr_t linear = reinterpret_cast<std::uintptr_t>(near) + number * pitch + c * tensor.size;
            std::uint64_t far = tensor.base + (std::uint64_t)(rows[number] * (std::int64_t)tensor.strides[0] + place * tensor.size);
            found.push_back({reinterpret_cast<char *>(swizzled(linear, tensor.swizzle)), inside ? reinterpret_cast<char *>(far) : nullptr});
        }
    return found;
}

/* ---- combining ------------------------------------------------------------------------------------------------------------ */

enum class Combine : std::uint8_t { none, add, min, max, bit_and, bit_or, bit_xor, increment, decrement };

inline float widened(std::uint16_t bits, bool brain) {
    std::uint32_t word = (std::uint32_t)bits << 16;
    if (!brain) {
        std::uint32_t sign = (bits & 0x8000u) << 16, exponent = bits >> 10 & 31, part = bits & 0x3ff;
        if (exponent == 31) word = sign | 0x7f800000u | part << 13;
        else if (exponent != 0) word = sign | (exponent + 112) << 23 | part << 13;
        else {
            float small = (float)part * 5.9604644775390625e-8f; /* 2^-24 */
            std::memcpy(&word, &small, 4);
            word |= sign;
        }
    }
    float value;
    std::memcpy(&value, &word, 4);
    return value;
}

/* To nearest, ties to even: `value` is a sum of two such numbers, which a float holds but for its last bits. */
inline std::uint16_t narrowed(double value, bool brain) {
    std::uint16_t best = 0;
    double distance = -1;
    if (value != value) return brain ? 0x7fc0 : 0x7e00;
    std::uint16_t top = brain ? 0x7f80 : 0x7c00, sign = value < 0 || (value == 0 && 1 / value < 0) ? 0x8000 : 0;
    double wanted = value < 0 ? -value : value;
    std::uint16_t from = 0, to = top; /* the greatest that is not above, by halving */
    while (from < to) {
        std::uint16_t middle = (std::uint16_t)((from + to + 1) / 2);
        if ((double)widened(middle, brain) <= wanted) from = middle;
        else to = (std::uint16_t)(middle - 1);
    }
    best = from;
    if (from < top) {
        double below = widened(from, brain), above = from + 1 == top ? below + (below - widened((std::uint16_t)(from - 1), brain))
                                                                     : widened((std::uint16_t)(from + 1), brain);
        distance = (wanted - below) - (above - wanted);
        if (distance > 0 || (distance == 0 && from % 2)) best = (std::uint16_t)(from + 1);
    }
    return (std::uint16_t)(best | sign);
}

template <class T> T combined(Combine how, T old, T given) {
    switch (how) {
    case Combine::min: return given < old ? given : old;
    case Combine::max: return given > old ? given : old;
    default: return (T)(old + given);
    }
}
template <class T, class Bits> void combine_bits(Combine how, char *far, const char *near) {
    Bits old, given;
    std::memcpy(&old, far, sizeof old);
    std::memcpy(&given, near, sizeof given);
    T a, b;
    std::memcpy(&a, &old, sizeof a);
    std::memcpy(&b, &given, sizeof b);
    switch (how) {
    case Combine::add: old = (Bits)(old + given); break; /* wraps */
    case Combine::bit_and: old &= given; break;
    case Combine::bit_or: old |= given; break;
    case Combine::bit_xor: old ^= given; break;
    case Combine::increment: old = old >= given ? 0 : (Bits)(old + 1); break;
    case Combine::decrement: old = old == 0 || old > given ? given : (Bits)(old - 1); break;
    default: {
        T result = combined(how, a, b);
        std::memcpy(&old, &result, sizeof old);
    }
    }
    std::memcpy(far, &old, sizeof old);
}
template <class T> void combine_real(Combine how, char *far, const char *near) {
    T old, given;
    std::memcpy(&old, far, sizeof old);
    std::memcpy(&given, near, sizeof given);
    old = combined(how, old, given);
    std::memcpy(far, &old, sizeof old);
}
/* A sum in which a subnormal number, before or after, is zero of its sign. */
inline void add_flushed(char *far, const char *near) {
    float old, given;
    std::memcpy(&old, far, sizeof old);
    std::memcpy(&given, near, sizeof given);
    auto flushed = [](float value) { return std::fpclassify(value) == FP_SUBNORMAL ? std::copysign(0.0f, value) : value; };
    old = flushed(flushed(old) + flushed(given));
    std::memcpy(far, &old, sizeof old);
}
inline void combine_half(Combine how, bool brain, char *far, const char *near) {
    std::uint16_t old, given;
    std::memcpy(&old, far, 2);
    std::memcpy(&given, near, 2);
    old = narrowed(combined(how, (double)widened(old, brain), (double)widened(given, brain)), brain);
    std::memcpy(far, &old, 2);
}

/* One element of global memory becomes its combination with one of shared memory. */
inline void combine(Combine how, Element element, char *far, const char *near) {
    switch (element) {
    case Element::u32: return combine_bits<std::uint32_t, std::uint32_t>(how, far, near);
    case Element::i32: return combine_bits<std::int32_t, std::uint32_t>(how, far, near);
    case Element::u64: return combine_bits<std::uint64_t, std::uint64_t>(how, far, near);
    case Element::i64: return combine_bits<std::int64_t, std::uint64_t>(how, far, near);
    case Element::f64: return combine_real<double>(how, far, near);
    case Element::f16: return combine_half(how, false, far, near);
    case Element::bf16: return combine_half(how, true, far, near);
    case Element::f32_ftz: return add_flushed(far, near);
    default: return combine_real<float>(how, far, near);
    }
}

/* Whether the engine combines elements of a type so. PTX ISA, "cp.reduce.async.bulk.tensor". */
inline bool combines(Combine how, Element element) {
    bool word = element >= Element::u32 && element <= Element::i64, half = element == Element::f16 || element == Element::bf16;
    switch (how) {
    case Combine::none: return true;
    case Combine::add: return (word && element != Element::i64) || half || element == Element::f32 || element == Element::f64;
    case Combine::min:
    case Combine::max: return word || half;
    case Combine::increment:
    case Combine::decrement: return element == Element::u32;
    default: return word;
    }
}

} // namespace tx_emu

#endif
