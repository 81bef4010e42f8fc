#include "models/key.h"

#include "models/run.h"

#include <string.h>

enum { KEY_TIMEOUT_MS = 30000, KEY_MAX = 64 << 10 };

struct slot {
    struct keyring *ring;
    struct model *m;
    struct run *run;
    unsigned age;
    struct err failed; // .msg empty: not failed
};

struct keyring {
    struct loop *loop;
    struct model *models;
    struct slot *slots;
    size_t n;
};

struct keyring *keyring_new(struct loop *loop, struct model *models, size_t n)
{
    struct keyring *k = xcalloc(1, sizeof *k);
    *k = (struct keyring){loop, models, xcalloc(n + 1, sizeof *k->slots), n};
    for (size_t i = 0; i < n; i++)
        k->slots[i] = (struct slot){.ring = k, .m = &models[i]};
    return k;
}

void keyring_free(struct keyring *k)
{
    if (!k)
        return;
    for (size_t i = 0; i < k->n; i++)
        if (k->slots[i].run)
            run_cancel(k->slots[i].run);
    free(k->slots);
    free(k);
}

static struct slot *slot_of(const struct keyring *k, const struct model *m)
{
    return &k->slots[m - k->models];
}

unsigned keyring_age(const struct keyring *k, const struct model *m)
{
    return slot_of(k, m)->age;
}

void keyring_forgive(struct keyring *k, const struct model *m)
{
    slot_of(k, m)->failed = (struct err){0};
}

void keyring_drop(struct keyring *k, struct model *m, unsigned age)
{
    struct slot *s = slot_of(k, m);
    if (s->age != age || !m->key)
        return;
    explicit_bzero(m->key, strlen(m->key));
    free(m->key);
    m->key = NULL;
}

static void on_printed(void *user, const struct run_result *r)
{
    struct slot *s = user;
    struct str how = {0};
    s->run = NULL;
    s->age++;
    if (r->end.timed_out || r->end.signal || r->end.status != 0) {
        proc_describe(&r->end, &how);
        // What it printed is not shown: it may be half a key.
        err_set(&s->failed, ERR_FAIL, "Run the command by hand and see what it says.",
                "model %s: key_cmd: %s", s->m->name, str_c(&how));
        str_free(&how);
    } else {
        model_set_key(s->m, str_c(&r->out), &s->failed);
    }
    if (r->out.s)
        explicit_bzero(r->out.s, r->out.len);
}

enum key_state keyring_get(struct keyring *k, struct model *m, struct err *e)
{
    struct slot *s = slot_of(k, m);
    if (m->key || (!m->key_env && !m->key_cmd))
        return KEY_READY;
    if (s->run)
        return KEY_PENDING;
    if (!s->failed.msg[0] && m->key_env) {
        s->age++;
        if (model_set_key(m, getenv(m->key_env), &s->failed) == 0)
            return KEY_READY;
    }
    if (!s->failed.msg[0]) {
        const char *const argv[] = {"sh", "-c", m->key_cmd, NULL};
        struct run_spec spec = {
            .argv = argv, .limit = KEY_MAX, .timeout_ms = KEY_TIMEOUT_MS, .fn = on_printed, .user = s};
        s->run = run_start(k->loop, &spec, &s->failed);
        if (s->run)
            return KEY_PENDING;
    }
    *e = s->failed;
    return KEY_FAILED;
}
