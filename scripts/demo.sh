#!/usr/bin/env bash
# make demo: a throw-away PostgreSQL, pgweir in front of it, and pgbench through both.
#
#   demo.sh up       starts everything and stays until Ctrl-C; with DETACH=1 it returns
#   demo.sh stop     ends what is up
#   demo.sh guard    ends what a killed `demo.sh up` left; see below
#
# PGWEIR=path takes that program and builds none. With DEMO_STATE=path it is another demo than that
# of .demo.
#
# Nothing outlives the demo: neither process, nor port, nor data. What there is to end is written
# down in .demo before it can be lost:
#
#   place            the folder of the data, the socket and nothing else; all processes work in it
#   postgresql.pid   process ids, believed only of a process that works in that folder
#   pgweir.pid
#   pgweir.toml, *.log
#   stopping         the end is wanted
#
# `up` ends it in a trap. Against a kill -9, the guard waits in a session of its own for the end of
# a pipe that only `up` holds open.

. "$(dirname "$0")/lib.sh"

state=${DEMO_STATE:-.demo}
bench_seconds=3
bench_clients=64

main() {
    case ${1:-} in
    up) up ;;
    stop) stop ;;
    guard) guard "$2" ;;
    *) fail "usage: demo.sh up|stop" ;;
    esac
}

# --- Up --------------------------------------------------------------------------------------

up() {
    if [ -d "$state" ]; then
        still_up && fail "A demo is up already: see make demo-stop."
        stop
    fi
    [ -n "${PGWEIR:-}" ] || need cargo
    need packages build-essential postgresql
    need_no_more
    build
    bin=$(pg_bindir)

    # What points the user's own psql somewhere must not point the demo there.
    unset PGHOST PGHOSTADDR PGPORT PGDATABASE PGUSER PGOPTIONS PGSERVICE PGSSLMODE PGTZ
    umask 077
    mkdir "$state" || fail "Another demo is being started."
    trap leave EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM
    trap 'exit 129' HUP
    place=$(mktemp -d "${TMPDIR:-/tmp}/pgweir-demo.XXXXXX")
    echo "$place" >"$state/place"
    exec {lifeline}> >(exec setsid scripts/demo.sh guard "$place" >/dev/null 2>&1)

    heading "Starting PostgreSQL and pgweir"
    password=$(od -An -N12 -tx1 /dev/urandom | tr -d ' \n')
    start_postgresql
    start_pgweir
    compare
    invite
    if [ -n "${DETACH:-}" ]; then
        echo "To end it: make demo-stop"
        trap - EXIT
        dismiss_guard
        return
    fi
    echo "Ctrl-C ends it."
    trap 'exit 0' INT
    wait -n "$postgresql_pid" "$pgweir_pid" 2>/dev/null || true
    [ -e "$state/stopping" ] || fail "A server has ended by itself: $(tail -n 5 "$state"/*.log)"
    echo "make demo-stop has ended it."
}

build() {
    pgweir=${PGWEIR:-}
    if [ -z "$pgweir" ]; then
        heading "Building the release binary"
        cargo build --release --locked --package pgweir
        pgweir=${CARGO_TARGET_DIR:-target}/release/pgweir
    fi
    pgweir=$(realpath "$pgweir")
}

# As root the server runs as Debian's user for it: PostgreSQL refuses to be root's.
start_postgresql() {
    local as_service=()
    if [ "$(id -u)" = 0 ]; then
        as_service=(setpriv --reuid postgres --regid postgres --clear-groups)
        chown postgres: "$place"
    fi
    # Everybody on the machine reaches the port, so it asks for a password; the socket lies in a
    # folder for the server's user alone.
    run in_place "${as_service[@]}" "$bin/initdb" -D data -U postgres --auth-local trust \
        --auth-host scram-sha-256 -E UTF8 --no-locale --no-sync --no-instructions \
        >"$state/initdb.log" 2>&1 || fail "initdb failed: $(cat "$state/initdb.log")"

    local attempt
    for attempt in 1 2 3 4 5; do
        postgresql_port=$(free_port)
        in_place setsid "${as_service[@]}" "$bin/postgres" -D data \
            -c listen_addresses=127.0.0.1 -p "$postgresql_port" -k "$place" -c fsync=off \
            </dev/null >"$state/postgresql.log" 2>&1 {lifeline}>&- &
        postgresql_pid=$!
        echo "$postgresql_pid" >"$state/postgresql.pid"
        if comes_up "$postgresql_pid" "$bin/pg_isready" -q -U postgres -h "$place" \
            -p "$postgresql_port"; then
            break
        fi
        [ "$attempt" -lt 5 ] || fail "PostgreSQL did not start: $(cat "$state/postgresql.log")"
    done

    local psql=("$bin/psql" -XAtq -v ON_ERROR_STOP=1 -h "$place" -p "$postgresql_port")
    "${psql[@]}" -U postgres -d postgres -c "CREATE ROLE demo LOGIN PASSWORD '$password'" \
        -c "CREATE DATABASE demo OWNER demo"
    run "$bin/pgbench" -i -q -s 5 -h "$place" -p "$postgresql_port" -U demo demo \
        >"$state/pgbench.log" 2>&1 || fail "pgbench -i failed: $(cat "$state/pgbench.log")"
}

start_pgweir() {
    local attempt config=$state/pgweir.toml
    export PGPASSWORD=$password
    pgweir_port=6432
    for attempt in 1 2 3 4 5; do
        is_free "$pgweir_port" || pgweir_port=$(free_port)
        write_config >"$config"
        in_place setsid "$pgweir" "$(realpath "$config")" \
            </dev/null >"$state/pgweir.log" 2>&1 {lifeline}>&- &
        pgweir_pid=$!
        echo "$pgweir_pid" >"$state/pgweir.pid"
        if comes_up "$pgweir_pid" "$bin/psql" -XAtq -c 'SELECT 1' "$(url "$pgweir_port")"; then
            break
        fi
        [ "$attempt" -lt 5 ] || fail "pgweir did not start: $(cat "$state/pgweir.log")"
    done
}

write_config() {
    cat <<EOF
config_version = 1

[general]
host = "127.0.0.1"
port = $pgweir_port

[pools.demo]
pool_mode = "transaction"

[pools.demo.users.0]
username = "demo"
password = "$password"
pool_size = 10

[pools.demo.shards.0]
servers = [["127.0.0.1", $postgresql_port, "primary"]]
database = "demo"
EOF
}

# Whether a command succeeds before long, as it does once the server with that id is up.
comes_up() {
    local pid=$1 _
    shift
    for _ in {1..150}; do
        kill -0 "$pid" 2>/dev/null || return 1
        "$@" >/dev/null 2>&1 && return 0
        sleep 0.1
    done
    return 1
}

compare() {
    heading "pgbench -S, $bench_clients clients, $bench_seconds s each"
    measure "direct to PostgreSQL" "$postgresql_port"
    measure "through pgweir" "$pgweir_port"
}

measure() {
    local threads log=$state/pgbench.log
    threads=$(nproc)
    run "$bin/pgbench" -n -S -c "$bench_clients" -j "$((threads < 4 ? threads : 4))" \
        -T "$bench_seconds" -h 127.0.0.1 -p "$2" -U demo demo >"$log" 2>&1 ||
        fail "pgbench failed: $(cat "$log")"
    printf '  %-24s %8s transactions a second\n' \
        "$1" "$(sed -n 's/^tps = \([0-9]*\).*/\1/p' "$log")"
}

invite() {
    local program=psql
    command -v psql >/dev/null || program=$bin/psql
    heading "Up. To try it:"
    printf "  %s '%s'\n\n" "$program" "$(url "$pgweir_port" "$password")"
    echo "Its configuration and log are in $state."
}

# --- Down ------------------------------------------------------------------------------------

# The way out of `up`, whatever the reason.
leave() {
    set +e
    trap '' INT TERM HUP
    # bash would report each server that it sees end.
    exec 2>/dev/null
    # By the shell itself: not every machine has the program of that name.
    local job
    for job in $(jobs -p); do kill "$job"; done
    stop
    dismiss_guard
    echo "All of it is gone."
}

dismiss_guard() {
    if [ -n "${lifeline:-}" ]; then
        echo "all is ended" >&"$lifeline"
        exec {lifeline}>&-
    fi
}

# A line on its standard input is the end of its duty, the end of the input that of `up`.
guard() {
    trap '' INT TERM HUP
    read -r || [ "$(cat "$state/place" 2>/dev/null)" != "$1" ] || stop
}

stop() {
    local place
    [ -d "$state" ] || return 0
    place=$(cat "$state/place" 2>/dev/null) || true
    touch "$state/stopping"
    if [[ $place == */pgweir-demo.?????? ]]; then
        end "$state/pgweir.pid"
        end "$state/postgresql.pid"
        rm -rf "$place"
    fi
    rm -rf "$state"
}

# Ends at once the server whose id is in a file.
end() {
    local pid _
    pid=$(cat "$1" 2>/dev/null) || return 0
    works_in_place "$pid" || return 0
    kill -QUIT "$pid"
    for _ in {1..50}; do
        works_in_place "$pid" || return 0
        sleep 0.1
    done
    kill -KILL "$pid"
}

still_up() {
    local place name
    place=$(cat "$state/place" 2>/dev/null) || return 1
    for name in postgresql pgweir; do
        works_in_place "$(cat "$state/$name.pid" 2>/dev/null)" && return 0
    done
    return 1
}

works_in_place() {
    case $(readlink "/proc/$1/cwd") in "$place" | "$place"/*) return 0 ;; *) return 1 ;; esac
}

# --- Small things ----------------------------------------------------------------------------

# Becomes a command in the folder of the demo's processes; for a subshell.
in_place() {
    cd "$place"
    exec "$@"
}

# Runs a command so that a signal is heeded while it runs: bash waits for a command in the
# foreground before it looks at a trap.
run() {
    "$@" &
    wait $!
}

url() {
    echo "postgres://demo${2:+:$2}@127.0.0.1:$1/demo"
}

free_port() {
    local port
    while true; do
        port=$((20000 + RANDOM % 12000))
        if is_free "$port"; then
            echo "$port"
            return
        fi
    done
}

is_free() {
    ! (: <>"/dev/tcp/127.0.0.1/$1") 2>/dev/null
}

main "$@"
