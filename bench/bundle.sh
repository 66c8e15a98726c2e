#!/bin/sh
# Packs the benchmark for a machine that has nothing: the runner, the contenders, PostgreSQL, and
# every shared library down to the dynamic loader. `make bench-bundle` builds what it packs.
#
#   bench/bundle.sh RELEASE_FOLDER OUTPUT.tar.gz
#
# RELEASE_FOLDER holds bench, relay and pgweir (left out where it is missing). PG_BIN, PGBOUNCER and
# PGWEIR name other programs, as for the benchmark itself. On the other machine: unpack where every
# user may enter, as in /tmp, and run `pgweir-bench/bench --help`.
set -eu

release=$1
output=$2
limit_mb=60

pg_bin=${PG_BIN:-$(printf '%s\n' /usr/lib/postgresql/*/bin | sort -V | tail -n 1)}
pgbouncer=${PGBOUNCER:-/usr/sbin/pgbouncer}
pgweir=${PGWEIR:-$release/pgweir}
share=$("$pg_bin/pg_config" --sharedir)
modules=$("$pg_bin/pg_config" --pkglibdir)
commit=$("$release/bench" commit)

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
stage=$work/pgweir-bench
mkdir -p "$stage/lib" "$stage/elf"

# libraries FILE: copies what FILE is linked with, and the loader.
libraries() {
    ldd "$1" | sed -n 's/.*=> \(\/[^ ]*\) .*/\1/p; s/^[[:space:]]*\(\/[^ ]*\) .*/\1/p' |
        while read -r library; do cp -Lu "$library" "$stage/lib/"; done
}

# program FILE FOLDER: FILE with its libraries, and a script FOLDER/NAME that starts it with them.
# The script's own path is the program's argv[0]: PostgreSQL finds its files from there.
program() {
    name=$(basename "$1")
    cp -L "$1" "$stage/elf/$name"
    strip --strip-debug "$stage/elf/$name" 2>/dev/null || true
    libraries "$1"
    mkdir -p "$stage/$2"
    up=$(printf '%s' "$2" | sed 's/[^/][^/]*/../g')
    cat > "$stage/$2/$name" <<SCRIPT
#!/bin/sh
root=\${0%/*}/$up
exec "\$root/lib/$loader" --library-path "\$root/lib" --argv0 "\$0" "\$root/elf/$name" "\$@"
SCRIPT
    chmod 755 "$stage/$2/$name"
}

libraries "$release/bench"
loader=$(basename "$(ls "$stage"/lib/ld-linux*)")

program "$release/bench" bin
program "$release/relay" bin
program "$pgbouncer" bin
if [ -x "$pgweir" ]; then
    program "$pgweir" bin
else
    echo "bundle: without pgweir, $pgweir is not there"
fi

# PostgreSQL keeps its folders' places to each other, and so finds them below any root.
for name in initdb postgres pgbench; do program "$pg_bin/$name" "pg$pg_bin"; done
mkdir -p "$stage/pg$modules" "$stage/pg$share/extension"
for module in plpgsql dict_snowball; do
    cp "$modules/$module.so" "$stage/pg$modules/"
    libraries "$modules/$module.so"
done
cp "$share"/*.bki "$share"/*.sql "$share"/*.sample "$share"/*.txt "$stage/pg$share/"
cp "$share"/extension/plpgsql* "$stage/pg$share/extension/"
cp -R "$share/timezonesets" "$share/tsearch_data" "$stage/pg$share/"

cat > "$stage/bench" <<LAUNCHER
#!/bin/sh
# The benchmark with all that it needs. Raw results and the report go to ./results, or where
# BENCH_RESULTS and BENCH_DOCS say; raw results in a checkout's docs/benchmarks/rounds join
# its report.
here=\$(cd "\$(dirname "\$0")" && pwd)
export PGWEIR_BENCH_SELF="\$here/bin/bench"
export PGWEIR_BENCH_COMMIT="$commit"
export PG_BIN="\$here/pg$pg_bin" PGBOUNCER="\$here/bin/pgbouncer"
export BENCH_RESULTS="\${BENCH_RESULTS:-results/raw}" BENCH_DOCS="\${BENCH_DOCS:-results}"
exec "\$here/bin/bench" "\$@"
LAUNCHER
chmod 755 "$stage/bench"

mkdir -p "$(dirname "$output")"
tar -C "$work" --owner=0 --group=0 -czf "$output" pgweir-bench
size_mb=$(($(wc -c < "$output") / 1000000))
echo "bundle: $output, $size_mb MB"
if [ "$size_mb" -ge "$limit_mb" ]; then
    echo "bundle: more than $limit_mb MB" >&2
    exit 1
fi
