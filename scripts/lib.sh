# shellcheck shell=bash
# What the scripts beside this one share. It is sourced, never run.

set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

# rustup puts cargo here; a shell that is older than the installation does not know it.
PATH=$PATH:${CARGO_HOME:-$HOME/.cargo}/bin

heading() {
    printf '\n== %s\n' "$*"
}

fail() {
    printf '%s\n' "$*" >&2
    exit 1
}

# --- What must be there ---------------------------------------------------------------------

# `need KIND …` is need_KIND: it names what is missing and installs it. With DEPS=no it only names
# it, and what is missing besides is named too before the script ends: at `need_no_more`, which
# stands behind the last of them.
lacks=no
need() {
    if [ "${DEPS:-yes}" = no ]; then
        ("need_$1" "${@:2}") || lacks=yes
    else
        "need_$1" "${@:2}"
    fi
}

need_no_more() {
    [ "$lacks" = no ] || exit 1
}

# cargo of at least the version that Cargo.toml asks for. It is not installed for you: how Rust
# gets on your machine is yours to decide.
need_cargo() {
    local wanted found
    command -v cargo >/dev/null || fail "cargo is missing: install Rust, see https://rustup.rs"
    wanted=$(sed -n 's/^rust-version = "\(.*\)"$/\1/p' Cargo.toml)
    found=$(cargo --version | cut -d ' ' -f 2)
    [ "$(printf '%s\n' "$wanted" "$found" | sort -V | head -n 1)" = "$wanted" ] ||
        fail "cargo is $found and must be at least $wanted: rustup update, see https://rustup.rs"
}

need_rustfmt_and_clippy() {
    has_rustfmt_and_clippy && return 0
    heading "Missing: rustfmt or clippy"
    local install=(rustup component add rustfmt clippy)
    [ "${DEPS:-yes}" != no ] || fail "With rustup: ${install[*]}"
    command -v rustup >/dev/null || fail "There is no rustup here: please install them yourself."
    "${install[@]}"
    has_rustfmt_and_clippy || fail "Without them it cannot go on."
}

has_rustfmt_and_clippy() {
    { cargo fmt --version && cargo clippy --version; } >/dev/null 2>&1
}

# Debian packages by name. What counts is whether the programs are there, however they came.
# Names what is missing and installs it; with DEPS=no only names it and fails.
need_packages() {
    local package missing=()
    for package in "$@"; do
        "has_${package//-/_}" || missing+=("$package")
    done
    [ ${#missing[@]} -gt 0 ] || return 0

    heading "Missing: ${missing[*]}"
    local install=(env DEBIAN_FRONTEND=noninteractive
        apt-get install -qq -y -o Dpkg::Use-Pty=0 --no-install-recommends "${missing[@]}")
    if [ "${DEPS:-yes}" = no ]; then
        fail "On Debian: sudo apt-get install -y --no-install-recommends ${missing[*]}"
    fi
    command -v apt-get >/dev/null || fail "There is no apt-get here: please install them yourself."
    no_service_before "${missing[@]}"
    as_root "${install[@]}" || {
        echo "Trying again with fresh package lists."
        as_root apt-get update && as_root "${install[@]}"
    } || echo "apt-get failed." >&2
    no_service_after "${missing[@]}"
    for package in "${missing[@]}"; do
        "has_${package//-/_}" || fail "Without $package it cannot go on."
    done
}

has_build_essential() {
    command -v cc >/dev/null && command -v make >/dev/null
}

has_default_jdk_headless() {
    command -v java >/dev/null && [ "$(first_number javac -version)" -ge 17 ]
}

has_git() {
    command -v git >/dev/null
}

has_golang_go() {
    command -v go >/dev/null
}

has_maven() {
    command -v mvn >/dev/null
}

has_nodejs() {
    [ "$(first_number node --version)" -ge 18 ]
}

has_npm() {
    command -v npm >/dev/null
}

has_pgbouncer() {
    [ -n "$(pgbouncer_program)" ]
}

has_postgresql() {
    [ -n "$(pg_bindir)" ]
}

has_python3_venv() {
    [ -n "$(python_with_venv)" ]
}

has_ruby_activerecord() {
    has_gem activerecord
}

has_ruby_pg() {
    has_gem pg
}

has_ruby_railties() {
    has_gem railties
}

has_gem() {
    ruby -e 'gem ARGV[0]' "$1" 2>/dev/null
}

# The first number that a command prints, such as the greatest part of its version; 0 without one.
first_number() {
    local said
    said=$("$@" 2>/dev/null) || said=
    [[ $said =~ [0-9]+ ]] || true
    echo "${BASH_REMATCH[0]:-0}"
}

# Debian's packages start a PostgreSQL on port 5432 and a PgBouncer on port 6432 for good; only
# their programs are wanted. The first can be told so before, the second only afterwards.
quiet=/etc/postgresql-common/createcluster.d/pgweir.conf
no_service_before() {
    [[ " $* " == *" postgresql "* ]] || return 0
    as_root mkdir -p "$(dirname "$quiet")"
    echo "create_main_cluster = false" | as_root tee "$quiet" >/dev/null
}

no_service_after() {
    if [[ " $* " == *" postgresql "* ]]; then
        as_root rm -f "$quiet"
    fi
    if [[ " $* " == *" pgbouncer "* ]] && command -v systemctl >/dev/null; then
        as_root systemctl disable --now pgbouncer || true
    fi
}

as_root() {
    if [ "$(id -u)" = 0 ]; then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo "$@"
    else
        fail "This needs root, and there is no sudo: $*"
    fi
}

# --- PgBouncer -------------------------------------------------------------------------------

# PGBOUNCER, else where PATH leads to, else where Debian installs it, which is often not in PATH.
# The same rule as in bench/src/contender.rs.
pgbouncer_program() {
    local program
    if [ -n "${PGBOUNCER:-}" ]; then
        echo "$PGBOUNCER"
        return
    fi
    # Where bash finds none that can be run, it gives one that cannot.
    for program in "$(type -P pgbouncer || true)" /usr/sbin/pgbouncer; do
        if [ -x "$program" ]; then
            echo "$program"
            return
        fi
    done
}

# --- PostgreSQL ------------------------------------------------------------------------------

# The folder of the server's programs: PG_BINDIR, else where PATH leads to, else the newest of
# Debian's, which are not in PATH. The same rule as in crates/testkit/src/postgres.rs.
pg_bindir() {
    local folder folders
    if [ -n "${PG_BINDIR:-}" ]; then
        echo "$PG_BINDIR"
        return
    fi
    folder=$(dirname "$(readlink -f "$(command -v postgres)" || true)")
    mapfile -t folders < <(printf '%s\n' /usr/lib/postgresql/*/bin | sort -rV)
    for folder in "$folder" "${folders[@]}"; do
        if [ -x "$folder/initdb" ] && [ -x "$folder/postgres" ] && [ -x "$folder/pgbench" ]; then
            echo "$folder"
            return
        fi
    done
}

# --- Python ----------------------------------------------------------------------------------

# A Python that can make virtual environments. Debian's comes without that part.
python_with_venv() {
    local python
    for python in python3 /usr/bin/python3; do
        if "$python" -c 'import ensurepip, venv' 2>/dev/null; then
            echo "$python"
            return
        fi
    done
}

# The virtual environment .venv with what scripts/requirements.txt names, made or brought up to
# date. A copy of that list in it says what it holds.
need_venv() {
    local list=scripts/requirements.txt
    cmp -s "$list" .venv/requirements.txt && return
    if [ "${DEPS:-yes}" = no ]; then
        fail "Missing: .venv with the packages of $list. It is made by: make deps"
    fi
    heading "Python environment in .venv"
    "$(python_with_venv)" -m venv --clear .venv
    cp "$list" .venv/wanted.txt
    .venv/bin/pip install --quiet --requirement .venv/wanted.txt
    mv .venv/wanted.txt .venv/requirements.txt
}
