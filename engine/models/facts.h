// What the engine knows, as words for prompts (and for task.md of an exec proposer).
#pragma once
#include "base/json.h"
#include "base/str.h"

struct task;
// Signature, arguments, shapes, tolerance, what the caller guarantees, how it is built and launched.
void facts_task(const struct task *t, struct str *out);
// A worker's "opened" and preflight events: device, compiler, env, floor, ceilings. Either may be NULL.
void facts_hardware(const json *opened, const json *preflight, struct str *out);
// A verdict event or journal line: outcome, per-shape times and gains, % of the ceiling, static counters. One
// line a shape; "not judged yet" where v is NULL.
void facts_verdict(const json *v, struct str *out);
// The same in one line, for lists of attempts: "wrong at check: max ulp 3e5", "accepted, 1.12x [1.10, 1.14]".
void facts_outcome(const json *v, struct str *out);
// A compiler's or a run's log without what does not help: errors and warnings with their place first, paths
// of temporary folders shortened, repeated lines counted, control characters made harmless, at most max
// bytes.
void facts_log(const char *log, size_t max, struct str *out);
