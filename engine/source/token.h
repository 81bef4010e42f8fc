// A lossless token stream for C and CUDA C: every byte of the text belongs to exactly one token or to the
// white space and comments before it, so concatenating gives the text back and edits are splices of bytes.
// Nothing is expanded: a preprocessor line is one token, with its continuations and up to its newline.
#pragma once
#include "base/str.h"
#include "base/vec.h"

#include <stdint.h>

enum tok_kind {
    TOK_IDENT, // names and keywords
    TOK_NUM,
    TOK_STR,  // with its prefix; C++ raw strings too
    TOK_CHAR, // with its prefix
    TOK_PUNCT,
    TOK_PP,    // "#..." to the end of its last line (the newline is not part of it)
    TOK_OTHER, // a byte that no C token starts with, or an unfinished string or comment
    TOK_EOF,   // the last one: length 0, its lead is what follows the last real token
};

struct token {
    enum tok_kind kind;
    uint32_t at, len;   // bytes in the text
    uint32_t lead;      // where the white space and comments before it begin: [lead, at)
    uint32_t line, col; // 1-based; col counts bytes
    uint32_t match;     // ( [ { and their partners, and #if -> #else -> #endif: the partner's index; else 0
    uint16_t op;        // TOK_PUNCT: enum op_kind of the spelling
    bool inactive;      // stands in an #elif or #else branch, or under #if 0: never parsed, never edited
};

// Spellings of punctuation. The order is the order of the table in token.c.
enum op_kind {
    OP_NONE,
    OP_LPAREN,
    OP_RPAREN,
    OP_LBRACK,
    OP_RBRACK,
    OP_LBRACE,
    OP_RBRACE,
    OP_SEMI,
    OP_COMMA,
    OP_DOT,
    OP_ARROW,
    OP_ELLIPSIS,
    OP_SCOPE, // ::
    OP_COLON,
    OP_QUEST,
    OP_ASSIGN,
    OP_ADD_ASSIGN,
    OP_SUB_ASSIGN,
    OP_MUL_ASSIGN,
    OP_DIV_ASSIGN,
    OP_MOD_ASSIGN,
    OP_AND_ASSIGN,
    OP_OR_ASSIGN,
    OP_XOR_ASSIGN,
    OP_SHL_ASSIGN,
    OP_SHR_ASSIGN,
    OP_INC,
    OP_DEC,
    OP_ADD,
    OP_SUB,
    OP_MUL,
    OP_DIV,
    OP_MOD,
    OP_AND,
    OP_OR,
    OP_XOR,
    OP_NOT, // !
    OP_COMPL,
    OP_SHL,
    OP_SHR,
    OP_LT,
    OP_GT,
    OP_LE,
    OP_GE,
    OP_EQ,
    OP_NE,
    OP_LAND,
    OP_LOR,
    OP_HASH,
    OP_HASHHASH,
    OP_LAUNCH_OPEN,  // <<<
    OP_LAUNCH_CLOSE, // >>>
    OP_COUNT
};

struct comment {
    uint32_t at, len; // with its // or /* */, without the newline
    uint32_t line, col;
};

struct tokens {
    const char *src; // not owned, must outlive this; may hold any byte
    size_t len;
    VEC(struct token) t; // at least the TOK_EOF one
    VEC(struct comment) comments;
    bool balanced;              // every bracket of the active code has its partner
    uint32_t bad_line, bad_col; // the first bracket without one, where not balanced
};

// Never fails: bytes that are no C become TOK_OTHER. Texts over 2^31 bytes are cut to nothing (n is 0).
void tokens_read(struct tokens *ts, const char *src, size_t len);
void tokens_free(struct tokens *ts);
// Appends the text of tokens [first, end) with what stands between them; with `lead` also what stands before
// first.
void tokens_emit(const struct tokens *ts, size_t first, size_t end, bool lead, struct str *out);
bool token_is(const struct tokens *ts, size_t i, const char *spelling);
static inline bool token_op(const struct tokens *ts, size_t i, enum op_kind op)
{
    return i < ts->t.n && ts->t.v[i].kind == TOK_PUNCT && ts->t.v[i].op == op;
}
const char *op_text(enum op_kind op);
// Line and column of a byte offset, 1-based.
void text_place(const char *src, size_t len, size_t at, uint32_t *line, uint32_t *col);
// The word after '#' of a TOK_PP token ("define", "pragma", "" where there is none), in buf.
const char *token_pp_word(const struct tokens *ts, size_t i, char buf[32]);

// Identities for source dedup. The hash of the bytes, and the hash of what a compiler sees: tokens without
// comments and white space, but with annotations (knob, launch, scratch, flags), because those change what is
// built.
void source_hash(const char *src, size_t len, char out[65]);
void source_norm_hash(const char *src, size_t len, char out[65]);
