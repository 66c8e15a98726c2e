#!/usr/bin/env bash
# make fuzz: each target under libFuzzer, guided by what code an input reaches.
#
#   scripts/fuzz.sh [TARGET…]     SECONDS_EACH=60, or RUNS=10000000 for each target instead
#
# What it finds by the way it keeps in target/fuzz-corpus, for the next time. KEEP=1 moves those
# inputs that reach code which crates/fuzz/corpus does not into that folder, to be committed.

. "$(dirname "$0")/lib.sh"

corpus=crates/fuzz/corpus
build=(--fuzz-dir fuzz --target-dir target/fuzz --sanitizer none)

if ! cargo fuzz --version >/dev/null 2>&1; then
    [ "${DEPS:-yes}" != no ] || fail "cargo-fuzz is missing: cargo install cargo-fuzz --locked"
    heading "Missing: cargo-fuzz"
    cargo install cargo-fuzz --locked
fi

targets=("$@")
[ ${#targets[@]} -gt 0 ] || mapfile -t targets < <(ls "$corpus")

# There is no unsafe code here for an address sanitizer to watch, so none is built in; and what
# is left of what cargo-fuzz asks of the compiler, the stable one has too.
heading "Building"
cargo fuzz build "${build[@]}"

for target in "${targets[@]}"; do
    heading "$target"
    found=target/fuzz-corpus/$target
    mkdir -p "$found" target/fuzz-failures
    limit=-max_total_time=${SECONDS_EACH:-60}
    [ -z "${RUNS:-}" ] || limit=-runs=$RUNS
    cargo fuzz run "${build[@]}" "$target" "$found" "$corpus/$target" -- \
        -artifact_prefix="target/fuzz-failures/$target-" -max_len=4096 -timeout=20 \
        -print_final_stats=1 "$limit" ||
        fail "Once more: PGWEIR_FUZZ_INPUT=FILE cargo test -p pgweir-fuzz --test replay"
    if [ "${KEEP:-}" = 1 ]; then
        cargo fuzz run "${build[@]}" "$target" "$corpus/$target" "$found" -- -merge=1 -max_len=4096
    fi
done

heading "All is well"
