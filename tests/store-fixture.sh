#!/usr/bin/env bash
# Keeps a store as the nanod of this checkout writes it: tests/fixtures/stores/schema-N.tar.gz and schema-N.json, with
# which every later version must go on. To be run once for each schema that is released; N is the argument.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

[ $# = 1 ] || { echo "usage: $0 SCHEMA" >&2; exit 2; }
[ ! -e "tests/fixtures/stores/schema-$1.json" ] || { echo "schema $1 has its fixture, which is never made anew" >&2; exit 1; }
cargo build --workspace
NANO_SCHEMA=$1 cargo test -p nano-tests --test e2e -- --ignored --exact store_fixture::make_the_fixture
ls -l "tests/fixtures/stores/schema-$1".*
