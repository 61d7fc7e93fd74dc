"""Namespaces, mounts and control groups."""

import ctypes
import os
import pathlib
import signal
import time

CLONE_NEWNS, CLONE_NEWNET, CLONE_NEWPID = 0x20000, 0x40000000, 0x20000000
MS_REC, MS_PRIVATE, MS_BIND = 0x4000, 0x40000, 0x1000
PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None, use_errno=True)


def checked(result):
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def unshare(flags):
    checked(LIBC.unshare(flags))


def mount(source, target, kind, flags=0):
    words = [word.encode() if word else None for word in (source, str(target), kind)]
    checked(LIBC.mount(*words, flags, None))


def die_with_parent():
    checked(LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0))


def hierarchies():
    tables = [line.split() for line in pathlib.Path("/proc/self/mounts").read_text().splitlines()]
    return [pathlib.Path(fields[1]) for fields in tables if fields[2] in ("cgroup", "cgroup2")]


def remove_groups(name):
    for root in hierarchies():
        for folder, _, _ in os.walk(root / name, topdown=False):
            for _ in range(100):
                try:
                    os.rmdir(folder)
                    break
                except FileNotFoundError:
                    break
                except OSError:
                    time.sleep(0.1)
