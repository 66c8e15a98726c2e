#!/usr/bin/env bash
# make sim: simulate. SEED=… runs one seed and prints all that happens.

. "$(dirname "$0")/lib.sh"

need_cargo
cargo build --profile sim --locked --package pgweir-sim
program=${CARGO_TARGET_DIR:-target}/sim/pgweir-sim
if [ -n "${SEED:-}" ]; then
    exec "$program" --seed "$SEED" --trace
fi
exec "$program" "$@"
