#!/usr/bin/env bash
# Measures a nanod of its own with one session of 100,000 messages: start, tool list, last page, first token, memory.
# NANOD names the program, COUNT the number of messages.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

nanod=${NANOD:-target/release/nanod}
[ -x "$nanod" ] || { echo "$nanod is missing: cargo build --release, or set NANOD" >&2; exit 2; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

python3 - "$nanod" "$folder" "${COUNT:-100000}" <<'PYTHON'
import hashlib, http.server, json, os, signal, socket, statistics, subprocess, sys, threading, time

nanod, folder, count = os.path.abspath(sys.argv[1]), sys.argv[2], int(sys.argv[3])


class Model(http.server.BaseHTTPRequestHandler):
    """Runs one command for each message, then says that it is done."""

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.sizes.append(len(request["messages"]))
        delta = {"role": "assistant", "content": "That is done."}
        last = request["messages"][-1]
        if last["role"] != "tool" and "Once more" not in str(last["content"]):
            arguments = json.dumps({"command": "echo " + "all is as it should be " * 8})
            call = {"index": 0, "id": f"c{len(self.server.sizes)}", "type": "function"}
            delta = {"tool_calls": [{**call, "function": {"name": "exec", "arguments": arguments}}]}
        end = "tool_calls" if "tool_calls" in delta else "stop"
        chunks = [{"delta": delta, "finish_reason": None}, {"delta": {}, "finish_reason": end}]
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        for chunk in chunks:
            text = json.dumps({"id": "x", "object": "chat.completion.chunk", "created": 0, "model": "m",
                               "choices": [{"index": 0, **chunk}]})
            self.wfile.write(f"data: {text}\n\n".encode())
        self.wfile.write(b"data: [DONE]\n\n")

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Model)
server.sizes = []
threading.Thread(target=server.serve_forever, daemon=True).start()
work, config = f"{folder}/work", f"{folder}/nanod.toml"
os.mkdir(work)
with open(config, "w") as file:
    file.write(f'[models.m]\nbase_url = "http://127.0.0.1:{server.server_port}/v1"\nmodel = "m"\napi_key = "k"\n')


def command(state, *more):
    return [nanod, "--socket", f"{folder}/s", "--state-dir", f"{folder}/{state}", "--config", config, *more]


def run(state, *more):
    done = subprocess.run(command(state, *more), env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"nanod {' '.join(more)}: {done.stderr}")


environment = {"HOME": folder, "PATH": os.environ["PATH"]}


class Client:
    def __init__(self):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(f"{folder}/s")
        self.lines = self.socket.makefile("r", encoding="utf-8")

    def read(self):
        answer = json.loads(self.lines.readline())
        if "error" in answer:
            sys.exit(f"refused: {answer['error']}")
        return answer.get("result", answer.get("params"))

    def send(self, method, params):
        line = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        self.socket.sendall(line.encode() + b"\n")

    def call(self, method, params):
        self.send(method, params)
        return self.read()


class Daemon:
    def __init__(self, state):
        start = time.monotonic()
        log = open(f"{folder}/log", "a")
        self.process = subprocess.Popen(command(state), env=environment, stdin=subprocess.DEVNULL, stderr=log)
        while True:
            try:
                self.client = Client()
                self.client.call("daemon.status", {})
                break
            except OSError:
                if time.monotonic() - start > 300 or self.process.poll() is not None:
                    sys.exit("nanod does not answer: " + open(f"{folder}/log").read())
                time.sleep(0.002)
        self.took = (time.monotonic() - start) * 1000

    def end(self, how=signal.SIGTERM):
        self.process.send_signal(how)
        self.process.wait()

    def memory(self):
        lines = open(f"/proc/{self.process.pid}/status").read().splitlines()
        return [int(line.split()[1]) / 1024 for line in lines if line.startswith(("VmRSS", "VmHWM"))][::-1]


def submit(client, session):
    task = client.call("task.submit", {"session": session, "content": "See whether all is as it should be."})
    ended = client.call("task.wait", {"task": task["id"]})
    assert ended["state"] == "succeeded", ended


def key_of(kind, session, seq):
    number = "".join(chr(b) if 32 <= b < 127 and b != 92 else f"\\x{b:02x}" for b in seq.to_bytes(8, "big"))
    return f"{kind}/{session}/{number}" if session else f"{kind}/{number}"


def order(key):
    """Sorts texts of keys as their bytes."""
    return b"".join(bytes([int(part[:2], 16)]) + part[2:].encode() if at else part.encode()
                    for at, part in enumerate(key.split("\\x")))


def grow(source, target, session):
    """Repeats the messages of the one task that the session has, each with its event."""
    head, *records, _ = [json.loads(line) for line in open(source, encoding="utf-8")]
    messages = [value for key, value in records if key.startswith(f"m/{session}/")]
    events = {value["seq"]: value for key, value in records if key.startswith("e/")}
    seq = head["head"]
    for number in range(count - len(messages)):
        seq += 1
        round_, message = divmod(number, len(messages))
        message = messages[message]
        event = {**events[message["seq"]], "seq": seq}
        text = json.dumps(message).replace('"c1"', f'"c{round_ + 1000000}"')
        new = {**json.loads(text), "seq": seq, "id": message["id"][:-8] + f"{number:08}"}
        records.append([key_of("m", session, seq), new])
        records.append([key_of("e", "", seq), event])
    records.sort(key=lambda record: order(record[0]))
    sealed = hashlib.sha256()
    with open(target, "w", encoding="utf-8") as file:
        for line in [{**head, "head": seq}, *records]:
            text = json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n"
            sealed.update(text.encode())
            file.write(text)
        file.write(json.dumps({"count": len(records), "sha256": sealed.hexdigest()}) + "\n")
    return seq


first = Daemon("first")
session = first.client.call("session.create", {"workspace": work, "skills": []})["id"]
submit(first.client, session)
first.end()
run("first", "store", "export", f"{folder}/small")
newest = grow(f"{folder}/small", f"{folder}/large", session)
print(f"an export of               {os.path.getsize(f'{folder}/large') / 1e6:8.1f} MB, {count} messages")
start = time.monotonic()
run("state", "store", "import", f"{folder}/large")
print(f"import                     {time.monotonic() - start:8.1f} s")

for what in ["start, the first", "start, after a stop", "start, after kill -9"]:
    daemon = Daemon("state")
    print(f"{what:<26} {daemon.took:8.0f} ms, {daemon.memory()[0]:.1f} MiB, {daemon.memory()[1]:.1f} at most")
    if what != "start, after kill -9":
        daemon.end(signal.SIGTERM if what == "start, the first" else signal.SIGKILL)


def time_of(method, params, times=21):
    took = []
    for _ in range(times):
        start = time.monotonic()
        daemon.client.call(method, params)
        took.append((time.monotonic() - start) * 1000)
    return f"{took[0]:8.2f} ms cold, {statistics.median(took[1:]):.2f} ms p50 warm"


print(f"session.tools              {time_of('session.tools', {'session': session})}")
page = {"session": session, "after_seq": newest - 200, "limit": 200}
print(f"session.messages, the end  {time_of('session.messages', page)}")
print(f"session.messages, begin    {time_of('session.messages', {'session': session, 'limit': 200})}")
print(f"session.get                {time_of('session.get', {'session': session})}")

daemon.client.call("events.subscribe", {"session": session, "deltas": True})
before = time.monotonic()
server.sizes.clear()
other = Client()
other.call("task.submit", {"session": session, "content": "Once more."})
accepted = time.monotonic()
other.send("task.list", {"session": session})
while (event := daemon.client.read()["event"])["type"] not in ["text.delta", "turn.finished", "task.finished"]:
    pass
print(f"submit to its answer       {(accepted - before) * 1000:8.1f} ms")
print(f"submit to the first token  {(time.monotonic() - before) * 1000:8.1f} ms ({event['type']}; "
      f"{server.sizes[0] if server.sizes else 0} messages in the request)")
memory = daemon.memory()
print(f"memory                     {memory[0]:8.1f} MiB, {memory[1]:.1f} at most")
daemon.end()
check = subprocess.run(command("state", "store", "check"), env=environment, capture_output=True, text=True)
print(f"store check                {check.returncode:8} {check.stdout.strip() or check.stderr.strip()}")
PYTHON
