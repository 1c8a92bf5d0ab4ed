/* Barriers. Included by texpr_emulator_ops.h. */
#ifndef TEXPR_EMULATOR_MEETING_H
#define TEXPR_EMULATOR_MEETING_H

inline void __syncthreads(int line = __builtin_LINE()) { tx_emu::core->barrier(0, 0, line); }
inline void tx_bar_sync(int id, int threads, int line = __builtin_LINE()) { tx_emu::core->barrier(id, threads, line); }
template <int ID> void tx_bar_sync(int threads, int line = __builtin_LINE()) { tx_emu::core->barrier(ID, threads, line); }
inline void tx_cluster_sync(int line = __builtin_LINE()) { tx_emu::core->cluster_barrier(false, line); }
inline void tx_cluster_meet(int line = __builtin_LINE()) { tx_emu::core->cluster_barrier(true, line); }
template <class T> void tx_grid_sync(T, int line = __builtin_LINE()) { tx_emu::core->cluster_barrier(false, line); } /* see launch_together */
inline void __syncwarp(unsigned mask = 0xffffffffu, int line = __builtin_LINE()) { tx_emu::core->warp_barrier(mask, line); }

#endif
