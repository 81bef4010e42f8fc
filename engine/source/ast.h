// A tree over the token ranges of one function body. What the parser does not understand becomes an N_OPAQUE
// node with its token range, never a wrong node; whoever analyses code treats such a node as "may do
// anything". All nodes live in the tree's arena; names are NUL-terminated copies in it. Parentheses are no
// nodes: a node's range includes the parentheses around it (paren is set), so its text can be pasted anywhere
// an operand may stand.
#pragma once
#include "source/token.h"

enum node_kind {
    // Statements.
    N_BLOCK,  // kids: statements; without braces where pragmas stand before the body of a loop or if
    N_DECL,   // kids: N_VAR, one per declarator; type of each in the N_VAR
    N_EXPR,   // a: expression
    N_FOR,    // a: init (N_DECL, expression or NULL), b: condition or NULL, c: step or NULL, d: body
    N_WHILE,  // a: condition, d: body
    N_DO,     // d: body, a: condition
    N_IF,     // a: condition, b: then, c: else or NULL
    N_SWITCH, // a: value, d: body
    N_CASE,   // a: value, NULL for default (the statement after it is its sibling)
    N_RETURN, // a: value or NULL
    N_BREAK,
    N_CONTINUE,
    N_GOTO,   // name
    N_LABEL,  // name (the statement after it is its sibling)
    N_PRAGMA, // a #pragma line
    N_PP,     // another preprocessor line; from #else or #elif on it covers all to #endif. op: 1 for #if-like
    N_EMPTY,
    N_OPAQUE, // statement or expression that was not understood; why says what stopped the parser
    // One declarator of an N_DECL: name, type, a: initialiser or NULL.
    N_VAR,
    // Expressions.
    N_IDENT, // name (C++: may be qualified, "a::b")
    N_NUM,   // name: the spelling
    N_STR,   // name: the spelling, adjacent ones joined by a space
    N_CHAR,
    N_UNARY,    // op: + - ! ~ * & ++ --; a
    N_POSTFIX,  // op: ++ --; a
    N_BINARY,   // op; a, b
    N_ASSIGN,   // op: = += ...; a: target, b: value
    N_COND,     // a ? b : c
    N_COMMA,    // a, b
    N_CALL,     // a: callee; kids: arguments
    N_INDEX,    // a[b]
    N_MEMBER,   // op: OP_DOT or OP_ARROW; a; name
    N_CAST,     // type; a
    N_SIZEOF,   // a: expression, or type where a is NULL; name: "sizeof" or "_Alignof"
    N_COMPOUND, // compound literal: type; a: N_INIT
    N_INIT,     // braces: kids; designators make it N_OPAQUE
    N_KINDS
};

enum { TYPE_MAX_RANK = 6 };

// A declared type, normalised: "const float *restrict A" is base "float", const_base, ptr 1, restrict bit 0.
struct ctype {
    const char
        *base; // words in a fixed order without qualifiers: "float", "unsigned long", "size_t", "struct s"
    bool const_base; // what is pointed to (or the value itself, where ptr and rank are 0) is const
    bool is_volatile, is_static, is_extern, is_register, is_inline, is_typedef, is_constexpr, is_ref;
    int ptr;                          // pointer depth
    unsigned const_ptr, restrict_ptr; // bit k: the k-th * from the left is const, restrict
    int rank;                         // array dimensions written after the name
    struct node *dim[TYPE_MAX_RANK];  // NULL for []
    bool ptr_to_array;                // (*A)[n]: rank counts the dimensions behind the pointer
    bool is_func;                     // a function or pointer to function: nothing more is known
};

struct node {
    enum node_kind kind;
    enum op_kind op;
    bool paren;          // the range includes parentheses around it
    uint32_t first, end; // tokens [first, end)
    const char *name;
    const char *why; // N_OPAQUE
    struct ctype *type;
    struct node *a, *b, *c, *d;
    struct node *kids, *next; // list of children; next sibling in the parent's list
    struct node *up;          // parent; NULL at the root
};

struct macro { // a #define of the file
    const char *name;
    const char *body; // its text, continuations joined
    bool function;    // function-like
    bool opaque;      // its value is not known: function-like, under an #if, defined twice or undefined again
    uint32_t token;
};

struct ast {
    const struct tokens *ts; // of the file; the tree does not own it
    struct node *root;       // N_BLOCK for bodies
    VEC(struct macro) macros;
    VEC(const char *) typedefs; // typedef names of the file, and "struct"-less C++ class names
    bool cxx;
    size_t opaque; // how many N_OPAQUE nodes
    struct arena_chunk *chunks;
    VEC(struct tokens *) extra; // streams of macro bodies and texts parsed later
};

// Parses the statements of the block whose '{' is token `open` of ts. cxx: CUDA C and C++ spellings may
// occur. Never fails; what is not understood is N_OPAQUE.
void ast_parse(struct ast *t, const struct tokens *ts, size_t open, bool cxx);
// Parses a free-standing expression into t's arena: NULL where the text is not exactly one expression. The
// ranges of its nodes mean nothing; use ast_print.
struct node *ast_parse_expr(struct ast *t, const char *text);
// Parses tokens [first, end) of t->ts as one expression (for macro-free contexts).
struct node *ast_parse_range(struct ast *t, size_t first, size_t end);
void ast_free(struct ast *t);
void *ast_alloc(struct ast *t, size_t n); // zeroed, freed with the tree
const char *ast_strn(struct ast *t, const char *s, size_t n);
const struct macro *ast_macro(const struct ast *t, const char *name);

// Bytes [*at, *at + *len) of a node in the file (parentheses around it included, comments before it not).
void node_bytes(const struct ast *t, const struct node *n, size_t *at, size_t *len);
// The node's own bytes, appended.
void node_text(const struct ast *t, const struct node *n, struct str *out);
int node_line(const struct ast *t, const struct node *n);
// Visits n and all below it in source order; visit returns false to skip what is below a node.
typedef bool node_visit(void *user, struct node *n);
void node_walk(struct node *n, node_visit *visit, void *user);
bool node_contains(const struct node *n, enum node_kind kind);
bool node_uses(const struct node *n,
               const char *name); // the identifier occurs below n (opaque text is searched too)
bool node_same(const struct node *a, const struct node *b); // equal but for parentheses and white space
const char *node_kind_name(enum node_kind k);
bool node_is_expr(const struct node *n);
// The value of an integer constant expression of literals (and object-like macros that are such); false
// otherwise.
bool node_const(const struct ast *t, const struct node *n, int64_t *value);

// Prints an expression from the tree, with parentheses exactly where precedence needs them.
struct subst { // identifier -> text; text is put in parentheses where its precedence needs it
    const char *name, *text;
};
void ast_print(struct ast *t, const struct node *n, const struct subst *s, size_t ns, struct str *out);
// The precedence ast_print gives the node: 1 comma ... 17 primary.
int node_prec(const struct node *n);
// Any statement or expression as its own bytes with identifiers replaced (members, labels and macro names of
// calls are not); the replacement is put in parentheses unless it is one token or already in them. Comments
// and layout stay.
void ast_clone(const struct ast *t, const struct node *n, const struct subst *s, size_t ns, struct str *out);
// Appends "const float *restrict" + name + "[n]" again from the type.
void ctype_print(struct ast *t, const struct ctype *ty, const char *name, struct str *out);
bool ctype_is_int(const struct ctype *ty);   // a plain integer value (no pointer, no array)
bool ctype_is_float(const struct ctype *ty); // float, double, half... value
