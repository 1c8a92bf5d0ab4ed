"use strict";
// The colours of programs in the editor: words, numbers, comments and names in quotes, line by line.
(() => {
  const WORDS = new Set((
    "fn par seq fully static new reg let if else return anchor inout const and or not true false inf nan where assume combine " +
    "instr schedule reduce scan identity stride align injective monotone for in fragment asm effect rounding meaning mbarrier"
  ).split(" "));
  const TYPES = /^(?:[biuf]\d+|bf16|tf32|bool|f8e\w+)$/;

  CodeMirror.defineMode("te", () => ({
    token(stream) {
      if (stream.match(/--.*/)) return "comment";
      if (stream.match(/"(?:[^"\\]|\\.)*"?/)) return "string";
      if (stream.match(/'[A-Za-z_]\w*/)) return "def";
      if (stream.match(/#\w+/)) return "meta";
      if (stream.match(/0x[0-9a-fA-F_]+|\d[\d_]*(?:\.\d+)?(?:e[+-]?\d+)?/)) return "number";
      const word = stream.match(/[A-Za-z_]\w*/);
      if (word) return WORDS.has(word[0]) ? "keyword" : TYPES.test(word[0]) ? "type" : null;
      stream.next();
      return null;
    },
    lineComment: "--",
  }));
})();
