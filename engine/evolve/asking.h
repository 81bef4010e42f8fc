// Models and outside commands at work beside the rules: requests run while the worker judges; their answers
// become candidates that wait for the worker like one brought by hand.
#pragma once
#include "base/err.h"

struct engine;
// Opens the proposers of the task's sections; none is no error. -1 with every error in errors.
int asking_open(struct engine *en, err_list *errors);
void asking_close(struct engine *en);
// Starts as many requests as the models, the budget and the queue of unjudged candidates allow.
void asking_next(struct engine *en);
// The share of a proposer ("rules", "llm", a model's name): what steering or [proposers] says, else 1; 0 is
// off.
double asking_share(const struct engine *en, const char *proposer);
// Requests under way: the search is not at its end while an answer may come.
int asking_running(const struct engine *en);
// Asks a model (NULL: the one that would be asked next) to explain a candidate, for the engineer who said so:
// the shares do not count, the budget does. tag names the request; its text is broadcast as it comes.
int asking_explain(struct engine *en, int64_t id, const char *model, char tag[24], struct err *e);
