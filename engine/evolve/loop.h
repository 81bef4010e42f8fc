// One poll loop: descriptors, timers and signals with callbacks, all on one thread. It measures its longest
// turn, since a turn over 50 ms is what makes steering feel dead.
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct loop;
typedef void loop_fd_fn(void *user, int fd, short revents); // POLLIN, POLLOUT, POLLHUP, POLLERR
typedef void loop_fn(void *user);
typedef void loop_signal_fn(void *user, int signal);

struct loop *loop_new(void);
void loop_free(struct loop *l);
// Watches fd for events (POLLIN | POLLOUT); a second call for the same fd replaces the first.
void loop_watch(struct loop *l, int fd, short events, loop_fd_fn *fn, void *user);
void loop_unwatch(struct loop *l, int fd);
// Calls fn once after ms; the id cancels it. Ids are never 0.
int loop_after(struct loop *l, int ms, loop_fn *fn, void *user);
void loop_cancel(struct loop *l, int id);
// What is ready on this descriptor goes before all others, in every turn: steering must not wait for streams.
void loop_urgent(struct loop *l, int fd);
// Takes these signals (0-terminated) through a descriptor instead of handlers; SIGPIPE is ignored.
void loop_signals(struct loop *l, const int *signals, loop_signal_fn *fn, void *user);
// Runs until loop_stop. loop_step runs one turn of at most wait_ms (-1: until something happens).
void loop_run(struct loop *l);
void loop_step(struct loop *l, int wait_ms);
void loop_stop(struct loop *l);
double loop_longest_turn_ms(const struct loop *l);
// The most CPU time of a turn: what the turn itself is to blame for, on a busy machine too.
double loop_longest_work_ms(const struct loop *l);
