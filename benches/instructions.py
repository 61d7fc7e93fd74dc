#!/usr/bin/env python3
"""User-space instructions per request of a load, a balancer or an origin, of two or more builds.

    benches/instructions.py [--balance|--origin] OLD NEW [-- OPTION...]

Each build makes, relays or answers 4,000 and then 24,000 requests under valgrind's callgrind; the
difference, divided by 20,000, is what one request costs. Unlike CPU time it hardly varies, so one
run of each build shows a difference of 1%. It does not include the kernel, which takes most of the
CPU time. Options after `--` go to `weigh load`.
"""

import re
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter

FEW, MANY = 4_000, 24_000
# Functions that run per interval of time, which valgrind stretches, and not per request.
PER_INTERVAL = re.compile(
    r"HistogramIterator|memset|value_at_quantile|::mean|::stdev|Histogram<T>::add|miniz|report::"
    r"|core::str|Gaps|\bhistogram::Histogram::(?:merge|quantile|to_base64)|memcpy"
)
ROW = re.compile(r"\s*([\d,]+) \(.*?%\)\s+\S*?:(.*?)(?: \[.*)?$")


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


BALANCER = """
threads = 1
[services.web]
listen = ["{front}"]
kind = "http"
http_versions = ["1.1", "2"]
backends.one = "{back}"
"""


def counted(command, out):
    """A command whose instructions are counted."""
    return ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", *command]


def start(command, started):
    started.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))


def wait_for(port):
    for _ in range(300):
        with socket.socket() as client:
            if client.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    sys.exit(f"nothing listens on port {port} after 30 s")


def instructions(build, requests, options, counts):
    """Instructions of each function in one run."""
    front, back = free_port(), free_port()
    balances = counts == "--balance"
    load = [build, "load", f"http://127.0.0.1:{front if balances else back}/", "-n", str(requests)]
    load += ["-c", "64", "-t", "1", "--io", "epoll", "-q", "--format", "json", *options]
    started = []
    with tempfile.TemporaryDirectory() as folder:
        out = f"{folder}/callgrind"
        try:
            origin = [build, "origin", "--listen", f"127.0.0.1:{back}", "--io", "epoll"]
            start(counted(origin, out) if counts == "--origin" else origin, started)
            wait_for(back)
            if balances:
                addresses = {"front": f"127.0.0.1:{front}", "back": f"127.0.0.1:{back}"}
                with open(f"{folder}/balance.toml", "w") as config:
                    config.write(BALANCER.format(**addresses))
                start(counted([build, "balance", config.name, "--io", "epoll"], out), started)
                wait_for(front)
            command = load if counts else counted(load, out)
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode != 0:
                sys.exit(f"{' '.join(load)} ended with {done.returncode}:\n{done.stderr}")
        finally:
            for process in reversed(started):
                process.terminate()
                process.wait()
        annotate = ["callgrind_annotate", "--threshold=100", "--auto=no", out]
        text = subprocess.run(annotate, capture_output=True, text=True, check=True).stdout
    # With line tables, a function has a row for its own code, which ends with the program's name, and
    # one for each file that code was inlined from, which does not.
    sums = Counter()
    for row in filter(None, map(ROW.match, text.splitlines())):
        sums[row[2]] += int(row[1].replace(",", ""))
    return sums


def per_request(build, options, counts):
    few, many = (instructions(build, n, options, counts) for n in (FEW, MANY))
    return {name: (many[name] - few.get(name, 0)) / (MANY - FEW) for name in many}


def main():
    arguments = sys.argv[1:]
    options = []
    if "--" in arguments:
        cut = arguments.index("--")
        arguments, options = arguments[:cut], arguments[cut + 1 :]
    counts = next((a for a in arguments if a in ("--balance", "--origin")), None)
    builds = [argument for argument in arguments if argument != counts]
    if not builds or builds[0].startswith("-"):
        sys.exit(__doc__)
    costs = [per_request(build, options, counts) for build in builds]
    names = {name for cost in costs for name in cost if not PER_INTERVAL.search(name)}
    for name in sorted(names, key=lambda name: -max(cost.get(name, 0) for cost in costs)):
        row = [cost.get(name, 0) for cost in costs]
        if max(map(abs, row)) >= 2:
            print("".join(f"{value:9.1f}" for value in row), "", name[:110])
    sums = [sum(v for k, v in cost.items() if k in names) for cost in costs]
    print("".join(f"{value:9.0f}" for value in sums), " in all")
    for build, value in zip(builds[1:], sums[1:]):
        print(f"{build}: {value / sums[0]:.3f} of {builds[0]}")


main()
