// The syntax of `.te` files for editors. It takes every text that the compiler's parser takes, and some that it does not: words of
// the language may be names where they mean nothing, and what a bind writes to may be anything that looks like a place.
// `tree-sitter generate` makes `src` from it.

/** One or more, between commas. */
const between = (rule) => seq(rule, repeat(seq(",", rule)));

/** The same, and the last may be followed by a comma. */
const listed = (rule) => seq(between(rule), optional(","));

/** One or more, each on a line of its own or after a comma. */
const clauses = (rule) => seq(rule, repeat(seq(optional(","), rule)), optional(","));

/** Operators by how they bind, the loosest first. */
const LEVELS = [["or"], ["and"], ["not"], ["==", "!=", "<", "<=", ">", ">="], ["+", "-"], ["*", "/", "%"], ["minus"], ["**"]];
const level = (operator) => LEVELS.findIndex((some) => some.includes(operator));
const POSTFIX = LEVELS.length;

/** An operation of two operands for each of some levels. */
const binaries = (operand, levels) =>
  levels.flatMap((operators) =>
    operators.map((operator) =>
      (operator === "**" ? prec.right : prec.left)(
        level(operator),
        seq(field("left", operand), field("operator", operator), field("right", operand)),
      ),
    ),
  );

module.exports = grammar({
  name: "texpr",
  extras: ($) => [/[ \t\r\n\f\ufeff]/, $.comment],
  word: ($) => $.identifier,
  // The parenthesis of a call: `src/scanner.c` says why it is another one.
  externals: ($) => [$._call],
  supertypes: ($) => [$._item, $._statement, $._expression],

  rules: {
    source_file: ($) => repeat($._item),
    _item: ($) => choice($.function, $.combiner, $.instruction, $.schedule),

    comment: (_) => token(seq("--", /[^\n]*/)),
    identifier: (_) => /[A-Za-z_][A-Za-z0-9_]*('[0-9]+)*/,
    label: (_) => /'[A-Za-z_][A-Za-z0-9_]*/,
    integer: (_) => /0[xX][0-9a-fA-F]+|[0-9]+/,
    float: (_) => /[0-9]+(\.[0-9]+([eE][+-]?[0-9]+)?|[eE][+-]?[0-9]+)/,
    measure: (_) => /[0-9]+(\.[0-9]+)?[A-Za-z_][A-Za-z0-9_]*/,
    string: ($) => seq('"', repeat(choice($.escape_sequence, token.immediate(prec(1, /[^"\\\n]+/)))), token.immediate('"')),
    escape_sequence: (_) => token.immediate(/\\[nt"\\]/),
    _strings: ($) => repeat1($.string),
    _type_name: ($) => alias($.identifier, $.type_identifier),

    // Functions

    function: ($) =>
      seq(
        "fn",
        field("name", $.identifier),
        field("parameters", $.parameters),
        optional(seq(":", field("results", choice($.result, $.results)))),
        repeat(choice($.where_clause, $.assume_clause, $.pragma)),
        field("body", $.block),
      ),
    parameters: ($) => seq("(", optional(listed(choice($.parameter, $.constant_parameter))), ")"),
    parameter: ($) =>
      seq(
        optional("inout"),
        field("name", $.identifier),
        ":",
        field("type", $.type),
        repeat(choice($.stride, $.alignment)),
      ),
    constant_parameter: ($) =>
      seq(
        "const",
        field("name", $.identifier),
        ":",
        field("type", $._type_name),
        optional(seq("=", field("default", $._expression))),
      ),
    stride: ($) => seq("stride", "(", optional(listed($._expression)), ")"),
    alignment: ($) => seq("align", "(", $.integer, ")"),
    results: ($) => seq("(", listed($.result), ")"),
    result: ($) => seq($.type, optional($.alignment)),
    type: ($) => prec.right(seq(field("element", $._type_name), optional(field("shape", $.shape)))),
    barriers: ($) => prec.right(seq("mbarrier", "(", field("arrivals", $._expression), ")", optional(field("shape", $.shape)))),
    shape: ($) => seq("[", optional(listed($._expression)), "]"),
    where_clause: ($) => prec.right(seq("where", clauses($._expression))),
    assume_clause: ($) => prec.right(seq("assume", clauses(choice($.range, $.property)))),
    range: ($) =>
      seq(field("name", $.identifier), "in", field("low", $._expression), "..", field("high", $._expression)),
    property: ($) => seq(choice("injective", "monotone"), "(", field("name", $.identifier), ")"),

    combiner: ($) =>
      seq(
        "combine",
        field("name", $.identifier),
        field("parameters", $.parameters),
        ":",
        field("result", $.type),
        "identity",
        field("identity", $._expression),
        field("body", $.block),
      ),

    // Instructions of lanes

    instruction: ($) =>
      seq(
        "instr",
        field("name", $.identifier),
        field("parameters", $.parameters),
        "{",
        repeat(choice($.fragment, $.template, $.effect, $.rounding, $.meaning)),
        "}",
      ),
    fragment: ($) => seq("fragment", field("operand", $.identifier), ":", field("layout", $.raw), ";"),
    template: ($) => seq("asm", field("target", $._strings), ":", field("text", $._strings), ";"),
    effect: ($) => seq("effect", $.raw, ";"),
    rounding: ($) => seq("rounding", $.raw, ";"),
    meaning: ($) => seq("meaning", field("body", $.block)),
    raw: (_) => repeat1(choice(/[^\s;{}"\-]+/, "-", /"([^"\\\n]|\\[^\n])*"/)),

    // Schedules: arguments are words, numbers, strings, groups, or arithmetic on sizes

    schedule: ($) =>
      seq(
        "schedule",
        field("function", $.identifier),
        optional(field("name", $._strings)),
        optional(seq("for", field("target", $.identifier))),
        "{",
        repeat($.directive),
        "}",
      ),
    directive: ($) =>
      seq(
        field("name", $.identifier),
        field("arguments", $.arguments),
        optional(seq("->", field("results", choice($.identifier, $.names)))),
      ),
    pragma: ($) => prec.right(seq("#", field("name", $.identifier), optional(field("arguments", $.arguments)))),
    names: ($) => seq("(", optional(listed($.identifier)), ")"),
    arguments: ($) => seq(choice("(", $._call), optional(listed($.argument)), ")"),
    argument: ($) => seq(optional(seq(field("key", $.identifier), choice("=", ":"))), field("value", $._value)),
    _value: ($) => choice($._strings, $.words, $._term),
    words: ($) => seq($._piece, repeat1($._piece)),
    _piece: ($) => choice($.identifier, $.integer, $.measure, $.dotted),
    dotted: ($) => seq($.identifier, repeat1(seq(".", $.identifier))),
    _term: ($) =>
      choice(
        $._piece,
        $.float,
        alias("inf", $.infinity),
        alias($.group, $.arguments),
        alias($.term_call, $.call),
        alias($.term_unary, $.unary),
        alias($.term_binary, $.binary),
      ),
    group: ($) => seq("(", optional(listed($.argument)), ")"),
    term_call: ($) => seq(field("function", $.identifier), field("arguments", $.call_arguments)),
    term_unary: ($) => prec(level("minus"), seq(field("operator", "-"), field("operand", $._term))),
    term_binary: ($) => choice(...binaries($._term, [["+", "-"], ["*", "/", "%"]])),

    // Statements

    block: ($) => seq("{", repeat($._statement), "}"),
    _statement: ($) =>
      choice(
        $.loop,
        $.static_for,
        $.new,
        $.registers,
        $.let,
        $.if,
        $.anchor,
        $.assembler,
        $.use,
        $.bind,
        $.return,
        $.call,
      ),
    loop: ($) =>
      seq(
        choice(seq(optional("fully"), "par"), "seq"),
        between(field("extent", $._expression)),
        choice(seq("|", between(field("index", $.identifier)), "|"), between(field("index", $.identifier))),
        repeat(choice(field("label", $.label), $.reduce, $.scan, $.pragma)),
        field("body", $.block),
      ),
    reduce: ($) => seq("reduce", "(", listed($.identifier), ")"),
    scan: ($) => seq("scan", "(", listed($.identifier), ")"),
    static_for: ($) =>
      seq(
        "static",
        "for",
        field("index", $.identifier),
        "in",
        field("low", $._expression),
        "..",
        field("high", $._expression),
        field("body", $.block),
      ),
    new: ($) =>
      seq(
        "new",
        field("name", $.identifier),
        ":",
        field("type", choice($.type, $.barriers)),
        optional(seq("=", field("value", $._expression))),
      ),
    registers: ($) =>
      seq(
        "reg",
        field("name", $.identifier),
        optional(seq(":", field("type", $.type))),
        optional(seq("=", field("value", $._expression))),
      ),
    let: ($) =>
      seq("let", field("name", choice($.identifier, $.names)), "=", field("value", $._expression)),
    if: ($) =>
      seq(
        "if",
        field("condition", $._expression),
        field("then", $.block),
        optional(seq("else", field("else", choice($.if, $.block)))),
      ),
    anchor: ($) => seq("anchor", choice($._expression, $.use)),
    assembler: ($) => seq("asm", choice("(", $._call), $._strings, repeat(seq(",", $._expression)), optional(","), ")"),
    use: ($) =>
      seq("instr", field("instruction", $.identifier), "(", optional(listed($._expression)), ")", field("body", $.block)),
    bind: ($) => seq(field("place", $._place), field("operator", $._update), field("value", $._expression)),
    _place: ($) => choice($.identifier, alias($.place_element, $.subscript), alias($.places, $.tuple)),
    place_element: ($) => seq(field("value", choice($._place, $.call)), "[", optional(listed($._index)), "]"),
    places: ($) => seq("(", listed($._place), ")"),
    _update: ($) => choice("=", "+=", "-=", "*=", alias($.word_update, $.update)),
    word_update: ($) => seq(choice($.identifier, "and", "or"), "="),
    return: ($) => prec.right(seq("return", between($._expression))),

    // Expressions

    _expression: ($) =>
      choice(
        $.identifier,
        $.integer,
        $.float,
        $.boolean,
        $.infinity,
        $.nan,
        $.call,
        $.subscript,
        $.unary,
        $.binary,
        $.parenthesized,
        $.tuple,
      ),
    boolean: (_) => choice("true", "false"),
    infinity: (_) => "inf",
    nan: (_) => "nan",
    call: ($) => seq(field("function", $.identifier), field("arguments", $.call_arguments)),
    call_arguments: ($) => seq(alias($._call, "("), optional(listed(choice($._expression, $.named_argument))), ")"),
    named_argument: ($) => seq(field("key", $.identifier), "=", field("value", $._expression)),
    subscript: ($) => prec(POSTFIX, seq(field("value", $._expression), "[", optional(listed($._index)), "]")),
    _index: ($) => choice($._expression, $.slice),
    slice: ($) =>
      seq(
        optional(field("low", $._expression)),
        ":",
        optional(choice(field("high", $._expression), seq("+", field("length", $._expression)))),
      ),
    unary: ($) =>
      choice(
        prec(level("minus"), seq(field("operator", "-"), field("operand", $._expression))),
        prec(level("not"), seq(field("operator", "not"), field("operand", $._expression))),
      ),
    binary: ($) =>
      choice(...binaries($._expression, LEVELS.filter(([first]) => !["not", "minus"].includes(first)))),
    parenthesized: ($) => seq("(", $._expression, ")"),
    tuple: ($) => seq("(", $._expression, ",", optional(listed($._expression)), ")"),
  },
});
