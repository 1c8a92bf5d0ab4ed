"""The PyTorch side of an artifact: NAME.cpp on LibTorch's stable ABI, NAME.py for traces, and their CMakeLists.txt.

The C++ registers each function as the operator `NAME::FUNCTION`, for the device of the artifact; the library that it becomes is
for every release of PyTorch from 2.10 on. The Python loads it, and says which shapes results have.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from texpr.affine.expr import Expr, Sym
from texpr.artifact.texts.operators import TYPES, Told, is_scalar, signature
from texpr.artifact.texts.platform import Platform
from texpr.artifact.texts.template import template
from texpr.backends.c.arguments import Argument, arguments, function_name
from texpr.backends.c.checks import argument_scope
from texpr.backends.c.index import index_text
from texpr.backends.c.names import identifier
from texpr.backends.c.text import comment, string
from texpr.backends.c.types import PUBLIC_NAMES, SMALL_FLOATS
from texpr.ir.kernel import Plan
from texpr.ir.value import Buffer
from texpr.ir.value.types import BOOL, TF32
from texpr.support.diagnostic import error

FOLDER = "torch"
"""Where these files are in an artifact."""


def torch_texts(name: str, plans: Sequence[Plan], on: Platform) -> dict[str, str]:
    """The files by path. Raises TexprError E0846 for a function that no operator can be."""
    every = [_Operator(name, plan, on) for plan in plans]
    body = "\n".join(line for each in every for line in ("", *each.lines()))
    defined = "\n".join(f"    m.def({string(each.name + each.signature.schema)});" for each in every)
    given = "\n".join(f"    m.impl({string(each.name)}, TORCH_BOX(&{each.symbol}));" for each in every)
    traced = "\n".join(line for each in every for line in ("", "", *each.trace()))
    where = {"KEY": "CUDA", "DEVICE": template("torch_device.cpp")} if on.device else {"KEY": "CPU", "DEVICE": ""}
    libraries = " ".join(f'"${{TEXPR_TORCH}}/lib/lib{each}.so"' for each in ("torch_cpu", *(("torch_cuda",) * on.device)))
    return {
        f"{FOLDER}/{name}.cpp": template("torch.cpp", NAME=name, BODY=body, DEFINED=defined, GIVEN=given, **where),
        f"{FOLDER}/{name}.py": template("torch.py.in", NAME=name, TRACES=traced),
        f"{FOLDER}/CMakeLists.txt": template("torch.cmake", NAME=name, LIBRARIES=libraries),
    }


class _Operator:
    """One function as an operator."""

    def __init__(self, name: str, plan: Plan, on: Platform):
        self.plan, self.on, self.given = plan, on, arguments(plan)
        self.name, self.artifact = identifier(plan.name), name
        self.symbol = f"tx_{self.name}"
        fixed = {sym for sym, _ in plan.fixed}
        sizes = [sym for sym in plan.sizes if sym not in fixed]
        self.signature = signature(f"{name}::{self.name}", plan.name, plan.params, plan.results, sizes)
        self.scope = argument_scope(plan, self.given)
        self.arrays = [each for each in plan.params if not is_scalar(each)]
        if not self.arrays:
            reason = f"`{plan.name}` takes no array, whose device an operator's results would be on"
            raise error("E0846", None, reason, help="leave --torch away, or give it an array")
        for each in plan.params:
            if is_scalar(each) and each.dtype in SMALL_FLOATS - {TF32}:
                reason = f"`{each.name}` of `{plan.name}` is a number of {each.dtype}, which operators do not take"
                raise error("E0846", None, reason, help="take it as f32, and convert it")

    def of(self, key: Buffer | Sym) -> str:
        """The name of an argument."""
        return next(each.name for each in self.given if each.key == key)

    def lines(self) -> Iterator[str]:
        """The C++ function."""
        found = self.signature
        parameters = [self._parameter(each) for each in found.params] + [f"int64_t {self.of(sym)}" for sym in found.sizes]
        yield f"/* {comment(self.plan.name)} */"
        yield f"{self._returned()} {self.symbol}({', '.join(parameters)}) {{"
        yield from (f"    {line}" for line in self._body())
        yield "}"

    def _returned(self) -> str:
        results = ["Tensor" for _ in self.signature.results]
        return "void" if not results else results[0] if len(results) == 1 else f"std::tuple<{', '.join(results)}>"

    def _parameter(self, param: Buffer) -> str:
        if not is_scalar(param):
            return f"Tensor const &{self.of(param)}"
        kind = "bool" if param.dtype == BOOL else "double" if param.dtype.is_float else "int64_t"
        return f"{kind} {self.of(param)}"

    def _body(self) -> Iterator[str]:
        what = string(self.plan.name)
        for each in self.arrays:
            yield f"tx_is({self.of(each)}, {each.rank}, ScalarType::{TYPES[each.dtype.name][1]}, {self._called(each)});"
        yield from (f"int64_t const {self.of(each.sym)} = {self._solved(each)};" for each in self.signature.told)
        yield from self._strides()
        for each in self.arrays:
            for at, entry in enumerate(each.shape):
                yield f"tx_same({self.of(each)}.size({at}), {self._text(entry)}, {self._called(each)});"
        first = self.of(self.arrays[0])
        if self.on.device:
            yield f"tx_on_device const tx_device({first});"
            yield f"tx_device.load<&{function_name(self.plan)}_load>({what});"
        yield from self._prepared(first)
        sizes = [each.name for each in self.given if isinstance(each.key, Sym)]
        yield "std::uint64_t tx_bytes = 0;"
        yield f"tx_fine({function_name(self.plan)}_workspace_bytes({', '.join((*sizes, '&tx_bytes'))}), {what});"
        yield f"Tensor const tx_room = tx_workspace({first}, tx_bytes);"
        stream = "tx_device.stream()" if self.on.device else "nullptr"
        passed = ", ".join((stream, "tx_aligned(tx_room)", *map(self._passed, self.given)))
        yield f"tx_fine({function_name(self.plan)}({passed}), {what});"
        names = [self.of(each) for each in self.signature.results]
        if names:
            several = f"std::make_tuple({', '.join(names)})"
            yield f"return {names[0] if len(names) == 1 else several};"

    def _solved(self, told: Told) -> str:
        extent = f"{self.of(told.param)}.size({told.at})"
        inner = extent if not told.constant else f"({extent} - ({told.constant}))"
        return inner if told.factor == 1 else f"{inner} / ({told.factor})"

    def _strides(self) -> Iterator[str]:
        """Sizes that only strides say, and that strides are what is declared."""
        known = {*(each.sym for each in self.signature.told), *self.signature.sizes}
        for each in self.arrays:
            for at, stride in enumerate(each.strides or ()):
                sym = stride.as_sym
                if sym is not None and sym not in known:
                    known.add(sym)
                    yield f"int64_t const {self.of(sym)} = {self.of(each)}.stride({at});"
        for each in self.arrays:
            for at, stride in enumerate(each.strides or ()):
                name = self.of(each)
                yield f"if ({name}.size({at}) > 1) tx_same({name}.stride({at}), {self._text(stride)}, {self._called(each)});"

    def _prepared(self, first: str) -> Iterator[str]:
        """Inputs as they are read, and memory for results."""
        for at, each in enumerate(self.arrays):
            if each.role == "inout" and each.strides is None:
                yield f"tx_dense({self.of(each)}, {self._called(each)});"
            elif each.strides is None:
                yield f"Tensor const tx_{at} = torch::stable::contiguous({self.of(each)});"
        for each in self.signature.results:
            shape = ", ".join(self._text(entry) for entry in each.shape)
            kind = f"ScalarType::{TYPES[each.dtype.name][1]}"
            yield f"Tensor const {self.of(each)} = tx_empty({first}, {{{shape}}}, {kind});"

    def _passed(self, argument: Argument) -> str:
        """An argument of the call."""
        if isinstance(argument.key, Sym):
            return argument.name
        buffer, ctype = argument.key, PUBLIC_NAMES[argument.key.dtype]
        if not argument.is_pointer:
            return f"static_cast<{ctype}>({argument.name})"
        if argument.written:
            return f"static_cast<{ctype} *>({argument.name}.mutable_data_ptr())"
        name = f"tx_{self.arrays.index(buffer)}" if buffer.strides is None else argument.name
        return f"static_cast<{ctype} const *>({name}.const_data_ptr())"

    def _text(self, entry: Expr) -> str:
        return f"static_cast<int64_t>({index_text(entry, self.scope)})"

    def _called(self, buffer: Buffer) -> str:
        return string(f"{self.of(buffer)} of {self.plan.name}")

    def trace(self) -> Iterator[str]:
        """The Python function that traces call."""
        found = self.signature
        sizes = ["*", *map(self.of, found.sizes)] if found.sizes else []
        yield f'@tx_torch.library.register_fake("{self.artifact}::{self.name}")'
        yield f"def _{self.name}({', '.join((*map(self.of, found.params), *sizes))}):"
        for each in found.told:
            solved = f"{self.of(each.param)}.shape[{each.at}]"
            solved = solved if not each.constant else f"({solved} - ({each.constant}))"
            yield f"    {self.of(each.sym)} = {solved}{'' if each.factor == 1 else f' // ({each.factor})'}"
        for each in self.arrays:
            yield f"    tx_check({self.of(each)}, {_tuple(each)}, {self._called(each)})"
        first = self.of(self.arrays[0])
        made = [f"{first}.new_empty({_tuple(each)}, dtype=tx_torch.{TYPES[each.dtype.name][0]})" for each in found.results]
        several = f"({', '.join(made)})"
        yield f"    return {'None' if not made else made[0] if len(made) == 1 else several}"


def _tuple(buffer: Buffer) -> str:
    """A shape in Python."""
    entries = [_python(entry) for entry in buffer.shape]
    return f"({entries[0]},)" if len(entries) == 1 else f"({', '.join(entries)})"


def _python(entry: Expr) -> str:
    """An expression of sizes in Python: integers alone, so that `/` is that of whole numbers, rounded down."""
    return str(entry).replace("/", "//")
