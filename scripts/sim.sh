#!/usr/bin/env bash
# make sim: simulate. SEED=… runs one seed and prints all that happens; WITHOUT=… and STORM_MS=…
# take something away from it, as a failure says that was made smaller.

. "$(dirname "$0")/lib.sh"

need_cargo
cargo build --profile sim --locked --package pgweir-sim
program=${CARGO_TARGET_DIR:-target}/sim/pgweir-sim
if [ -n "${SEED:-}" ]; then
    arguments=(--seed "$SEED" --trace)
    [ -z "${WITHOUT:-}" ] || arguments+=(--without "$WITHOUT" --no-shrink)
    [ -z "${STORM_MS:-}" ] || arguments+=(--storm-ms "$STORM_MS")
    exec "$program" "${arguments[@]}"
fi
exec "$program" "$@"
