#!/usr/bin/env bash
# make rare: which branches of engine and driver do the seeds of `make test` take seldom or never,
# and have no mark (crates/engine/src/marks.rs)? Not every one needs one: a lookup's other side, the
# reading of a text and what only weighs one way against another do not, nor what a caller or the
# one who is called has marked. Whoever adds a branch looks whether it is among them, and why.
#
#   MOST=1000          branches that are taken more often than this are not rare
#   SEEDS=8000         so many seeds
#   LLVM_BIN=FOLDER    llvm-profdata and llvm-cov of rustc's own LLVM, where rustup has none

. "$(dirname "$0")/lib.sh"

need_cargo

most=${MOST:-1000}
seeds=${SEEDS:-8000}
folder=$PWD/target/rare
mkdir -p "$folder"

llvm_bin() {
    local own
    own=$(rustc --print sysroot)/lib/rustlib/$(rustc -vV | sed -n 's/^host: //p')/bin
    [ -x "$own/llvm-cov" ] ||
        fail "llvm-cov is missing: rustup component add llvm-tools, or LLVM_BIN=FOLDER"
    printf '%s\n' "$own"
}
llvm=${LLVM_BIN:-$(llvm_bin)}

heading "The simulator, which counts"
RUSTFLAGS="-C instrument-coverage" LLVM_PROFILE_FILE=$folder/build.profraw \
    cargo build --quiet --target-dir "$folder/target" --profile sim --locked --package pgweir-sim
sim=$folder/target/sim/pgweir-sim

heading "$seeds seeds: some five minutes"
LLVM_PROFILE_FILE=$folder/sim.profraw "$sim" --seeds "0..$seeds" --once --no-shrink \
    >"$folder/said" 2>&1 || fail "A seed fails: make sim"
"$llvm/llvm-profdata" merge -sparse "$folder/sim.profraw" -o "$folder/sim.profdata"

# What is executed never or seldom, block by block: a line that opens one, the count of its first
# line, and no mark that stands directly in it.
heading "Branches that were taken at most $most times, and have no mark"
find crates/engine/src crates/proxy/src -name '*.rs' ! -path '*/tests*' | sort |
    while read -r file; do
        "$llvm/llvm-cov" show "$sim" -instr-profile="$folder/sim.profdata" \
            --show-instantiations=false --use-color=0 "$PWD/$file" 2>/dev/null |
            awk -v most="$most" -v file="$file" -f scripts/rare.awk
    done
