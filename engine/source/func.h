// Finding a function definition by name, and its signature. Bodies are not looked into (see ast.h).
#pragma once
#include "base/err.h"
#include "source/ast.h"

struct task;

struct func_param {
    const char *name;    // "" where unnamed
    struct ctype *type;  // arrays as written: float A[N][M] has rank 2
    uint32_t first, end; // tokens
};

struct func {
    const char *name;
    struct ctype *ret;
    VEC(struct func_param) params;
    uint32_t first; // first token of the definition: attributes, templates, extern "C" (not its brace)
    uint32_t name_tok;
    uint32_t open_paren, close_paren;
    uint32_t open, close; // tokens of { and }
    bool is_static, is_inline, is_global /* __global__ */, is_template, is_extern_c, variadic;
    struct ast types; // owns what the parameters point to
};

// Finds the only definition of name. Errors: none, more than one, K&R parameters, made by a macro (said with
// line:column and, where names are near, "did you mean"). path is used in messages.
int func_find(struct func *f, const struct tokens *ts, const char *path, const char *name, bool cxx,
              struct err *e);
void func_free(struct func *f);
// The names of all function definitions of the file, in order.
typedef VEC(char *) func_names;
void func_list(const struct tokens *ts, func_names *out);
void func_names_free(func_names *n);
// Holds the signature against the task's [args]: count, order, names, pointer or value, element type (through
// dtype_info()->c_names), const of inputs. Every difference is one error "file:line:column".
int func_check_task(const struct func *f, const struct tokens *ts, const char *path, const struct task *task,
                    err_list *errors);
// A parameter as normalised words, for messages and signature comparison: "const float *restrict A".
void func_param_print(const struct func *f, size_t i, struct str *out);
// The whole signature normalised (parameter names kept, white space and comments not).
void func_signature(const struct func *f, struct str *out);
bool func_is_cxx(const char *path); // .cu, .cuh, .cc, .cpp, .hpp
