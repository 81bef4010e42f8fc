// Shared by the files of the parser only.
#pragma once
#include "source/ast.h"

struct parser {
    struct ast *t;
    uint32_t at, end; // tokens of t->ts
    int depth;        // open recursions of the parser
    int chain;        // operators of the present statement, which nest to the left without a recursion
};
// A candidate of 400,000 brackets must not end the process: the parser and every walk over the tree recurse,
// so what is deeper or longer than anybody writes is opaque.
enum { PARSE_MAX_DEPTH = 200, PARSE_MAX_CHAIN = 2000 };
struct node *ast_node(struct parser *p, enum node_kind kind, uint32_t first);
const char *ast_spelling(struct parser *p, uint32_t tok);
bool ast_keyword(const struct parser *p, uint32_t tok);            // a word that is no name of a value
const char *ast_join(struct ast *t, const char *a, const char *b); // "a b"
// Is name no macro, or one whose text is a value made of numbers and such macros? Others may hide anything.
bool ast_macro_is_value(const struct ast *t, const char *name, int depth);
void ast_adopt(struct node *parent);                 // sets `up` of everything directly below
struct node *parse_expr(struct parser *p);           // with commas; NULL where it is none
struct node *parse_assign(struct parser *p);         // without
struct node *parse_init(struct parser *p);           // assignment expression or braces
bool parse_type(struct parser *p, struct ctype *ty); // specifiers; false where there are none
bool parse_declarator(struct parser *p, struct ctype *ty, const char **name); // * qualifiers name [dims]
bool starts_type(struct parser *p, uint32_t tok);
struct node *parse_statement(struct parser *p);
void parse_block(struct parser *p, struct node *block); // statements up to p->end
