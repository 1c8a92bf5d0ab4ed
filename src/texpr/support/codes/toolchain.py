"""Toolchain (E06)."""

CODES: dict[str, str] = {
    "E0601": "no C++ compiler is found",
    "E0602": "a variable names a compiler that is not there",
    "E0603": "no CUDA compiler is found",
    "E0604": "the CUDA compiler does not know the target",
    "E0605": "a tool cannot be started",
    "E0606": "a tool took too long",
    "E0607": "a tool is broken",
    "E0608": "no room to build in",
    "E0609": "a tool of the compiler is missing",
    "E0610": "the target is not one this compiler knows",
    "E0611": "a process of the compiler was killed",
    "E0612": "assembler that the CUDA compiler refuses",
    "E0613": "too few registers for what a kernel keeps in them",
}
