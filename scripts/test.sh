#!/usr/bin/env bash
# make test: exactly what the continuous integration runs.

. "$(dirname "$0")/lib.sh"

scripts/deps.sh

# A first build is faster without what the next one could use, takes a quarter of the space, and
# what it makes is faster, too.
[ -d target/debug ] || export CARGO_INCREMENTAL=0

heading "Format"
cargo fmt --all --check
cargo fmt --manifest-path fuzz/Cargo.toml --check

heading "Lints"
cargo clippy --workspace --all-targets --locked -- -D warnings

heading "Tests: tidy, unit, property, simulation, integration"
PG_BINDIR=$(pg_bindir)
export PG_BINDIR
cargo test --workspace --locked

heading "All is well"
