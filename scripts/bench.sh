#!/usr/bin/env bash
# make bench, make bench-bundle: build what is compared, then measure it here or pack it.
#
#   bench.sh run [ARGUMENT…]    CASE, PGBOUNCER and more as in `bench --help`
#   bench.sh bundle             gives target/pgweir-bench.tar.gz

. "$(dirname "$0")/lib.sh"

need cargo
need packages build-essential pgbouncer postgresql
need_no_more
heading "Building the release binaries"
cargo build --release --locked --package pgweir --package pgweir-bench

target=${CARGO_TARGET_DIR:-target}
PG_BIN=$(pg_bindir)
PGBOUNCER=$(pgbouncer_program)
export PG_BIN PGBOUNCER
case ${1:-} in
run)
    shift
    exec "$target/release/bench" "$@"
    ;;
bundle) exec bench/bundle.sh "$target/release" "$target/pgweir-bench.tar.gz" ;;
*) fail "usage: bench.sh run|bundle" ;;
esac
