"""Vector accesses: consecutive elements of memory in one access, aligned to its size."""

from texpr.isa.instruction import Instruction, Operand
from texpr.isa.levels import Level

_WIDTHS = ((2, "f32"), (4, "f32"), (2, "f64"))
_SPACES = ("global", "shared")


def _load(space: str, count: int, dtype: str) -> Instruction:
    registers = ", ".join(f"{{y{at}}}" for at in range(count))
    return _access("ld", space, count, dtype, f"{{ {registers} }}, [{{x}}]")


def _store(space: str, count: int, dtype: str) -> Instruction:
    registers = ", ".join(f"{{x{at}}}" for at in range(count))
    return _access("st", space, count, dtype, f"[{{y}}], {{ {registers} }}")


def _access(verb: str, space: str, count: int, dtype: str, operands: str) -> Instruction:
    return Instruction(
        f"{verb}_{space}_v{count}_{dtype}",
        f"{count} consecutive elements {'of' if verb == 'ld' else 'into'} {space} memory at once",
        Level.THREAD,
        (Operand("x", dtype, (count,)), Operand("y", dtype, (count,), inout=True)),
        (("sm_80", f"{verb}.{space}.v{count}.{dtype} {operands};"),),
        f"par {count} |i| {{ y[i] = x[i] }}",
        source=f'PTX ISA 8.5, "{verb}": vectors of at most 128 bits, aligned to their size',
    )


INSTRUCTIONS = tuple(make(space, *width) for make in (_load, _store) for space in _SPACES for width in _WIDTHS)
