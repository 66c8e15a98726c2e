#!/usr/bin/env bash
# make fuzz: each target under libFuzzer, guided by what code an input reaches, until nothing new is
# reached any more.
#
#   QUIET_RUNS=10000000  how many inputs in a row have to reach no new edge of ours
#   SECONDS_EACH=600     how long each target at most; none: as long as it takes
#   TARGET=sql           only this one; more than one between spaces
#                        None: every decoder, and the configuration
#   KEEP=1               then adds what reaches code that nothing in crates/fuzz/corpus does to it
#
# What it finds by the way stays in target/fuzz-corpus, for the next time.

. "$(dirname "$0")/lib.sh"

quiet_runs=${QUIET_RUNS:-10000000}
seconds_each=${SECONDS_EACH:-}
corpus=crates/fuzz/corpus

# libFuzzer says at its end what was reached, and not when; so a target runs in rounds.
round=$((quiet_runs / 10 > 0 ? quiet_runs / 10 : 1))

need_cargo
if ! cargo fuzz --version >/dev/null 2>&1; then
    [ "${DEPS:-yes}" != no ] || fail "cargo-fuzz is missing: cargo install cargo-fuzz --locked"
    heading "Missing: cargo-fuzz"
    cargo install cargo-fuzz --locked
fi

# There is no unsafe code here for an address sanitizer to watch. Without it the stable compiler
# has all that is needed, and the runs are faster.
# What is compared is not traced either, which was half of the time: the words that matter are in
# the dictionaries.
options=(--fuzz-dir fuzz --target-dir target/fuzz --sanitizer none --no-trace-compares)

# Where what is built for this machine is put.
triple=$(rustc -vV | sed -n 's/^host: //p')

# What is not ours is not counted; see there.
compiler=$PWD/scripts/fuzz-rustc.sh

# libFuzzer on one target, with folders of inputs and options of its own. `words` is what the
# target itself says: how long inputs are, and where its words stand.
fuzz() {
    local target=$1
    shift
    RUSTC_WRAPPER=$compiler cargo fuzz run "${options[@]}" "$target" "$@" \
        "${words[@]}" -artifact_prefix="target/fuzz-failures/$target-" -timeout=20
}

# One round of a target. Sets `runs`, `edges`, which is how many are known at its end, and `new`,
# where those stand that it has found and that are ours.
run_round() {
    local target=$1 log=target/fuzz-failures/$1.log limits=(-runs="$round")
    [ -z "$seconds_each" ] || limits+=(-max_total_time="$((seconds_each - SECONDS + 1))")
    fuzz "$target" "$found" "$corpus/$target" -- -print_final_stats=1 -print_pcs=1 \
        "${limits[@]}" >"$log" 2>&1 || {
        tail -n 40 "$log"
        fail "Once more: PGWEIR_FUZZ_INPUT=FILE cargo test -p pgweir-fuzz --test replay"
    }
    edges=$(sed -n 's/^#[0-9]*.*cov: \([0-9]*\).*/\1/p' "$log" | tail -n 1)
    runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
    [ -n "$edges" ] && [ -n "$runs" ] || fail "This does not say what was reached: $log"
    new=$(own_edges "$target" "$log")
}

# Where those of the edges stand that a round says it has found and that are ours: whatever of the
# standard library was inlined there, the next around it is this repository's and no other crate's.
# What the compiler makes of the library's sorting or trees for types of ours is the library's.
own_edges() {
    local program=target/fuzz/$triple/release/$1 log=$2 loaded linked
    loaded=$(sed -n 's/.* PCs): [0-9]* \[0x\([0-9a-f]*\),.*/\1/p' "$log")
    linked=$(nm "$program" | sed -n 's/^\([0-9a-f]*\) . __start___sancov_pcs$/\1/p')
    [ -n "$loaded" ] && [ -n "$linked" ] || fail "This does not say where its edges are: $log"
    # What is printed is one byte behind the edge.
    sed -n 's/.*NEW_PC: 0x\([0-9a-f]*\).*/\1/p' "$log" |
        while read -r pc; do printf '%x\n' $((16#$pc - 1 - 16#$loaded + 16#$linked)); done |
        addr2line --exe "$program" --inlines --addresses |
        awk -v root="$PWD/" '
            /^0x/ { at = 0; next }
            /^\/rustc\// || at++ { next }
            index($0, root) == 1 { print substr($0, length(root) + 1) }' |
        tr '\n' ' '
}

# One target, until it has been quiet for long enough or its time is over. What is told of it at the
# end comes to `results`.
run_target() {
    local target=$1 quiet=0 all=0 verdict inputs
    found=target/fuzz-corpus/$target
    mkdir -p "$found" target/fuzz-words
    read -ra words < <(cargo run --quiet --package pgweir-fuzz --example libfuzzer -- \
        "$target" "target/fuzz-words/$target")
    [ ${#words[@]} -gt 0 ] || fail "Nothing is known of $target."
    SECONDS=0
    while [ "$quiet" -lt "$quiet_runs" ]; do
        if [ -n "$seconds_each" ] && [ "$SECONDS" -ge "$seconds_each" ]; then
            break
        fi
        run_round "$target"
        all=$((all + runs))
        if [ -n "$new" ]; then quiet=0; else quiet=$((quiet + runs)); fi
        echo "$target: $all runs in $SECONDS s, $edges edges, none of ours new in $quiet runs" \
            "${new:+(new: $new)}"
    done
    verdict=$([ "$quiet" -ge "$quiet_runs" ] && echo "quiet" || echo "time is over")
    inputs=$(find "$found" "$corpus/$target" -type f | wc -l)
    results+=("$(row "$target" "$all" "$quiet" "$edges" "$inputs" "$verdict")")
}

row() {
    printf '%-14s %12s %12s %7s %7s  %s' "$@"
}

# Adds what is needed to reach every edge to the inputs that are kept: few files, however often
# each edge is taken.
keep() {
    heading "$1: inputs to keep"
    fuzz "$1" "$corpus/$1" "target/fuzz-corpus/$1" -- -set_cover_merge=1 -use_counters=0
}

# Targets with a whole engine around them have to be named: what they can come to has no end, and
# `make sim` says more in the same time.
decoders=$(ls "$corpus" | grep -v '^engine_')
mapfile -t targets < <(tr ' ' '\n' <<<"${TARGET:-$decoders}")
mkdir -p target/fuzz-failures
results=("$(row target runs "last quiet" edges inputs "")")

heading "Build"
RUSTC_WRAPPER=$compiler cargo fuzz build "${options[@]}"

for target in "${targets[@]}"; do
    heading "$target"
    run_target "$target"
    [ "${KEEP:-}" != 1 ] || keep "$target"
done

heading "All is well"
printf '%s\n' "${results[@]}"
