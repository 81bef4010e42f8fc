#!/bin/sh
# Installs what the build needs and this machine lacks, and says so. Debian and Ubuntu; elsewhere it names the packages.
set -eu
want="gcc make pkg-config git libcjson-dev libinih-dev libgit2-dev libcurl4-openssl-dev libncurses-dev binutils python3"
missing=""
for p in $want; do
    case $p in
    gcc | make | git | python3) command -v "$p" >/dev/null 2>&1 || missing="$missing $p" ;;
    pkg-config) command -v pkg-config >/dev/null 2>&1 || missing="$missing $p" ;;
    binutils) command -v objdump >/dev/null 2>&1 || missing="$missing $p" ;;
    *) dpkg -s "$p" >/dev/null 2>&1 || missing="$missing $p" ;;
    esac
done
[ -n "$missing" ] || { echo "deps: everything is installed"; exit 0; }
if ! command -v apt-get >/dev/null 2>&1; then
    echo "deps: please install with your package manager what Debian calls:$missing" >&2
    exit 1
fi
as_root=""
if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null 2>&1 || { echo "deps: need root or sudo to install:$missing" >&2; exit 1; }
    as_root=sudo
fi
echo "deps: installing$missing"
$as_root apt-get update -qq
# shellcheck disable=SC2086
$as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null
echo "deps: done"
