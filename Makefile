# Every target is a script or a cargo command, and can be run without make too.

SHELL := bash
.DEFAULT_GOAL := help
.PHONY: help demo demo-stop docs test drivers pg-regress sim planted mutants rare fuzz deps bench
.PHONY: bench-bundle clean

help: ## This list
	@sed -n 's/^\([a-z-]*\):.* ## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 22

demo: ## PostgreSQL and pgweir to try, until Ctrl-C; DETACH=1 returns once they are up
	@exec setpriv --pdeathsig TERM scripts/demo.sh up

demo-stop: ## End what `make demo DETACH=1` left up
	@exec scripts/demo.sh stop

test: ## All that the continuous integration runs; installs what is missing, DEPS=no only names it
	@exec scripts/test.sh

drivers: ## Test drivers and frameworks (drivers/README.md); DRIVER=pgx tests one, DEPS=no as above
	@exec scripts/drivers.sh

pg-regress: ## PostgreSQL's regression tests by psql, REGRESS=dir has them; FILES="guc prepare"
	@exec scripts/pg-regress.sh

docs: ## Write docs/settings.md, errors.md, metrics.md and the JSON schema from their tables
	UPDATE=1 cargo test --locked --package pgweir-config --test page
	UPDATE=1 cargo test --locked --package pgweir-engine --test errors
	UPDATE=1 cargo test --locked --package pgweir-control --lib page_of_metrics

sim: ## Simulate on all cores until stopped; SEED=… runs one seed with its trace
	@exec scripts/sim.sh

planted: ## Plant each bug of crates/sim/planted and have it found by simulation; BUG=… SEEDS=…
	@exec scripts/planted.sh

mutants: ## Change one thing after the other where replies are sorted; tests must notice; PART=…
	@exec scripts/mutants.sh

rare: ## Which branches do the seeds of `make test` take seldom, and have no mark? MOST=…
	@exec scripts/rare.sh

fuzz: ## Fuzz every decoder, guided by coverage, until nothing is new; SECONDS_EACH=60 KEEP=1
	@exec scripts/fuzz.sh

deps: ## Only install what `make test` needs
	@exec scripts/deps.sh

bench: ## Measure against PgBouncer and write docs/benchmarks.md; CASE=… PGBOUNCER=path
	@exec scripts/bench.sh run

bench-bundle: ## Pack the benchmark with all it needs, for a bare machine
	@exec scripts/bench.sh bundle

clean: demo-stop ## Remove what was built
	cargo clean
	rm -rf .venv
