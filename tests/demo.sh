#!/bin/sh
# make demo: the main job on this machine, with no GPU, no key and no network service. Under three minutes.
set -eu
build=$1
ksmith=$(cd "$build" && pwd)/ksmith
work=$(mktemp -d "${TMPDIR:-/tmp}/ksmith-demo.XXXXXX")
dir=$work/sgemm
"$ksmith" new sgemm-c "$dir"
echo
echo "demo: a naive C matrix product, evolved on this machine in $dir"
if [ -t 0 ] && [ -t 1 ] && [ -z "${DEMO_PLAIN:-}" ]; then
    echo "demo: the workbench opens on it: ? helps, d shows a diff, q leaves (the search goes on, and so does this demo)"
    sleep 2
    "$ksmith" run "$dir" --set budget.wall=${DEMO_WALL:-140}s
    "$ksmith" attach "$dir" --headless # to its end, where it has not come yet
else
    "$ksmith" run "$dir" --headless --set budget.wall=${DEMO_WALL:-140}s
fi
echo
"$ksmith" ls "$dir" --best 8
echo
echo "demo: the story as plain git tells it:"
git --git-dir="$dir/.ksmith/lineage.git" log --first-parent --format='  %h %s' main | head -n 12
echo
echo "demo: what became of the kernel (ksmith diff $dir champion):"
"$ksmith" diff "$dir" champion | head -n 60
echo
"$ksmith" show "$dir" champion
echo
echo "demo: the session is yours: ksmith ls|show|diff|tree|funnel $dir; run it on with: ksmith run $dir"
