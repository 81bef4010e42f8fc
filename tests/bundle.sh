#!/usr/bin/env bash
# tests/bundle.sh BUILD DIST: a folder DIST/ksmith-VERSION-ARCH that runs where it is put, for a machine where one is not
# root: the installed tree and the shared libraries that the programs need, except the C library's own. The programs
# look for libraries in ../lib/ksmith beside themselves first (the rpath that the Makefile sets), so nothing is set in
# the environment and nothing is inherited by the compilers and tools that ksmith starts.
set -eu
if [ $# -ne 2 ]; then
    echo "usage: tests/bundle.sh BUILD DIST" >&2
    exit 2
fi
cd "$(dirname "$0")/.."
build=$1 dist=$2
version=$(sed -n 's/^VERSION *:= *//p' Makefile)
name=ksmith-$version-$(uname -m)
root=$dist/$name
rm -rf "$root"
mkdir -p "$root/lib/ksmith"
tests/install.sh "$build" "$root"

# The C library belongs to the machine, as does its loader: mixing two of them crashes.
glibc='^(ld-linux.*|libc|libm|libdl|libpthread|librt|libresolv|libutil|libanl|libnsl|libnss_.*|libBrokenLocale|libmvec|libthread_db)\.so'
for p in "$root"/bin/*; do
    if ! readelf -d "$p" | grep -qE 'R(UN)?PATH.*\$ORIGIN/\.\./lib/ksmith'; then
        echo "bundle: $p does not look into ../lib/ksmith: link it with the Makefile's RPATH" >&2
        exit 1
    fi
    ldd "$p" | awk '$2 == "=>" { print $1, $3 }' | while read -r lib path; do
        [[ $lib =~ $glibc ]] && continue
        if [ ! -f "$path" ]; then
            echo "bundle: $p needs $lib, which is not found" >&2
            exit 1
        fi
        # The second program finds in lib/ksmith what the first one brought.
        [ -e "$root/lib/ksmith/$lib" ] || install -m 644 "$path" "$root/lib/ksmith/$lib"
    done
done
needs=$(find "$root/bin" "$root/lib" -type f -exec objdump -T {} + 2>/dev/null | grep -oE 'GLIBC_2\.[0-9]+' | sort -uV | tail -1)
cat >"$root/README" <<TEXT
ksmith $version for $(uname -m), with the libraries it needs.

Put this folder anywhere and run bin/ksmith; nothing has to be set. It needs a Linux with glibc ${needs#GLIBC_} or later, and
for the cpu backend a C compiler (gcc) on that machine. 'bin/ksmith doctor' says what is there and what is missing.
The manual: man -l share/man/man1/ksmith.1

lib/ksmith holds unchanged libraries of the system that this was built on; their licences are theirs.
TEXT
tar -C "$dist" -czf "$dist/$name.tar.gz" "$name"
echo "bundled $root ($(du -sh "$root" | cut -f1)) and $dist/$name.tar.gz"
