#!/usr/bin/env python3
"""What `weigh load --replay` makes of a long log, seen from the server.

    benches/replay.py WEIGH [LINES [FORMAT [OPTION...]]]

Writes a log of LINES (1,000,000) in FORMAT (combined, common, json, caddy, haproxy), with bursts and
with lines that cannot be replayed, replays it against a server of its own, and prints: requests per
second at the server against those of the log, whether the order was kept, the lines that were left out
by reason against those that were planted, and the memory of `weigh`. Options go to `weigh load`.
"""

import array
import asyncio
import collections
import json
import multiprocessing
import os
import random
import re
import resource
import subprocess
import sys
import tempfile
import time

PORT = int(os.environ.get("PORT", "27950"))
START = 1_764_237_600  # 2025-11-27 10:00:00 UTC
MEAN_PER_S = int(os.environ.get("RATE", "6000"))
# Of every 20 s one has three times as many requests, and one a third.
SHAPE = {7: 3.0, 13: 1 / 3}
PATHS = 10_000
# Every so many-th request has its number in its path.
PROBE = 100
BAD_SHARE = 0.01
REASONS = {
    "cut": "cut off before its end",
    "other": "not in the log's format",
    "none": "no HTTP request in it",
    "post": "method POST: --replay-methods POST sends it, without its body, which no log has",
    "host": "an absolute URL of another host",
}


def line(form, at, method, target):
    """A line of a request that began at a time."""
    second = time.gmtime(at)
    clf = time.strftime("%d/%b/%Y:%H:%M:%S", second)
    request = f"{method} {target} HTTP/1.1" if method else target
    if form in ("combined", "common"):
        more = ' "-" "Mozilla/5.0 (X11)"' if form == "combined" else ""
        return f'10.0.0.1 - - [{clf} +0000] "{request}" 200 512{more}'
    if form == "json":
        took = 0.004
        fields = {"msec": f"{at + took:.3f}", "request": request, "status": "200", "request_time": f"{took:.3f}"}
        return json.dumps(fields)
    if form == "caddy":
        asked = {"method": method, "host": "shop.test", "uri": target}
        return json.dumps({"level": "info", "ts": at + 0.004, "request": asked, "duration": 0.004, "status": 200})
    ms = int(at * 1000) % 1000
    return (
        f"lb haproxy[12]: 10.0.0.1:5000 [{clf}.{ms:03}] web app/s1 0/0/1/2/3 200 512 - - ---- "
        f'9/9/1/1/0 0/0 "{request}"'
    )


def write_log(path, form, lines):
    """The times and probes of requests to be replayed, and the number of planted lines by kind."""
    rng = random.Random(5)
    times, probes, planted = [], [], collections.Counter()
    kinds = [kind for kind in REASONS if (form, kind) != ("caddy", "none")]
    written, second = 0, 0
    with open(path, "w") as out:
        while written < lines:
            count = min(int(MEAN_PER_S * SHAPE.get(second % 20, 1.0)), lines - written)
            for at in sorted(second + rng.random() for _ in range(count)):
                at = START + at
                target = f"/item/{rng.randrange(PATHS)}?a=b"
                written += 1
                if rng.random() < BAD_SHARE and written > 200:
                    kind = rng.choice(kinds)
                    planted[kind] += 1
                    text = {
                        "cut": lambda: line(form, at, "GET", target).split("/item")[0] + "/it",
                        "other": lambda: "kernel: something else",
                        "none": lambda: line(form, at, "", "\\x16\\x03\\x01"),
                        "post": lambda: line(form, at, "POST", target),
                        "host": lambda: line(form, at, "GET", "http://other.test/"),
                    }[kind]()
                else:
                    if len(times) % PROBE == 0:
                        target = f"/probe/{len(times)}"
                        probes.append(len(times))
                    times.append(at)
                    text = line(form, at, "GET", target)
                out.write(text + "\n")
            second += 1
    return times, probes, planted


def serve(counts, done):
    """Keeps the times of requests, and the probes in their order."""
    arrived, seen = array.array("d"), []
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

    class Served(asyncio.Protocol):
        def connection_made(self, transport):
            self.transport = transport

        def data_received(self, data):
            # A request comes in one piece: it is short.
            arrived.append(time.monotonic())
            if data.startswith(b"GET /probe/"):
                seen.append(int(data[11:].split(b" ", 1)[0]))
            self.transport.write(answer)

    async def run():
        loop = asyncio.get_running_loop()
        server = await loop.create_server(Served, "127.0.0.1", PORT)
        while not done.is_set():
            await asyncio.sleep(0.2)
        server.close()

    asyncio.run(run())
    counts.put((arrived, seen))


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    weigh, lines = sys.argv[1], int((sys.argv + ["1000000"])[2])
    form = sys.argv[3] if len(sys.argv) > 3 else "combined"
    with tempfile.TemporaryDirectory() as folder:
        log = f"{folder}/access.log"
        times, probes, planted = write_log(log, form, lines)
        print(f"{form}: {lines} lines, {os.path.getsize(log) >> 20} MiB, {len(times)} to be replayed")
        counts, done = multiprocessing.Queue(), multiprocessing.Event()
        server = multiprocessing.Process(target=serve, args=(counts, done), daemon=True)
        server.start()
        time.sleep(1)
        command = [weigh, "load", f"http://127.0.0.1:{PORT}/", "--replay", log, "-c", "64"]
        command += ["-q", "--format", "json", *sys.argv[4:]]
        ended = subprocess.run(command, capture_output=True, text=True)
        if not ended.stdout:
            sys.exit(ended.stderr)
        rss = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        done.set()
        arrived, seen = counts.get()
        server.join()
    document = json.loads(ended.stdout)
    print(f"status {ended.returncode}, problems {document['problems']}")
    print(f"answers {document['requests']}, errors {document['errors']}")
    lag = document.get("schedule_lag_us", {})
    print(f"lag p99 {lag.get('p99')} us; memory of weigh {rss >> 10} MiB")
    # Before a load each request is checked once.
    checks = len(arrived) - len(times)
    print(f"{len(times)} requests came, behind {checks} checks")
    first = int(times[0]) if form in ("combined", "common") else times[0]
    expected = collections.Counter(int(at - first) for at in times)
    came = collections.Counter(int(at - arrived[checks]) for at in arrived[checks:])
    worst = max((came[s] / expected[s] - 1 for s in range(max(expected))), key=abs)
    print(
        f"requests per second, {min(expected.values())} to {max(expected.values())} in "
        f"{max(expected)} s: at most {worst:+.2%} off"
    )
    seen = seen[len(seen) - len(probes) :]
    moved = sum(a > b for a, b in zip(seen, seen[1:]))
    print(f"order: {len(seen)} of {len(probes)} probes, {moved} of them behind a later one")
    left = {why: int(n) for n, why in re.findall(r"--replay: (\d+) lines? (?:is|are) left out: (.*)", ended.stderr)}
    wanted = {REASONS[kind]: n for kind, n in planted.items()}
    print("left out as planted" if left == wanted else f"left out {left}, planted {wanted}")


main()
