// Files and folders, with errors in words.
#pragma once
#include "base/err.h"
#include "base/str.h"

#include <stdint.h>
#include <sys/types.h>

// Appends a regular file's bytes to out; a larger file than max is an error, not a part.
int io_read_file(const char *path, size_t max, struct str *out, struct err *e);
// Writes path by way of a synced temporary file and a rename: a reader sees the old or the new, whole.
int io_write_file(const char *path, const char *data, size_t n, mode_t mode, struct err *e);
int io_write_all(int fd, const void *data, size_t n); // through EINTR; -1 and errno
int io_mkdirs(const char *path, mode_t mode, struct err *e);
// Removes a file or a folder with all in it, without following links; a missing one is no error.
int io_remove(const char *path, struct err *e);
int io_copy_tree(const char *from, const char *to, struct err *e); // regular files and folders only
int io_sync_dir(const char *path);
bool io_exists(const char *path);
bool io_is_dir(const char *path);
char *io_join(const char *a, const char *b); // malloc'ed; b where it is absolute
// The folder of this program's own executable, and where its data is (share/ksmith or the source tree).
char *io_self_dir(void);
char *io_data_dir(const char *what); // "sessions", "themes"; NULL where there is none
// A new private folder under $TMPDIR (or /tmp); malloc'ed, NULL and an error where it cannot be made.
char *io_temp_dir(const char *prefix, struct err *e);
// $XDG_RUNTIME_DIR/ksmith, or /tmp/ksmith-UID: made 0700 and owned by this user, else an error.
char *io_runtime_dir(struct err *e);
// The number of the first CPUs this process may run on, up to max; returns how many.
int io_cpus(int *cpus, int max);
