#!/usr/bin/env bash
# Style and static checks of all that is ours. A tool that is missing is named as skipped; any finding fails.
# tests/lint.sh [FILE.c ...] looks only at these C files.
set -u
cd "$(dirname "$0")/.." || exit 1
failed=0
section() { printf '%-14s %s\n' "$1" "$2"; }
have() {
    command -v "$1" >/dev/null && return 0
    section "$1" "skipped: not installed"
    return 1
}
# Runs a check and prints its output only where it fails.
check() {
    local name=$1 out
    shift
    if out=$("$@" 2>&1); then
        section "$name" ok
    else
        printf '%s\n' "$out"
        section "$name" FAILED
        failed=1
    fi
}
files() { git ls-files --cached --others --exclude-standard -- "$@" | while read -r f; do [ -f "$f" ] && echo "$f"; done; }

if [ $# -gt 0 ]; then
    c_files=("$@") format_files=("$@")
else
    mapfile -t c_files < <(files 'engine/**.c' 'gpu/**.c' 'tui/**.c' 'engine/*.c' 'gpu/*.c' 'tui/*.c' | sort -u)
    mapfile -t format_files < <(files 'engine/**.[ch]' 'gpu/**.[ch]' 'tui/**.[ch]' 'tests/**.[ch]' engine/main.c | sort -u)
fi
read -r -a libs <<<"$(pkg-config --cflags libcjson inih libgit2 libcurl ncursesw 2>/dev/null)"
flags=(-std=c17 -D_GNU_SOURCE '-DKSMITH_VERSION="0"' -Iengine -Igpu -Itui -I.)
for l in "${libs[@]}"; do
    case $l in -D_XOPEN_SOURCE=* | -D_DEFAULT_SOURCE*) ;; *) flags+=("$l") ;; esac
done

# Two at a time.
tidy_all() {
    local f rc=0 n=0
    for f in "${c_files[@]}"; do
        (clang-tidy --quiet "$f" -- "${flags[@]}" 2>/dev/null || { echo "$f"; false; }) &
        n=$((n + 1))
        if [ $((n % 2)) -eq 0 ]; then
            wait -n || rc=1
        fi
    done
    while [ -n "$(jobs -r)" ]; do wait -n || rc=1; done
    return $rc
}
manuals() {
    # Other pages of ours are found only when they are installed.
    local out
    out=$(mandoc -T lint man/*.[0-9] 2>&1 | grep -vE 'referenced manual not found|outdated mandoc.db|trailing delimiter: Ss|unusual Xr order: ksmith-task')
    [ -z "$out" ] || { echo "$out"; return 1; }
}
# No file over 600 lines: parts that grow are split.
long_files() {
    local f n rc=0
    for f in "${c_files[@]}"; do
        n=$(wc -l <"$f")
        [ "$n" -le 600 ] || { echo "$f has $n lines; 600 is the limit"; rc=1; }
    done
    return $rc
}

have clang-format && check clang-format clang-format --dry-run -Werror "${format_files[@]}"
have clang-tidy && check clang-tidy tidy_all
have cppcheck && check cppcheck cppcheck -q --std=c11 --enable=warning,performance,portability --inline-suppr \
    --suppress=missingIncludeSystem --suppress=unmatchedSuppression --error-exitcode=1 -j 2 \
    -D_GNU_SOURCE '-DKSMITH_VERSION="0"' -Iengine -Igpu -Itui -I. "${c_files[@]}"
check length long_files
if [ $# -eq 0 ]; then
    have mandoc && check mandoc manuals
    mapfile -t scripts < <({ files 'tests/**.sh' 'tests/*.sh' 'tests/**.test' tests/run tests/crash/run .ci/run; } | sort -u |
        while read -r f; do head -1 "$f" | grep -q python || echo "$f"; done)
    have shellcheck && check shellcheck shellcheck -x --severity=warning "${scripts[@]}"
fi
exit $failed
