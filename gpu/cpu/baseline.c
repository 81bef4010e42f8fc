// What the baseline shows on this machine's cores: right on every shape, its own error, its times; and the
// ceilings.
#include "cpu/judge.h"

#include "base/stats.h"
#include "cpu/ceiling.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

bool cpu_baseline_right(struct judge *j, json *problems)
{
    struct fault f = {0};
    for (size_t i = 0; i < j->test.n; i++) {
        struct precision one = {0};
        struct shape_data *s = j->test.v[i];
        struct side_spec spec;
        struct rig r;
        judge_spec(j, &j->baseline, &spec);
        bool ok = rig_open(&r, &j->task, &j->buffers, &s, 1, false, &f) && rig_start(&r, 0, &spec, &f);
        for (size_t k = 0; k < s->sets.n && ok; k++) {
            int64_t ns = 0;
            struct dataset *d = s->sets.v[k];
            if (d->useless)
                continue;
            rig_place(&r, s, PLACE_RANDOM, 1);
            ok = rig_run(&r, 0, d, 60, &ns, d->variant == VARIANT_PLAIN ? &one : NULL, &f);
            if (!ok && d->variant != VARIANT_PLAIN && f.status == STATUS_WRONG) {
                d->useless = true; // the baseline itself is not right for such contents
                f = (struct fault){0};
                ok = rig_start(&r, 0, &spec, &f);
                continue;
            }
            s->baseline_ns = fmax(s->baseline_ns, (double)ns);
        }
        rig_close(&r);
        s->error_sq = one.error_sq;
        s->wanted_sq = one.wanted_sq;
        if (!ok) {
            char msg[600];
            snprintf(msg, sizeof msg, "the baseline itself is %s on shape %s: %s", status_names[f.status],
                     s->shape->name, f.reason);
            preflight_problem(
                problems, msg,
                "Correct the kernel or the reference, or give [check] the tolerance that the kernel needs.");
            return false;
        }
    }
    return true;
}

bool cpu_baseline_times(struct judge *j, json *problems)
{
    struct fault f = {0};
    struct side_spec spec;
    struct rig r;
    judge_spec(j, &j->baseline, &spec);
    bool ok =
        rig_open(&r, &j->task, &j->buffers, j->bench.v, j->bench.n, false, &f) && rig_start(&r, 0, &spec, &f);
    for (size_t k = 0; k < j->bench.n && ok; k++) {
        struct shape_data *s = j->bench.v[k];
        double v[3];
        rig_place(&r, s, PLACE_RANDOM, 64);
        r.condition = j->task.cache == CACHE_COLD ? CONDITION_COLD : CONDITION_WARM;
        int n = 0;
        for (int i = 0; i < 3 && ok; i++) {
            int64_t ns = 0;
            ok = rig_run(&r, 0, s->sets.v[(size_t)i % s->sets.n], 120, &ns, NULL, &f);
            v[n++] = (double)ns;
            if (ns > 300000000)
                break;
        }
        s->baseline_ns = ok ? stats_quantile(v, (size_t)n, 0) : 0;
    }
    rig_close(&r);
    if (!ok)
        preflight_problem(problems, f.reason, "The baseline must run on every bench shape.");
    return ok;
}

void cpu_ceilings(struct judge *j, json *out)
{
    ceiling_measure(j->child_cpu, &j->copy_ceiling, &j->fma_ceiling);
    json_put_num(out, "copy_bytes_s", j->copy_ceiling);
    json_put_num(out, "fma_flops_s", j->fma_ceiling);
}
