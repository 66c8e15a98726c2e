#!/usr/bin/env bash
# make pg-regress: PostgreSQL's regression tests through pgweir, against the same without.
#
#   REGRESS=dir pg-regress.sh     each *.sql of that folder, by psql, on a fresh database
#   FILES="prepare guc"           tests only these of them
#
# The files are PostgreSQL's (src/test/regress/sql); they are read where they are. PostgreSQL and
# pgweir are started, and ended in any case, by crates/pgweir/tests/it/regress.rs. What differs, and
# why, is in docs/compatibility.md.

. "$(dirname "$0")/lib.sh"

main() {
    [ -n "${REGRESS:-}" ] || fail "usage: make pg-regress REGRESS=dir, a folder with *.sql"
    [ -d "$REGRESS" ] || fail "REGRESS=$REGRESS is no folder"
    REGRESS=$(realpath "$REGRESS")
    export REGRESS
    need cargo
    need packages build-essential postgresql
    need_no_more

    heading "Building"
    PG_BINDIR=$(pg_bindir)
    export PG_BINDIR
    cargo test --no-run --locked --package pgweir --test it
    heading "Files of $REGRESS"
    # In a process group of its own, so that all of it can be ended.
    setsid cargo test --quiet --locked --package pgweir --test it -- \
        --ignored --exact regress::psql_prints_the_same --nocapture </dev/null &
    group=$!
    trap 'leave 130' INT
    trap 'leave 143' TERM
    trap 'leave 129' HUP
    wait "$group"
}

leave() {
    trap '' INT TERM HUP
    kill -TERM -- "-$group" 2>/dev/null || true
    wait "$group" || true
    exit "$1"
}

main "$@"
