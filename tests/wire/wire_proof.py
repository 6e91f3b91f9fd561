#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An independent decoder (tshark) reads a session of ours and finds nothing malformed.

usage: wire_proof.py BIN_DIR

Serves a directory by nfsrdma-serve, moves files over it with the command line client, captures the connection on the
loopback of a network namespace of its own and has tshark decode it: no frame of MPA, DDP, RDMAP or RPC-over-RDMA may be
malformed or unreassembled, and every layer must have been seen. At the NFS layer tshark 4.0 itself stumbles over what the
kernel's own captures show too (replies whose data went by RDMA Write): those frames are listed, and only those allowed.
Exit 77: tshark or tcpdump is missing.
"""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

LAYERS = ("iwarp_mpa", "iwarp_ddp_rdmap", "rpcordma", "rpc", "nfs")
# Protocols below NFS: a malformed frame there is our fault.
OURS = set(LAYERS) - {"nfs"}


def enter_namespace():
    """Runs the rest as pid 1 of namespaces of its own, so that nothing is left behind."""
    if os.environ.get("NFSRDMA_WIRE_INSIDE"):
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        return
    os.environ["NFSRDMA_WIRE_INSIDE"] = "1"
    os.execvp("unshare", ["unshare", "-mpfn", "--kill-child", "--mount-proc", sys.executable] + sys.argv)


def wait_for(condition, what, seconds=20):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise SystemExit(f"no {what} within {seconds} s")
        time.sleep(0.02)


def traffic(bin_dir, directory):
    """Starts the server, captures, moves files; returns the capture's path."""
    export = directory / "export"
    export.mkdir()
    for name, size in (("empty", 0), ("small", 700), ("odd", 5001), ("large", 3_000_001)):
        (export / name).write_bytes(os.urandom(size))
    for i in range(150):
        (export / f"entry-{i:03}-{'x' * 40}").touch()
    ready = directory / "ready"
    with open(ready, "w") as out, open(directory / "serve.log", "w") as log:
        server = subprocess.Popen([bin_dir / "nfsrdma-serve", export, "--listen", "127.0.0.1:0", "--no-root-squash"],
                                  stdout=out, stderr=log)
    wait_for(lambda: ready.read_text().startswith("ready ") and "\n" in ready.read_text(), "server")
    port = re.search(r":(\d+)/", ready.read_text())[1]
    capture = directory / "wire.pcap"
    with open(directory / "tcpdump.log", "w") as log:
        tcpdump = subprocess.Popen(["tcpdump", "-i", "lo", "-s", "0", "-B", "65536", "--immediate-mode", "-U", "-w", capture, f"tcp port {port}"],
                                   stderr=log)
    wait_for(lambda: "listening" in (directory / "tcpdump.log").read_text(), "capture")

    def run(*words):
        subprocess.run([bin_dir / "nfsrdma", *words], check=True, stdout=subprocess.DEVNULL, timeout=30)

    url = f"nfsrdma://127.0.0.1:{port}"
    for options in ("?provider=iwarp", "?provider=iwarp&crc=on&nconnect=2"):
        run("ls", "-l", f"{url}/{options}")
        for name in ("empty", "small", "odd", "large"):
            run("get", f"{url}/{name}{options}", str(directory / name))
            if (directory / name).read_bytes() != (export / name).read_bytes():
                raise SystemExit(f"{name}: the bytes differ")
            run("put", str(directory / name), f"{url}/copy-{name}{options}")
        run("mkdir", f"{url}/box{options}")
        run("mv", f"{url}/copy-odd{options}", f"{url}/box/odd{options}")
        run("rm", "-r", f"{url}/box{options}")
    server.terminate()
    server.wait(timeout=20)
    tcpdump.send_signal(signal.SIGINT)
    tcpdump.wait(timeout=20)
    dropped = re.search(r"(\d+) packets dropped by kernel", (directory / "tcpdump.log").read_text())
    if dropped and int(dropped[1]):
        raise SystemExit(f"the capture lost {dropped[1]} packets; nothing is proved")
    return capture


def decode(capture, display_filter, *fields):
    words = ["tshark", "-n", "-r", capture, "-Y", display_filter, "-T", "fields"]
    for field in fields:
        words += ["-e", field]
    out = subprocess.run(words, capture_output=True, text=True, timeout=120, env=dict(os.environ, HOME="/tmp"))
    if out.returncode != 0:
        raise SystemExit(f"tshark: {out.stderr.strip()}")
    return [line.split("\t") for line in out.stdout.splitlines()]


def main():
    for tool in ("tshark", "tcpdump", "ip"):
        if not shutil.which(tool):
            print(f"SKIPPED: {tool} is not installed")
            return 77
    enter_namespace()
    with tempfile.TemporaryDirectory(prefix="wire.") as name:
        capture = traffic(pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(name))
        seen = {}
        for row in decode(capture, "tcp.len > 0", "frame.protocols"):
            for layer in row[0].split(":"):
                seen[layer] = seen.get(layer, 0) + 1
        failures = 0
        for layer in LAYERS:
            print(f"{layer:16} {seen.get(layer, 0)} frames")
            failures += seen.get(layer, 0) == 0
        for row in decode(capture, "_ws.malformed", "frame.number", "frame.protocols", "_ws.malformed"):
            last = row[1].split(":")[-1]
            ours = last in OURS
            failures += ours
            print(f"{'FAIL' if ours else 'note'} frame {row[0]}: malformed at {last} ({row[1]})")
    print(f"{failures} failures")
    return 1 if failures else 0


sys.exit(main())
