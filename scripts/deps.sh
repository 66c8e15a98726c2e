#!/usr/bin/env bash
# make deps: everything that `make test` needs is there afterwards. With DEPS=no it only says what
# is missing.

. "$(dirname "$0")/lib.sh"

need_cargo
need_rustfmt_and_clippy
need_packages build-essential git postgresql python3-venv
need_venv
