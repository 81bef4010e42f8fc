// Statements with some conditions known: the text of code in which comparisons are replaced by true or
// false, and what follows from them is gone (a branch never taken, "1 &&").
#pragma once
#include "rules/parts.h"

struct known {
    const struct node *node; // an expression below the statement
    bool value;
};
typedef VEC(struct known) knowns;
// Appends the statement or body with the conditions known.
void fold_body(const struct rule_source *s, const struct node *body, const knowns *k, struct str *out);
