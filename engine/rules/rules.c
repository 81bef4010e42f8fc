// The table of all rules, in the order in which a listing shows them.
#include "rules/rule.h"

extern const struct rule rule_interchange, rule_simd, rule_tile;

const struct rule *const rule_table[] = {&rule_interchange, &rule_simd, &rule_tile};
const size_t rule_table_n = countof(rule_table);
