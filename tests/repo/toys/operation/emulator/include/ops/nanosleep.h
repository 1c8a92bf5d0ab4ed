/* A thread that sleeps: time is of no account here. Included by texpr_emulator_ops.h. */
#ifndef TEXPR_EMULATOR_NANOSLEEP_H
#define TEXPR_EMULATOR_NANOSLEEP_H

inline void __nanosleep(unsigned) {}

#endif
