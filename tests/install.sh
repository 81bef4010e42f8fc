#!/usr/bin/env bash
# tests/install.sh BUILD PREFIX_DIR: copies the programs, manual pages, sessions, themes, prompts and shell completion.
# What BUILD or the tree does not have is left out, and said.
set -eu
if [ $# -ne 2 ]; then
    echo "usage: tests/install.sh BUILD PREFIX_DIR" >&2
    exit 2
fi
cd "$(dirname "$0")/.."
build=$1 prefix=$2
if [ ! -x "$build/ksmith" ]; then
    echo "install: there is no $build/ksmith: run make first" >&2
    exit 1
fi
for p in ksmith ksmith-cpu ksmith-cuda; do
    if [ -x "$build/$p" ]; then
        install -D -m 755 "$build/$p" "$prefix/bin/$p"
    else
        echo "install: without $p, which was not built"
    fi
done
for page in man/*.[1-9]; do
    [ -f "$page" ] && install -D -m 644 "$page" "$prefix/share/man/man${page##*.}/$(basename "$page")"
done
for data in sessions themes engine/prompts; do
    [ -d "$data" ] || continue
    to=$(basename "$data")
    # Only what is the session's own: a run in the source tree leaves .ksmith folders behind.
    (cd "$data" && find . -name .ksmith -prune -o -type f ! -name '.*' -print) | while read -r f; do
        install -D -m 644 "$data/$f" "$prefix/share/ksmith/$to/${f#./}"
    done
done
completion() {
    local shell=$1 to=$2 text
    if text=$("$build/ksmith" completion "$shell" 2>/dev/null) && [ -n "$text" ]; then
        mkdir -p "$(dirname "$to")"
        printf '%s\n' "$text" >"$to"
        chmod 644 "$to"
    else
        echo "install: without completion for $shell"
    fi
}
completion bash "$prefix/share/bash-completion/completions/ksmith"
completion zsh "$prefix/share/zsh/site-functions/_ksmith"
completion fish "$prefix/share/fish/vendor_completions.d/ksmith.fish"
echo "installed in $prefix"
