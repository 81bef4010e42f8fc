#!/usr/bin/env bash
# make bench: what the referee, the journal and the engine are worth on this machine. Takes long; prints figures, judges
# nothing. BENCH=quick makes it short.
set -u
cd "$(dirname "$0")/.." || exit 1
build=${BUILD:-build}
quick=${BENCH:-full}
echo "== replay of 100,000 candidates with six shapes each (asked: 1.5 s, 300 MB)"
[ -x "$build/bench_replay" ] && "$build/bench_replay"
n=750; m=200
[ "$quick" = quick ] && n=20 m=10
for kernel in sgemm dot jacobi2d saxpy; do
    for load in quiet loaded; do
        echo "== A/A: $((n / 2)) verdicts of identical code on $kernel, $load (asked: no winner)"
        python3 tests/power.py --kernel "$kernel" --mode aa --n "$((n / 2))" $([ "$load" = loaded ] && echo --load)
    done
    for less in 3 10; do
        echo "== power: $m tries with $less % less work on $kernel (asked: 3 %: 90 %, 10 %: 99 %)"
        python3 tests/power.py --kernel "$kernel" --mode power --less "$less" --n "$m"
    done
done
