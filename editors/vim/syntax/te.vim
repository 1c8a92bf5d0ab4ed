" Tensor programs of texpr.
if exists("b:current_syntax") | finish | endif

syntax keyword teDeclaration fn combine instr schedule new reg let inout const
syntax keyword teControl par seq fully static if else return anchor where assume
syntax keyword teOperator and or not
syntax keyword teConstant true false inf nan
syntax keyword teOther reduce scan identity stride align injective monotone for in fragment asm effect rounding meaning mbarrier
syntax keyword teType f64 f32 tf32 f16 bf16 f8e4m3 f8e5m2 f8e8m0 i8 i16 i32 i64 u8 u16 u32 u64 bool

syntax match teDirective "\<\(alternate\|bind\|cluster\|dependent\|distribute\|hoist\|inline\|launch_bounds\|merge\|mma\|online\|overlap\|partial\|partition\|persistent\|pipeline\|place\|reorder\|resize\|roles\|scan\|serial\|skip\|split\|stage\|swizzle\|together\|unguard\|unroll\|vectorize\|widen\)\ze("

syntax match teNumber "\<\d\w*\>"
syntax match teFloat "\<\d\+\(\.\d\+\([eE][+-]\?\d\+\)\?\|[eE][+-]\?\d\+\)\>"
syntax match teLabel "\(\w\)\@<!'\h\w*"
syntax match tePragma "#\s*\h\w*"
syntax match teEscape "\\[nt\"\\]" contained
syntax region teString start=+"+ skip=+\\.+ end=+"+ oneline contains=teEscape
syntax match teComment "--.*$" contains=@Spell

highlight default link teDeclaration Keyword
highlight default link teControl Statement
highlight default link teOperator Operator
highlight default link teConstant Constant
highlight default link teOther Keyword
highlight default link teType Type
highlight default link teDirective Function
highlight default link teNumber Number
highlight default link teFloat Float
highlight default link teLabel Label
highlight default link tePragma PreProc
highlight default link teEscape SpecialChar
highlight default link teString String
highlight default link teComment Comment

let b:current_syntax = "te"
