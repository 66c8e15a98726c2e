#!/usr/bin/env bash
# make deps: everything that `make test` needs is there afterwards. With DEPS=no it only says what
# is missing, all of it.

. "$(dirname "$0")/lib.sh"

need cargo
need rustfmt_and_clippy
need packages build-essential git postgresql python3-venv
need venv
need_no_more
