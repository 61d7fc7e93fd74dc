"""Images for the nodes, without a registry."""

import hashlib
import io
import json
import os
import pathlib
import shutil
import subprocess
import tarfile


def add(tar, name, content=b"", kind=tarfile.REGTYPE, mode=0o755, link=""):
    entry = tarfile.TarInfo(name.lstrip("/"))
    entry.size, entry.mode, entry.type, entry.linkname = len(content), mode, kind, link
    tar.addfile(entry, io.BytesIO(content))


def libraries(program):
    """The files that the dynamic loader maps for a program; none if it is static."""
    listed = subprocess.run(["ldd", program], capture_output=True, text=True).stdout
    return sorted({word for word in listed.split() if word.startswith("/")})


def image(path, names, program=None):
    """An archive as `docker save` makes it."""
    busybox = shutil.which("busybox")
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as tar:
        for folder in ["bin", "dev", "etc", "proc", "root", "sys", "var", "var/cache"]:
            add(tar, folder, kind=tarfile.DIRTYPE)
        add(tar, "tmp", kind=tarfile.DIRTYPE, mode=0o1777)
        add(tar, "bin/busybox", pathlib.Path(busybox).read_bytes())
        for applet in subprocess.check_output([busybox, "--list"], text=True).split():
            if applet != "busybox":
                add(tar, f"bin/{applet}", kind=tarfile.SYMTYPE, link="busybox")
        add(tar, "etc/passwd", b"root:x:0:0::/root:/bin/sh\n", mode=0o644)
        if program:
            add(tar, "bin/weigh", pathlib.Path(program).read_bytes())
            for file in libraries(program):
                add(tar, file, pathlib.Path(file).read_bytes())
    content = layer.getvalue()
    config = {
        "architecture": os.uname().machine.replace("x86_64", "amd64").replace("aarch64", "arm64"),
        "os": "linux",
        # Without a command it is the process that holds a pod's namespaces.
        "config": {"Cmd": ["/bin/sleep", "1000000000"], "Env": ["PATH=/bin"]},
        "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(content).hexdigest()]},
    }
    manifest = [{"Config": "config.json", "RepoTags": names, "Layers": ["layer.tar"]}]
    with tarfile.open(path, mode="w") as tar:
        add(tar, "layer.tar", content)
        add(tar, "config.json", json.dumps(config).encode())
        add(tar, "manifest.json", json.dumps(manifest).encode())
