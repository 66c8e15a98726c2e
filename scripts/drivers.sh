#!/usr/bin/env bash
# make drivers: drivers of other languages, and frameworks, through pgweir, each with the program in
# its folder of drivers/.
#
#   drivers.sh             brings what they need, and tests each
#   DRIVER=pgx             tests only this one
#   drivers.sh run NAME    is what the test calls: runs one program, with the environment saying
#                          where to (PGHOST, PGPORT, PGUSER, PGPASSWORD, PGDATABASE) and how many
#                          servers are shared there (SERVERS)
#
# PostgreSQL and pgweir are started, and ended in any case, by crates/pgweir/tests/it/drivers.rs.
# What package managers bring stays in target/drivers, but for Go's modules, which lie in its cache.

. "$(dirname "$0")/lib.sh"

all=(asyncpg node-postgres pgx pgjdbc rails django sqlalchemy hibernate prisma sqlx)
# Some distributions have set their Go not to.
export GOTOOLCHAIN=${GOTOOLCHAIN:-auto}
mkdir -p "${CARGO_TARGET_DIR:-target}/drivers"
shelf=$(realpath "${CARGO_TARGET_DIR:-target}/drivers")

main() {
    case ${1:-} in
    "") test_drivers ;;
    run) run "$2" ;;
    *) fail "usage: drivers.sh [run NAME]" ;;
    esac
}

# --- Test ------------------------------------------------------------------------------------

test_drivers() {
    local driver failed=() chosen=("${all[@]}")
    if [ -n "${DRIVER:-}" ]; then
        is_driver "$DRIVER" || fail "DRIVER=$DRIVER is none of: ${all[*]}"
        chosen=("$DRIVER")
    fi
    need cargo
    need packages build-essential postgresql
    for driver in "${chosen[@]}"; do
        need driver "$driver"
    done
    need_no_more

    heading "Building"
    PG_BINDIR=$(pg_bindir)
    export PG_BINDIR
    cargo test --no-run --locked --package pgweir --test it
    trap 'leave 130' INT
    trap 'leave 143' TERM
    trap 'leave 129' HUP
    for driver in "${chosen[@]}"; do
        heading "$driver"
        test_driver "$driver" || failed+=("$driver")
    done

    [ ${#failed[@]} -eq 0 ] || fail "Failed: ${failed[*]}"
    heading "All is well"
    for driver in "${chosen[@]}"; do
        sed -n "s/^$driver: all is well with //p" "$shelf/$driver/log"
    done
}

# In a process group of its own, so that all of it can be ended. No test at all would pass too.
test_driver() {
    rm -f "$shelf/$1/log"
    setsid cargo test --quiet --locked --package pgweir --test it -- \
        --ignored --exact "drivers::${1//-/_}" --nocapture </dev/null &
    group=$!
    wait "$group" && grep -qs "^$1: all is well" "$shelf/$1/log"
}

leave() {
    trap '' INT TERM HUP
    if [ -n "${group:-}" ]; then
        kill -TERM -- "-$group" 2>/dev/null || true
        wait "$group" || true
    fi
    exit "$1"
}

is_driver() {
    [[ " ${all[*]} " == *" $1 "* ]]
}

# --- Bring -----------------------------------------------------------------------------------

# What a driver's list names is on its shelf, made or brought up to date. A copy of the list there
# says what it holds. One without a list has all that it needs from its tools.
need_driver() {
    local driver=$1 list="" tools manager place=$shelf/$1
    case $driver in
    asyncpg | django | sqlalchemy) list=requirements.txt tools=(python3-venv) manager=pip ;;
    node-postgres | prisma) list=package-lock.json tools=(nodejs npm) manager=npm ;;
    pgx) list=go.sum tools=(golang-go) manager=go ;;
    pgjdbc | hibernate) list=pom.xml tools=(default-jdk-headless maven) manager=maven ;;
    rails) tools=(ruby-railties ruby-activerecord ruby-pg) ;;
    sqlx) list=Cargo.lock tools=(build-essential) manager=cargo ;;
    esac
    need_packages "${tools[@]}"
    [ "$driver" != pgx ] || need_go
    [ "$driver" != prisma ] || need_newer_node
    mkdir -p "$place"
    [ -n "$list" ] || return 0
    list=drivers/$driver/$list
    cmp -s "$list" "$place/brought" && return
    if [ "${DEPS:-yes}" = no ]; then
        fail "Missing: what $list names. It is brought by: make drivers"
    fi
    heading "Packages of $driver"
    rm -rf "$place"
    mkdir "$place"
    "bring_by_$manager"
    cp "$list" "$place/brought"
}

bring_by_pip() {
    "$(python_with_venv)" -m venv "$place"
    "$place/bin/pip" install --quiet --requirement "$list"
}

bring_by_npm() {
    cp "drivers/$driver/"package*.json "$place"
    (cd "$place" && npm ci --ignore-scripts --no-audit --no-fund)
}

bring_by_go() {
    go -C "drivers/$driver" mod download
}

bring_by_maven() {
    cp "$list" "$place"
    mvn --batch-mode --quiet -Dstyle.color=never --file "$place" \
        -Dmaven.repo.local="$place/repository" \
        dependency:copy-dependencies -DoutputDirectory="$place/jars"
}

bring_by_cargo() {
    cargo fetch --quiet --locked --manifest-path "drivers/$driver/Cargo.toml"
}

# A Go that may fetch the one that go.mod asks for, where it is an older one itself.
need_go() {
    local found
    found=$(go env GOVERSION)
    [ "$(printf '%s\n' go1.21 "$found" | sort -V | head -n 1)" = go1.21 ] ||
        fail "Go is $found and must be at least go1.21: see https://go.dev/doc/install"
}

need_newer_node() {
    local found
    found=$(node --version)
    [ "$(printf '%s\n' v20.19 "$found" | sort -V | head -n 1)" = v20.19 ] ||
        fail "Node.js is $found and Prisma wants at least v20.19: see https://nodejs.org"
}

# --- Run -------------------------------------------------------------------------------------

run() {
    is_driver "$1" || fail "$1 is none of: ${all[*]}"
    local place=$shelf/$1
    # What points the user's own clients somewhere must not point these there.
    unset PGHOSTADDR PGOPTIONS PGSERVICE PGSSLMODE PGTZ PGAPPNAME
    "run_${1//-/_}" | tee "$place/log"
}

run_asyncpg() {
    "$place/bin/python" drivers/asyncpg/test.py
}

# Its packages are found beside it. The driver deprecates what its own cancel() uses.
run_node_postgres() {
    cp drivers/node-postgres/test.mjs "$place"
    node --no-deprecation "$place/test.mjs"
}

run_pgx() {
    go -C drivers/pgx test -count=1
}

run_pgjdbc() {
    java -Dfile.encoding=UTF-8 -cp "$place/jars/*" drivers/pgjdbc/PgjdbcTest.java
}

# A copy, as Rails writes to the folder of its application.
run_rails() {
    rm -rf "$place/app"
    cp -r drivers/rails "$place/app"
    (cd "$place/app" && ruby test.rb)
}

run_django() {
    PYTHONDONTWRITEBYTECODE=1 "$place/bin/python" drivers/django/test.py
}

run_sqlalchemy() {
    PYTHONDONTWRITEBYTECODE=1 "$place/bin/python" drivers/sqlalchemy/test.py
}

# Compiled first, as Hibernate looks for classes by their names.
run_hibernate() {
    javac -encoding UTF-8 -proc:none -cp "$place/jars/*" -d "$place/classes" \
        drivers/hibernate/HibernateTest.java
    java -Dfile.encoding=UTF-8 -cp "$place/classes:$place/jars/*" HibernateTest
}

# Its packages are found beside it. Prisma's tool insists on an engine for migrations, which is no
# package of npm's and is not used here.
run_prisma() {
    cp -r drivers/prisma/{schema.prisma,migrations,test.mjs} "$place"
    (cd "$place" && CHECKPOINT_DISABLE=1 PRISMA_SCHEMA_ENGINE_BINARY=$(type -P true) \
        node_modules/.bin/prisma generate)
    node "$place/test.mjs"
}

run_sqlx() {
    cargo run --quiet --locked --manifest-path drivers/sqlx/Cargo.toml --target-dir "$place/target"
}

main "$@"
