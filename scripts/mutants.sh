#!/usr/bin/env bash
# make mutants: do the tests see? cargo-mutants changes one thing after the other in what decides
# whose bytes are whose, and the tests have to notice each change.
#
#   PART=wire|replies|names|pool|pipeline|shares|cancel|loss   only this part
#   JOBS=2                          so many at a time
#
# The first part takes minutes, each of the others much longer.

. "$(dirname "$0")/lib.sh"

need_cargo
if ! cargo mutants --version >/dev/null 2>&1; then
    [ "${DEPS:-yes}" != no ] ||
        fail "cargo-mutants is missing: cargo install cargo-mutants --locked"
    heading "Missing: cargo-mutants"
    cargo install cargo-mutants --locked
fi

# Nobody reads them, and they take longer than the tests.
export RUST_BACKTRACE=0
jobs=${JOBS:-$(nproc)}
survivors=0

# A part: its name, the packages whose tests have to notice, the package and the files it is in.
part() {
    local name=$1 tests=$2 package=$3 file files=()
    shift 3
    [ "${PART:-$name}" = "$name" ] || return 0
    for file in "$@"; do files+=(--file "$file"); done
    heading "$name"
    # No documentation has tests, and to look for them it would be built for each change.
    cargo mutants --package "$package" --test-package "$tests" "${files[@]}" --profile mutants \
        --jobs "$jobs" --minimum-test-timeout 40 --no-shuffle \
        --output "target/mutants/$name" -- --lib --tests || survivors=1
}

engine=crates/engine/src
seen_by=pgweir-engine,pgweir-proxy
mkdir -p target/mutants
part wire pgweir-wire pgweir-wire 'crates/wire/src/**'
part replies "$seen_by" pgweir-engine "$engine/reply.rs" "$engine/reply/**" "$engine/relay.rs" \
    "$engine/relay/**" "$engine/settle.rs"
part names "$seen_by" pgweir-engine "$engine/prepared/**" "$engine/units.rs" \
    "$engine/units/**"
part pool "$seen_by" pgweir-engine "$engine/pool.rs" "$engine/checkout.rs" "$engine/leave.rs"
part pipeline "$seen_by" pgweir-engine "$engine/pipeline.rs" "$engine/pipeline/**"
part shares "$seen_by" pgweir-engine "$engine/shares.rs" "$engine/commons.rs" "$engine/wants.rs" \
    "$engine/waits.rs"
part cancel "$seen_by" pgweir-engine "$engine/cancel.rs"
part loss "$seen_by" pgweir-engine "$engine/loss.rs"

[ "$survivors" = 0 ] || fail "Unnoticed: see missed.txt in target/mutants/*/mutants.out"
printf '\nEvery change was noticed.\n'
