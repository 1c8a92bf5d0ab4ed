"""Emission (`kernel.emit`): steps in order in; a kernel out, without decisions that other passes depend on."""
