#!/usr/bin/env bash
# Measures a nanod of its own with 10,000 active follow-ups: adding, listing, memory, what it costs while nothing is
# due, and how late those are that fall due. NANOD names the program, COUNT and IDLE (seconds) the size.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

nanod=${NANOD:-target/release/nanod}
[ -x "$nanod" ] || { echo "$nanod is missing: cargo build --release, or set NANOD" >&2; exit 2; }
folder=$(mktemp -d)
pid=
trap '[ -z "$pid" ] || kill "$pid"; wait; rm -rf "$folder"' EXIT

# A model that nobody serves: what fires becomes a task, and no more is asked of it.
printf '[models.none]\nbase_url = "http://127.0.0.1:9/v1"\nmodel = "none"\n' >"$folder/nanod.toml"
# No home of anybody's: what happens there would wake a watcher of skills.
env -i HOME="$folder" PATH="$PATH" "$nanod" --socket "$folder/s" --state-dir "$folder/state" \
    --config "$folder/nanod.toml" 2>"$folder/log" &
pid=$!

python3 - "$folder" "$pid" "${COUNT:-10000}" "${IDLE:-30}" <<'PYTHON'
import datetime, glob, json, os, socket, sys, time

folder, pid, count, idle = sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4])


class Client:
    def __init__(self):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(f"{folder}/s")
        self.lines = self.socket.makefile("r", encoding="utf-8")
        self.last = 0

    def send(self, method, params):
        self.last += 1
        line = json.dumps({"jsonrpc": "2.0", "id": self.last, "method": method, "params": params})
        self.socket.sendall(line.encode() + b"\n")

    def read(self):
        answer = json.loads(self.lines.readline())
        if "error" in answer:
            sys.exit(f"refused: {answer['error']}")
        return answer.get("result", answer.get("params"))

    def call(self, method, params):
        self.send(method, params)
        return self.read()


def connect():
    end = time.monotonic() + 60
    while True:
        try:
            return Client()
        except OSError:
            if time.monotonic() > end:
                sys.exit("nanod does not answer: " + open(f"{folder}/log").read())
            time.sleep(0.02)


def since(start):
    return (time.monotonic() - start) * 1000


def spelt(second):
    at = datetime.datetime.fromtimestamp(second, datetime.timezone.utc)
    return at.strftime("%Y-%m-%dT%H:%M:%S.") + f"{at.microsecond // 1000:03}Z"


def far(number):
    """A trigger that is not due while we measure: the next two hours are left out."""
    hour = (datetime.datetime.now(datetime.timezone.utc).hour + 3 + number % 18) % 24
    kind = number % 10
    if kind < 6:
        zone = ["UTC", "Europe/Berlin", "America/New_York"][kind % 3]
        return {"cron": f"{number % 60} {hour} * {1 + time.gmtime().tm_mon % 12} *", "tz": zone}
    if kind < 9:
        return {"every_ms": 86_400_000 + number, "anchor": spelt(time.time() + 86_400)}
    return {"at": spelt(time.time() + 86_400 + number)}


def stat():
    ticks = sum(map(int, open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[11:13]))
    wakes = 0
    for path in glob.glob(f"/proc/{pid}/task/*/status"):
        wakes += sum(int(line.split()[1]) for line in open(path) if line.startswith("voluntary"))
    return ticks / os.sysconf("SC_CLK_TCK"), wakes


client = connect()
sessions = [client.call("session.create", {"booter": "none"})["id"] for _ in range(10)]
add = lambda number: {"session": sessions[number % 10], "content": "look", "trigger": far(number)}

alone = min(500, count)
start = time.monotonic()
for number in range(alone):
    client.call("followup.schedule", add(number))
print(f"add, one after the other   {since(start) / alone:8.2f} ms each ({alone})")

start = time.monotonic()
for number in range(alone, count):
    client.send("followup.schedule", add(number))
    if number - alone >= 64:
        client.read()
for _ in range(min(64, count - alone)):
    client.read()
if count > alone:
    print(f"add, 64 on their way       {since(start) / (count - alone):8.2f} ms each ({count - alone})")

start = time.monotonic()
page = client.call("followup.list", {})
print(f"list, the first page       {since(start):8.1f} ms ({len(page['followups'])})")
start, seen = time.monotonic(), 0
after = None
while True:
    page = client.call("followup.list", {"state": "active", "after": after})
    seen, after = seen + len(page["followups"]), page.get("next")
    if after is None:
        break
print(f"list, all pages            {since(start):8.1f} ms ({seen})")
assert seen == count, f"{seen} of {count} are active"

rss = next(line.split()[1] for line in open(f"/proc/{pid}/status") if line.startswith("VmRSS"))
print(f"memory                     {int(rss) / 1024:8.1f} MiB")
time.sleep(3)
cpu, wakes = stat()
time.sleep(idle)
spent, woken = stat()[0] - cpu, stat()[1] - wakes
print(f"idle for {idle:.0f} s              {spent:8.2f} s of CPU, {woken / idle:.1f} wakeups a second")

client.call("events.subscribe", {"types": ["followup.fired"]})
maker, due = connect(), {}
first = time.time() + 3
for number in range(20):
    at = round(first + number * 0.27, 3)
    made = maker.call("followup.schedule", {"session": sessions[0], "content": "now", "trigger": {"at": spelt(at)}})
    due[made["id"]] = at
late = []
while due:
    event = client.read()["event"]
    now, text = time.time(), json.dumps(event)
    which = next(id for id in due if id in text)
    late.append((now - due.pop(which)) * 1000)
late.sort()
print(f"late, from due to told     {late[len(late) // 2]:8.1f} ms p50, {late[-1]:.1f} ms at most ({len(late)})")
PYTHON
