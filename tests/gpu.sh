#!/usr/bin/env bash
# The tests that need a GPU: tests/gpu.sh [PARTS]. Not part of `make test`; on a machine without one they skip.
# Parts: plans modes race hostile tools sessions line.
set -u
cd "$(dirname "$0")/.." || exit 1
export BUILD=${BUILD:-build} LC_ALL=C.UTF-8
exec python3 tests/gpu/gpu.test "$@"
