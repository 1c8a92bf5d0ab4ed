/* Shuffles and votes of a warp. Included by texpr_emulator_ops.h. */
#ifndef TEXPR_EMULATOR_LANES_H
#define TEXPR_EMULATOR_LANES_H

namespace tx_emu TX_EMU_HIDDEN {

template <class T> value_of<T> shuffle(unsigned mask, Shuffle how, const T &given, int lane, int width, int line) {
    value_of<T> value = given;
    static_assert(sizeof value <= 8, "a shuffle moves at most 8 bytes");
    std::uint64_t word = 0;
    std::memcpy(&word, &value, sizeof value);
    word = core->shuffle(mask, how, word, lane, width, line);
    std::memcpy(&value, &word, sizeof value);
    return value;
}

} // namespace tx_emu

#define TX_EMU_SHUFFLE(NAME, HOW) \
    template <class T> \
    tx_emu::value_of<T> NAME(unsigned mask, T value, int lane, int width = warpSize, int line = __builtin_LINE()) { \
        return tx_emu::shuffle(mask, tx_emu::Shuffle::HOW, value, lane, width, line); \
    }
TX_EMU_SHUFFLE(__shfl_sync, index)
TX_EMU_SHUFFLE(__shfl_up_sync, up)
TX_EMU_SHUFFLE(__shfl_down_sync, down)
TX_EMU_SHUFFLE(__shfl_xor_sync, exclusive_or)
#undef TX_EMU_SHUFFLE

#endif
