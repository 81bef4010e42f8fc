// libFuzzer entry for the task parser: whatever the bytes, it ends with a task or with errors. Build and run:
//   clang -g -O1 -std=c17 -D_GNU_SOURCE -fsanitize=fuzzer,address,undefined -Iengine tests/fuzz/fuzz_task.c \
//       engine/base/*.c -lcjson -linih -lm -o fuzz_task && ./fuzz_task -dict=tests/fuzz/task.dict CORPUS
#include "base/task.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct task t;
    err_list errors = {0};
    int r = task_parse("task.ini", (const char *)data, n, "/s", NULL, 0, &t, &errors);
    if ((r == 0) != (errors.n == 0))
        abort();
    struct task_shape *s = NULL;
    size_t count = 0;
    if (r == 0)
        task_hidden_shapes(&t, 7, &s, &count);
    for (size_t i = 0; i < count; i++) {
        if (!task_allows(&t, s[i].dims))
            abort();
        task_shape_free(&s[i]);
    }
    free(s);
    task_free(&t);
    vec_free(&errors);
    return 0;
}
