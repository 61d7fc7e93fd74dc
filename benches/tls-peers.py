#!/usr/bin/env python3
"""CPU time of `weigh load` over TLS and HTTP/3, as ratios to other load generators.

    benches/tls-peers.py WEIGH [--rounds N] [--seconds S]

Starts one `weigh origin --tls` on the first CPU. Runs the load generators on the last CPU, one
after the other, in N rounds; their order rotates from round to round. It compares two things:

- handshakes: a full TLS 1.3 handshake and one request on each connection, by weigh, `openssl
  s_time`, h2load and ab;
- http3: kept connections with streams over HTTP/3, by weigh and oha.

All negotiate TLS_AES_128_GCM_SHA256 and X25519. The server's certificate is ECDSA P-256; no load
generator verifies it. Prints the CPU time per request of each, and for each peer the ratio of
weigh's CPU time to the peer's: the geometric mean over the rounds, with the 95% t interval of the
logarithms. Programs that are not installed are named and left out.
"""

import argparse
import json
import math
import os
import re
import resource
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time

SUITE, GROUP = "TLS_AES_128_GCM_SHA256", "x25519"
# Student's t, 97.5%, by degrees of freedom.
T = [0, 12.71, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
     2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086]


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def pinned(cpu):
    return lambda: os.sched_setaffinity(0, {cpu})


def start_origin(weigh, port, cpu):
    origin = subprocess.Popen(
        [weigh, "origin", "--listen", f"127.0.0.1:{port}", "--threads", "1", "--tls",
         "--tls-version", "1.3", "--tls-suites", SUITE, "--tls-groups", GROUP,
         "--tls-key-type", "ecdsa-p256"],
        stdout=subprocess.DEVNULL, preexec_fn=pinned(cpu))
    for _ in range(200):
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return origin
        except OSError:
            time.sleep(0.02)
    origin.kill()
    sys.exit("the origin does not listen")


def run(command, cpu):
    """Its output, and the CPU time in s of the command."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, capture_output=True, text=True, preexec_fn=pinned(cpu))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return done.stdout + done.stderr, used


def number(pattern, text, command):
    found = re.search(pattern, text)
    if not found or int(found[1]) == 0:
        sys.exit(f"{' '.join(command)}: no requests were counted\n{text}")
    return int(found[1])


def weigh_requests(text, command):
    try:
        result = json.loads(text[text.index("{"):])
    except ValueError:
        sys.exit(f"{' '.join(command)}:\n{text}")
    return result["requests"]


def handshakes(weigh, port, seconds):
    url = f"https://127.0.0.1:{port}/bytes/100"
    return {
        "weigh": [weigh, "load", url, "--no-keepalive", "-c", "64", "-t", "1", "-d", f"{seconds}s",
                  "--warmup", "0s", "--insecure", "--format", "json", "--quiet"],
        "openssl": ["openssl", "s_time", "-connect", f"127.0.0.1:{port}", "-new", "-tls1_3",
                    "-ciphersuites", SUITE, "-www", "/bytes/100", "-time", str(seconds)],
        "h2load": ["h2load", "-n", str(800 * seconds), "-c", str(800 * seconds), "-t", "1", "--h1",
                   url],
        "ab": ["ab", "-c", "64", "-n", str(800 * seconds), url],
    }


def http3(weigh, port, seconds):
    url = f"https://127.0.0.1:{port}/bytes/100"
    return {
        "weigh": [weigh, "load", url, "--http", "3", "-c", "4", "--streams", "32", "-t", "1", "-d",
                  f"{seconds}s", "--warmup", "0s", "--insecure", "--format",
                  "json", "--quiet"],
        "oha": ["oha", "--http-version", "3", "-c", "4", "-p", "32", "-z", f"{seconds}s",
                "--insecure", "--no-tui", "--output-format", "json", url],
    }


def requests(name, text, command):
    if name == "weigh":
        return weigh_requests(text, command)
    if name == "oha":
        try:
            counted = json.loads(text)["statusCodeDistribution"]
        except (ValueError, KeyError):
            sys.exit(f"{' '.join(command)}:\n{text}")
        return sum(counted.values())
    pattern = {"openssl": r"(\d+) connections in \d+ real seconds",
               "h2load": r"(\d+) succeeded", "ab": r"Complete requests:\s+(\d+)"}[name]
    return number(pattern, text, command)


def compare(title, commands, rounds, cpu):
    names = [name for name in commands if name == "weigh" or shutil.which(name)]
    for name in commands:
        if name not in names:
            print(f"{title}: {name} is not installed")
    if len(names) < 2:
        return
    cost = {name: [] for name in names}
    for turn in range(rounds):
        for name in names[turn % len(names):] + names[:turn % len(names)]:
            text, used = run(commands[name], cpu)
            cost[name].append(used / requests(name, text, commands[name]) * 1e6)
    for name in names:
        line = f"{title:<11} {name:<8} {statistics.mean(cost[name]):8.1f} us of CPU per request"
        if name != "weigh":
            logs = [math.log(a / b) for a, b in zip(cost["weigh"], cost[name])]
            mean, half = statistics.mean(logs), T[min(rounds - 1, 20)] * statistics.stdev(logs) / \
                math.sqrt(rounds)
            low, middle, high = (math.exp(x) for x in (mean - half, mean, mean + half))
            line += f"; weigh's is {middle:.2f} of it [{low:.2f}, {high:.2f}]"
        print(line, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("weigh")
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--seconds", type=int, default=3)
    options = parser.parse_args()
    weigh = os.path.realpath(options.weigh)
    cpus = sorted(os.sched_getaffinity(0))
    port = free_port()
    with tempfile.TemporaryDirectory() as place:
        os.chdir(place)
        origin = start_origin(weigh, port, cpus[0])
        try:
            for title, commands in [("handshakes", handshakes), ("http3", http3)]:
                compare(title, commands(weigh, port, options.seconds), max(options.rounds, 2),
                        cpus[-1])
        finally:
            origin.kill()
            origin.wait()


if __name__ == "__main__":
    main()
