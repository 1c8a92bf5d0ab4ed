/* The parenthesis of a call, which stands on the line of its name: `y = x` and `(m, at) max= …` below it are two statements. */

#include "tree_sitter/parser.h"

enum token { CALL };

void *tree_sitter_texpr_external_scanner_create(void) { return NULL; }

void tree_sitter_texpr_external_scanner_destroy(void *nothing) { (void)nothing; }

unsigned tree_sitter_texpr_external_scanner_serialize(void *nothing, char *buffer) {
    (void)nothing;
    (void)buffer;
    return 0;
}

void tree_sitter_texpr_external_scanner_deserialize(void *nothing, const char *buffer, unsigned length) {
    (void)nothing;
    (void)buffer;
    (void)length;
}

bool tree_sitter_texpr_external_scanner_scan(void *nothing, TSLexer *lexer, const bool *valid) {
    (void)nothing;
    if (!valid[CALL])
        return false;
    while (lexer->lookahead == ' ' || lexer->lookahead == '\t' || lexer->lookahead == '\r' || lexer->lookahead == '\f')
        lexer->advance(lexer, true);
    if (lexer->lookahead != '(')
        return false;
    lexer->advance(lexer, false);
    lexer->result_symbol = CALL;
    return true;
}
