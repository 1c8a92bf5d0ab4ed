/* Launches that overlap. Included by texpr_emulator_ops.h. */
#ifndef TEXPR_EMULATOR_LAUNCHES_H
#define TEXPR_EMULATOR_LAUNCHES_H

namespace tx_emu TX_EMU_HIDDEN {

/* Set as a text is loaded in which one of the functions below is called: what its kernels read has a history, too. */
inline bool overlaps = false;
template <class... P> struct Overlapping { static inline bool const said = (overlaps = true); };

} // namespace tx_emu

template <class... P> TX_FN void tx_await_launches() {
    (void)tx_emu::Overlapping<P...>::said;
    tx_emu::core->await_launches();
}
template <class... P> TX_FN void tx_admit_launch() {
    (void)tx_emu::Overlapping<P...>::said;
    tx_emu::core->admit_launch();
}

#endif
