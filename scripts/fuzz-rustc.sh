#!/usr/bin/env bash
# The compiler for `make fuzz`, as cargo's RUSTC_WRAPPER: what is not in this repository is compiled
# without the counters of libFuzzer. An edge is one of pgweir's own code; the branches of a TOML
# parser or of SHA-256 are others' to search, and counting them costs time.

set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
case ${CARGO_MANIFEST_DIR:-$here}/ in
"$here"/*) exec "$@" ;;
esac

arguments=()
for argument in "$@"; do
    case $argument in
    -Cpasses=sancov-module | -Cllvm-args=-sanitizer-coverage-*) ;;
    *) arguments+=("$argument") ;;
    esac
done
exec "${arguments[@]}"
