#!/usr/bin/env bash
# make planted: does the simulator see? Each patch in crates/sim/planted is a bug. One after the
# other is planted in a copy of the sources, and seeds are run until one fails. The simulator alone
# has to find it, as what its patch says, and from outside: the engine's assertions are left out.
#
#   BUG=permit     only those with this in their names
#   SEEDS=20000    so many seeds each, at most

. "$(dirname "$0")/lib.sh"

need_cargo

folder=$PWD/target/planted
tree=$folder/tree
seeds=${SEEDS:-20000}

# A copy of what git knows or would add. Its files are new, so that nothing that was built with a
# bug in it is taken for what they make.
copy() {
    rm -rf "$tree"
    mkdir -p "$tree"
    git -c safe.directory='*' ls-files -z --cached --others --exclude-standard |
        while IFS= read -r -d '' file; do [ ! -f "$file" ] || printf '%s\0' "$file"; done |
        tar --create --null --files-from - | tar --extract --touch --directory "$tree"
}

# git apply in the copy, which is no part of the checkout that it lies in.
apply() {
    GIT_CEILING_DIRECTORIES=$folder git -C "$tree" apply --whitespace=nowarn "$@"
}

# The simulator is built as `make sim` does it, but for the assertions, and as fast as possible:
# what it finds comes within few seeds.
build() {
    CARGO_PROFILE_SIM_DEBUG_ASSERTIONS=false CARGO_PROFILE_SIM_OPT_LEVEL=1 CARGO_INCREMENTAL=1 \
        cargo build --quiet --manifest-path "$tree/Cargo.toml" --target-dir "$folder/target" \
        --profile sim --locked --package pgweir-sim
}

# Finds the first seed that fails, and why, as far as one line says it.
simulate() {
    local status=0
    timeout 600 "$folder/target/sim/pgweir-sim" --seeds "0..$1" --no-shrink \
        >"$folder/said" 2>&1 || status=$?
    found=$(sed -n 's/^seed \([0-9]*\) failed after [^:]*: \(.*\)/\1 \2/p' "$folder/said" |
        sort -n | head -n 1)
    # Of a time that is over it says nothing.
    [ -n "$found" ] || [ "$status" = 0 ] || [ "$status" = 124 ] ||
        fail "It ends with $status and names no seed: see $folder/said"
}

# Whether a bug is to be seen as this invariant, by the second line of its patch.
expected() {
    sed -n '2s/^Seen as: \(.*\)\.$/\1/p' "$2" | tr -d ' ' | tr , '\n' | grep -qx "$1"
}

heading "The simulator without a bug"
copy
build
simulate 200
[ -z "$found" ] || fail "It finds what nobody has planted: $found"

missed=()
for patch in "$PWD"/crates/sim/planted/*"${BUG:-}"*.patch; do
    name=$(basename "$patch" .patch)
    heading "$name: $(head -n 1 "$patch")"
    apply "$patch" || fail "It does not apply to the sources any more."
    build || fail "With it the sources cannot be built any more."
    simulate "$seeds"
    invariant=${found#* }
    if [ -n "$found" ] && expected "${invariant%%:*}" "$patch"; then
        echo "seed ${found%% *}: $invariant"
    elif [ -n "$found" ]; then
        echo "seed ${found%% *} fails as something else: $invariant"
        missed+=("$name")
    else
        echo "None of $seeds seeds has found it."
        missed+=("$name")
    fi
    apply --reverse "$patch"
done

[ ${#missed[@]} -eq 0 ] || fail "The simulator does not see: ${missed[*]}"
heading "All were seen"
