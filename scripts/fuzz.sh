#!/usr/bin/env bash
# make fuzz: each target under libFuzzer, guided by what code an input reaches.
#
#   SECONDS_EACH=60  how long each
#   RUNS=10000000    how many inputs each, instead
#   TARGET=sql       only this one
#   KEEP=1           then adds what reaches code that nothing in crates/fuzz/corpus does to it
#
# What it finds by the way stays in target/fuzz-corpus, for the next time.

. "$(dirname "$0")/lib.sh"

limit=-max_total_time=${SECONDS_EACH:-60}
[ -z "${RUNS:-}" ] || limit=-runs=$RUNS

if ! cargo fuzz --version >/dev/null 2>&1; then
    [ "${DEPS:-yes}" != no ] || fail "cargo-fuzz is missing: cargo install cargo-fuzz --locked"
    heading "Missing: cargo-fuzz"
    cargo install cargo-fuzz --locked
fi

# There is no unsafe code here for an address sanitizer to watch. Without it the stable compiler
# has all that is needed, and the runs are faster.
options=(--fuzz-dir fuzz --target-dir target/fuzz --sanitizer none)

# libFuzzer on one target, with folders of inputs and options of its own.
fuzz() {
    local target=$1
    shift
    cargo fuzz run "${options[@]}" "$target" "$@" \
        -artifact_prefix="target/fuzz-failures/$target-" -max_len=4096 -timeout=20
}

corpus=crates/fuzz/corpus
mapfile -t targets < <([ -z "${TARGET:-}" ] && ls "$corpus" || echo "$TARGET")
mkdir -p target/fuzz-failures

for target in "${targets[@]}"; do
    heading "$target"
    found=target/fuzz-corpus/$target
    mkdir -p "$found"
    fuzz "$target" "$found" "$corpus/$target" -- -print_final_stats=1 "$limit" ||
        fail "Once more: PGWEIR_FUZZ_INPUT=FILE cargo test -p pgweir-fuzz --test replay"
    if [ "${KEEP:-}" = 1 ]; then
        # Few files: a set that covers the edges, however often each is taken.
        fuzz "$target" "$corpus/$target" "$found" -- -set_cover_merge=1 -use_counters=0
    fi
done

heading "All is well"
