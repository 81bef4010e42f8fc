// What the parts of the task parser share; nobody else includes this.
#pragma once
#include "base/task.h"

enum task_layer { LAYER_CONFIG, LAYER_TASK, LAYER_SET };

// One key = value, of whichever source.
struct task_item {
    char *section, *name; // [section name]; name is NULL without one
    char *key, *value;
    char *path;
    int line, key_column, value_column;
    enum task_layer layer;
};

struct task_parser {
    struct task *t;
    err_list *errors;
    VEC(struct task_item) items;
    const char *task_path;
    size_t errors_before; // those of the list's owner
    bool files;           // look whether the kernel and the reference exist
};

// Adds an error at byte `at` of the item's value, or at its key where at is negative. Returns -1.
__attribute__((format(printf, 5, 6))) int task_error(struct task_parser *p, const struct task_item *item,
                                                     int at, const char *hint, const char *fmt, ...);
// The same with the hint "Did you mean 'x'?", or the list of what there is.
__attribute__((format(printf, 6, 7))) int task_error_nearest(struct task_parser *p,
                                                             const struct task_item *item, int at,
                                                             const char *word, const char *const *known,
                                                             const char *fmt, ...);

// task_read.c: the lines of the config, the file and --set become items
void task_read_layer(struct task_parser *p, const char *path, enum task_layer layer, const char *text,
                     size_t len);
void task_read_override(struct task_parser *p, const char *text);
void task_item_free(struct task_item *it);

// task_keys.c
const struct task_key *task_key_find(const char *section, const char *key);
bool task_section_known(const char *section, bool *named, bool *in_config);
const char *const *task_sections(void);                                // NULL-terminated
int task_section_keys(const char *section, const char **out, int max); // names of its keys; returns how many

// task_set.c: one function per kind of value
typedef int task_setter(struct task_parser *, const struct task_key *, const struct task_item *);
task_setter task_set_text, task_set_name, task_set_choice, task_set_backend, task_set_yes, task_set_number,
    task_set_numbers, task_set_int, task_set_int64, task_set_seed, task_set_duration, task_set_expr,
    task_set_exprs, task_set_flags, task_set_words, task_set_line, task_set_function, task_set_project,
    task_set_allow, task_set_tolerance, task_set_url, task_set_env, task_set_weight, task_set_proposer;
// task_args.c, task_shapes.c
task_setter task_set_arg, task_set_shape;
// Words of a value, with their places: fills at/len; returns false at the end. Brackets keep blanks together.
struct task_word {
    const char *s;
    int at, len;
};
bool task_word_next(const char *value, int *pos, struct task_word *w);
int task_parse_expr(struct task_parser *p, const struct task_item *item, int at, const char *text, int len,
                    struct expr **out);

// What depends on the values of a shape: require, sizes of buffers, metrics. All names must be known.
void task_check_shape(struct task_parser *p, const struct task_item *it, const struct task_shape *s);

// task_check.c: what only the whole file can show
void task_check(struct task_parser *p);
// The item that gave a key last; NULL where none did.
const struct task_item *task_item_of(const struct task_parser *p, const char *section, const char *key);
// An error without an item: the key is missing.
void task_missing(struct task_parser *p, const char *section, const char *hint, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
bool task_lookup_dim(void *user, const char *name, int64_t *value);
struct task_dims { // user of task_lookup_dim
    const struct task *t;
    const int64_t *dims;
};
// A path relative to root, cleaned of . and ..; NULL where it leaves root. malloc'ed.
char *task_path_inside(const char *root, const char *path);
