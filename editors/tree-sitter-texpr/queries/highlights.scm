; Every text has one of these captures at most, so their order does not matter. Words are those of the compiler: tests compare them.

(comment) @comment
(string) @string
(escape_sequence) @string.escape
[(integer) (measure)] @number
(float) @number.float
(boolean) @boolean
[(infinity) (nan)] @constant.builtin
(label) @label

["fn" "combine" "instr" "schedule"] @keyword.function
["par" "seq" "fully" "static" "for"] @keyword.repeat
["if" "else"] @keyword.conditional
"return" @keyword.return
["and" "or" "not" "in"] @keyword.operator
["new" "reg" "let" "inout" "const" "anchor" "where" "assume" "identity" "meaning" "fragment" "asm" "effect" "rounding"] @keyword
["reduce" "scan" "stride" "align" "injective" "monotone"] @keyword.modifier
"mbarrier" @type.builtin

((type_identifier) @type.builtin
  (#any-of? @type.builtin
    "f64" "f32" "tf32" "f16" "bf16" "f8e4m3" "f8e5m2" "f8e8m0" "i8" "i16" "i32" "i64" "u8" "u16" "u32" "u64" "bool"))

(function name: (identifier) @function)
(combiner name: (identifier) @function)
(instruction name: (identifier) @function)
(use instruction: (identifier) @function)
(schedule function: (identifier) @function)
(schedule target: (identifier) @constant)

((call function: (identifier) @function.builtin)
  (#any-of? @function.builtin
    "abs" "max" "min" "fma" "pow" "sqrt" "rsqrt" "exp" "exp2" "log" "log2" "sin" "cos" "tanh" "erf" "expm1" "log1p" "sigmoid"
    "silu" "gelu" "floor" "ceil" "trunc" "round" "isnan" "isinf" "bitand" "bitor" "bitxor" "shl" "shr" "select" "transpose"
    "reshape" "pad" "index" "xor" "arrive" "wait"))
((call function: (identifier) @type.builtin)
  (#any-of? @type.builtin
    "f64" "f32" "tf32" "f16" "bf16" "f8e4m3" "f8e5m2" "f8e8m0" "i8" "i16" "i32" "i64" "u8" "u16" "u32" "u64" "bool"))
((call function: (identifier) @function.call)
  (#not-any-of? @function.call
    "abs" "max" "min" "fma" "pow" "sqrt" "rsqrt" "exp" "exp2" "log" "log2" "sin" "cos" "tanh" "erf" "expm1" "log1p" "sigmoid"
    "silu" "gelu" "floor" "ceil" "trunc" "round" "isnan" "isinf" "bitand" "bitor" "bitxor" "shl" "shr" "select" "transpose"
    "reshape" "pad" "index" "xor" "arrive" "wait"
    "f64" "f32" "tf32" "f16" "bf16" "f8e4m3" "f8e5m2" "f8e8m0" "i8" "i16" "i32" "i64" "u8" "u16" "u32" "u64" "bool"))

; A directive or a pragma that there is not has no colour.
((directive name: (identifier) @function.macro)
  (#any-of? @function.macro
    "alternate" "bind" "cluster" "dependent" "distribute" "hoist" "inline" "launch_bounds" "merge" "mma" "online" "overlap" "partial" "partition" "persistent" "pipeline"
    "place" "reorder" "resize" "roles" "scan" "serial" "skip" "split" "stage" "swizzle" "together" "unguard" "unroll" "vectorize" "widen"))
"#" @attribute
((pragma name: (identifier) @attribute)
  (#any-of? @attribute
    "grid" "cluster" "block" "align" "atomic" "ieee" "unproved" "bind" "unroll" "vectorize" "partition" "together"))
(argument key: (identifier) @property)
(named_argument key: (identifier) @property)

(parameter name: (identifier) @variable.parameter)
(constant_parameter name: (identifier) @variable.parameter)

["=" "+=" "-=" "*=" "+" "-" "*" "/" "%" "**" "==" "!=" "<" "<=" ">" ">=" ".." "->" "|"] @operator
(update) @operator
["(" ")" "[" "]" "{" "}"] @punctuation.bracket
["," ":" ";" "."] @punctuation.delimiter
