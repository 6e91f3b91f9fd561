# SPDX-License-Identifier: Apache-2.0
"""Runs commands for the host, in the guest. One TCP connection per request: a JSON line with the token, then frames
{kind, length, body} come back: o = stdout, e = stderr, x = exit code. A lost connection ends what it had started."""
import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

SHARE = "/vm"
TOKEN = open(f"{SHARE}/token").read()
spawned = {}
lock = threading.Lock()


def frame(conn, kind, body):
    conn.sendall(struct.pack("!cI", kind, len(body)) + body)


def finish(conn, rc, text=""):
    if text:
        frame(conn, b"o", text.encode())
    frame(conn, b"x", str(rc if rc >= 0 else 128 - rc).encode())


def end_group(process, sig):
    try:
        os.killpg(process.pid, sig)
    except ProcessLookupError:
        pass


def start(command, out, err):
    return subprocess.Popen(["/bin/bash", "-c", command], stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                            start_new_session=True, cwd="/")


def run(conn, request):
    process = start(request["run"], subprocess.PIPE, subprocess.PIPE)
    kinds = {process.stdout.fileno(): b"o", process.stderr.fileno(): b"e"}
    deadline = time.monotonic() + request.get("timeout_s", 1e9)
    poller = select.poll()
    for fd in kinds:
        poller.register(fd, select.POLLIN)
    poller.register(conn, select.POLLRDHUP)
    try:
        while kinds:
            left_ms = int((deadline - time.monotonic()) * 1000)
            if left_ms <= 0:
                frame(conn, b"e", f"ended by the agent after {request['timeout_s']} s\n".encode())
                end_group(process, signal.SIGKILL)
                finish(conn, 124)
                return
            for fd, event in poller.poll(min(left_ms, 1000)):
                if fd == conn.fileno():
                    raise ConnectionError("host went away")
                data = os.read(fd, 65536)
                if data:
                    frame(conn, kinds[fd], data)
                else:
                    poller.unregister(fd)
                    del kinds[fd]
        finish(conn, process.wait())
    except OSError:
        end_group(process, signal.SIGKILL)
        raise


def spawn(conn, request):
    name = request["spawn"]
    with lock:
        old = spawned.get(name)
        if old and old.poll() is None:
            finish(conn, 1, f"{name} already runs as {old.pid}\n")
            return
        with open(f"{SHARE}/{name}.log", "ab", buffering=0) as log:
            spawned[name] = start(request["run"], log, log)
        finish(conn, 0, f"{spawned[name].pid}\n")


def kill(conn, request):
    with lock:
        process = spawned.pop(request["kill"], None)
    if process is None:
        finish(conn, 1, f"nothing called {request['kill']} was started\n")
        return
    end_group(process, getattr(signal, "SIG" + request["signal"]))
    try:
        rc = process.wait(20)
        finish(conn, 0, f"{rc if rc >= 0 else 128 - rc}\n")
    except subprocess.TimeoutExpired:
        end_group(process, signal.SIGKILL)
        finish(conn, 1, f"{request['kill']} ignored SIG{request['signal']} for 20 s and was killed\n")


def kill_all():
    with lock:
        for process in spawned.values():
            end_group(process, signal.SIGKILL)
        for process in spawned.values():
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                print(f"agent: pid {process.pid} does not die", flush=True)
        spawned.clear()


def serve(conn):
    with conn:
        try:
            request = json.loads(conn.makefile("rb").readline(1 << 20))
            if request.get("token") != TOKEN:
                finish(conn, 126, "wrong token\n")
            elif "spawn" in request:
                spawn(conn, request)
            elif "kill_all" in request:
                kill_all()
                finish(conn, 0)
            elif "kill" in request:
                kill(conn, request)
            else:
                run(conn, request)
        except (OSError, ValueError, KeyError) as error:
            print(f"agent: {error!r}", flush=True)


def main():
    listener = socket.create_server(("0.0.0.0", 2323), backlog=64)
    print("AGENT-READY", flush=True)
    while True:
        conn, _ = listener.accept()
        threading.Thread(target=serve, args=(conn,), daemon=True).start()


if __name__ == "__main__":
    sys.exit(main())
