// ksmith-cuda: the referee for CUDA kernels. Speaks the worker protocol (ksmith-worker(7)) and never touches
// the GPU itself: with --card it is the process that does, with --nvrtc the one that compiles, with --child
// the cage that a reference in C runs in, and with --probe it says what this machine has.
#include "cpu/child.h"
#include "cuda/link.h"
#include "cuda/nvrtc.h"
#include "cuda/probe.h"
#include "cuda/referee.h"

#include <stdio.h>

int main(int argc, char **argv)
{
    if (argc > 1 && str_eq(argv[1], "--card"))
        card_main(argc > 2 ? argv[2] : NULL);
    if (argc > 1 && str_eq(argv[1], "--nvrtc"))
        nvrtc_main();
    if (argc > 1 && str_eq(argv[1], "--child"))
        child_main(argc, argv);
    if (argc > 1 && str_eq(argv[1], "--probe"))
        return cuda_probe();
    if (argc > 1) {
        fputs("usage: ksmith-cuda [--probe]\nIt reads requests as JSON lines; see ksmith-worker(7).\n",
              stderr);
        return 2;
    }
    return cuda_referee();
}
