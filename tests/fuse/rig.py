# SPDX-License-Identifier: Apache-2.0
"""What a case of the mount's tests works with: servers, mounts, users. Runs inside namespaces of its own (see
run_case), so that every process ends with the case; a watchdog ends FUSE connections that would not."""
import contextlib
import ctypes
import errno
import hashlib
import json
import os
import pickle
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

MIB = 1 << 20
CASES = {}


class Failed(Exception):
    pass


class Skipped(Exception):
    pass


def case(function):
    CASES[function.__name__] = function
    return function


def expect(what, found, wanted):
    if found != wanted:
        raise Failed(f"{what}: found {found!r}, wanted {wanted!r}")


def expect_true(what, condition):
    if not condition:
        raise Failed(what)


def expect_errno(wanted, what, function, *args, **kw):
    """wanted: one errno, or a tuple of those that are right."""
    allowed = [errno.errorcode[w] for w in (wanted if isinstance(wanted, tuple) else (wanted,))]
    try:
        result = function(*args, **kw)
    except OSError as error:
        got = errno.errorcode.get(error.errno, error.errno)
        expect_true(f"{what}: errno {got}, wanted {' or '.join(allowed)}", got in allowed)
        return
    raise Failed(f"{what} went through with {result!r}, wanted {' or '.join(allowed)}")


def wait_for(what, condition, seconds=10.0):
    """Polls until condition() holds: for what another process or the kernel brings about."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise Failed(f"{what}: not within {seconds} s")
        time.sleep(0.01)


def content(seed, size):
    return random.Random(str(seed)).randbytes(size)


def sha(data):
    return hashlib.sha256(data).hexdigest()


def write_file(path, data, mode="wb"):
    with open(path, mode, buffering=0) as file:
        view = memoryview(data)
        while view:
            view = view[file.write(view[:MIB]):]


def read_file(path):
    with open(path, "rb", buffering=0) as file:
        return b"".join(iter(lambda: file.read(MIB), b""))


def drop_pages(path):
    """What this machine's page cache holds of a file goes."""
    fd = os.open(path, os.O_RDONLY)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)


libc = ctypes.CDLL(None, use_errno=True)


def renameat2(old, new, flags):
    if libc.renameat2(-100, os.fsencode(old), -100, os.fsencode(new), flags) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def as_user(uid, gid, groups, function, *args):
    """function(*args) in a child with that identity: its result, or the exception it raised."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups(groups)
            os.setresgid(gid, gid, gid)
            os.setresuid(uid, uid, uid)
            answer = (True, function(*args))
        except BaseException as error:  # noqa: the parent raises it
            answer = (False, error)
        os.write(writer, pickle.dumps(answer))
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        data = pipe.read()
    os.waitpid(child, 0)
    good, result = pickle.loads(data)
    if not good:
        raise result
    return result


def mounts(kind="fuse.nfsrdma"):
    """{mount point: (minor, source)} of this namespace."""
    found = {}
    with open("/proc/self/mountinfo") as table:
        for line in table:
            fields, _, rest = line.partition(" - ")
            words = fields.split()
            if rest.split()[0] == kind:
                found[words[4].encode().decode("unicode_escape")] = (words[2].split(":")[1], rest.split()[1])
    return found


def processes(name):
    """PIDs of this namespace with that command name; the dead that nobody has reaped do not count."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/comm") as file:
            if file.read().strip() == name[:15] and state_of(pid) not in ("", "Z"):
                found.append(int(pid))
    return found


def state_of(pid):
    """The state letter in /proc, "" when there is no such process any more."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()[0]
    return ""


def enter_namespaces():
    """Becomes the first process of fresh mount and PID namespaces; root by a user namespace if not already."""
    flags = ["-mpf", "--kill-child", "--mount-proc", "--propagation", "private"]
    if os.geteuid() != 0:
        flags.insert(0, "-Ur")
    probe = subprocess.run(["unshare", *flags, "true"], stderr=subprocess.PIPE, text=True, check=False)
    if probe.returncode != 0:
        print(f"skipped: no namespaces here: {probe.stderr.strip()}")
        sys.exit(77)
    os.environ["NFSRDMA_IN_NAMESPACE"] = "1" if os.geteuid() == 0 else "user"
    os.execvp("unshare", ["unshare", *flags, sys.executable, *sys.argv])


def own_device():
    """/dev/fuse, open to everybody in here."""
    if not os.path.exists("/dev/fuse"):
        print("skipped: /dev/fuse is missing: load the fuse module, or start the container with --device /dev/fuse")
        sys.exit(77)
    if os.environ["NFSRDMA_IN_NAMESPACE"] == "1":
        subprocess.run(["mount", "-t", "fusectl", "none", "/sys/fs/fuse/connections"], check=False,
                       stderr=subprocess.DEVNULL)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=755,dev", "none", "/mnt"], check=True)
        os.mknod("/mnt/fuse", 0o020666, os.makedev(10, 229))
        os.chmod("/mnt/fuse", 0o666)
        subprocess.run(["mount", "--bind", "/mnt/fuse", "/dev/fuse"], check=True)
        return
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        print("skipped: /dev/fuse may not be opened by this user")
        sys.exit(77)


class Server:
    def __init__(self, rig, directory, args):
        self.directory = directory
        self.log = rig.path(f"server-{len(rig.servers)}.log")
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [rig.program("nfsrdma-serve"), directory, "--listen", "127.0.0.1:0", "--provider", "iwarp", *args],
                stdout=subprocess.PIPE, stderr=log, text=True)
        ready = self.process.stdout.readline()
        found = re.match(r"ready nfsrdma://127\.0\.0\.1:(\d+)/", ready)
        if not found:
            with open(self.log) as log:
                raise Failed(f"nfsrdma-serve said {ready!r} and {log.read()!r}")
        self.port = int(found.group(1))

    def at(self, name):
        return os.path.join(self.directory, name)

    def pause(self):
        self.process.send_signal(signal.SIGSTOP)
        wait_for("the server stops", lambda: state_of(self.process.pid) == "T")

    def resume(self):
        self.process.send_signal(signal.SIGCONT)

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.terminate()
            try:
                self.process.wait(5)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


class Mounted:
    """A mount with its log; `at` names a file in it."""

    def __init__(self, rig, directory, log):
        self.rig = rig
        self.directory = directory
        self.log_path = log

    def at(self, name=""):
        return os.path.join(self.directory, name)

    def log(self):
        with open(self.log_path) as file:
            return file.read()

    def stats(self):
        with open(self.at(".nfsrdma/stats.json")) as file:
            return json.load(file)

    def calls(self, op):
        """How often an operation was called, by the per-op lines of mountstats."""
        with open(self.at(".nfsrdma/mountstats")) as file:
            found = re.search(rf"^\s*{op}: (\d+) ", file.read(), re.M)
        return int(found.group(1)) if found else 0

    def pids(self):
        return self.rig.daemons(self.directory)

    def waiting(self):
        """Requests that the kernel waits for."""
        with open(f"/sys/fs/fuse/connections/{mounts()[self.directory][0]}/waiting") as file:
            return int(file.read())

    def unmount(self, *flags):
        subprocess.run(["umount", *flags, self.directory], check=True, timeout=30)
        self.wait_gone()

    def wait_gone(self, seconds=15):
        wait_for("the daemon ends after unmounting", lambda: not self.pids(), seconds)


class Rig:
    def __init__(self, build, work):
        self.build = build
        self.work = work
        self.servers = []
        self.mounted = []
        self.listeners = []

    def path(self, name):
        return os.path.join(self.work, name)

    def directory(self, name, mode=0o755):
        path = self.path(name)
        os.mkdir(path)
        os.chmod(path, mode)
        return path

    def program(self, name):
        return os.path.join(self.build, "bin", name)

    def serve(self, *args, directory=None, squash=False):
        if directory is None:
            directory = self.directory(f"export-{len(self.servers)}")
        self.servers.append(Server(self, directory, [*args, *([] if squash else ["--no-root-squash"])]))
        return self.servers[-1]

    def fuse(self, *args, name="nfsrdma-fuse", timeout=40, **kw):
        """Runs nfsrdma-fuse to its end (of the parent, when it goes to the background)."""
        return subprocess.run([self.program(name), *map(str, args)], text=True, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=timeout, **kw)

    def mount(self, server, options="", export="/", directory=None, flags=()):
        if directory is None:
            directory = self.directory(f"mount-{len(self.mounted)}")
        log = self.path(f"mount-{len(self.mounted)}.log")
        words = ",".join(filter(None, [f"provider=iwarp,port={server.port}", options]))
        done = self.fuse(f"127.0.0.1:{export}", directory, "-o", words, "--log-file", log, *flags)
        if done.returncode != 0:
            raise Failed(f"mounting: exit {done.returncode}: {done.stderr}")
        self.mounted.append(Mounted(self, directory, log))
        return self.mounted[-1]

    def refused(self, code, text, *args, name="nfsrdma-fuse", seconds=15.0, **kw):
        """nfsrdma-fuse must fail with that exit code and one line that holds `text`, within the time."""
        started = time.monotonic()
        done = self.fuse(*args, name=name, **kw)
        took = time.monotonic() - started
        expect(f"exit code of {args} ({done.stderr.strip()})", done.returncode, code)
        expect(f"number of lines on stderr {done.stderr!r}", len(done.stderr.splitlines()), 1)
        expect_true(f"{done.stderr!r} does not hold {text!r}", text.lower() in done.stderr.lower())
        expect_true(f"it took {took:.1f} s", took <= seconds)
        return done.stderr

    def daemons(self, directory=None):
        found = []
        for pid in processes("nfsrdma-fuse"):
            with contextlib.suppress(OSError), open(f"/proc/{pid}/cmdline") as file:
                if directory is None or directory in file.read().split("\0"):
                    found.append(pid)
        return found

    def close(self):
        """What is mounted is unmounted and leaves nothing."""
        for server in self.servers:
            if server.process.poll() is None:
                server.resume()
        for directory in list(mounts()):
            subprocess.run(["umount", directory], check=True, timeout=30)
        wait_for(f"daemons end: {self.daemons()}", lambda: not self.daemons() and not processes("nfsrdma-mounter"), 20)
        for server in self.servers:
            server.stop()


def abort_connections():
    """Ends every FUSE connection of this mount namespace; those of other namespaces are not ours."""
    for minor, _ in mounts().values():
        with contextlib.suppress(OSError), open(f"/sys/fs/fuse/connections/{minor}/abort", "w") as file:
            file.write("1")


def start_watchdog(seconds):
    def bark():
        print(f"watchdog: the case did not end within {seconds} s", flush=True)
        abort_connections()
        os._exit(1)
    timer = threading.Timer(seconds, bark)
    timer.daemon = True
    timer.start()


def mounts_below(directory):
    """Mount points of any kind in there, the deepest first."""
    with open("/proc/self/mountinfo") as table:
        points = [line.split()[4].encode().decode("unicode_escape") for line in table]
    return sorted((p for p in points if p == directory or p.startswith(directory + "/")), key=len, reverse=True)


@contextlib.contextmanager
def work_directory(name, place=None):
    """Removed at the end, but never through a mount: what is bound in there is not ours to delete."""
    work = tempfile.mkdtemp(prefix=f"nfsrdma-fuse-{name}.", dir=place)
    os.chmod(work, 0o755)
    try:
        yield work
    finally:
        for point in mounts_below(work):
            subprocess.run(["umount", "-l", point], check=False, stderr=subprocess.DEVNULL)
        left = mounts_below(work)
        if left:
            print(f"{work} stays: {left} cannot be unmounted", flush=True)
        else:
            shutil.rmtree(work, ignore_errors=True)


def run(name, build, seconds):
    start_watchdog(seconds)
    with work_directory(name) as work:
        rig = Rig(build, work)
        try:
            CASES[name](rig)
            rig.close()
        except BaseException:
            for file in sorted(os.listdir(work)):
                if file.endswith(".log"):
                    with open(os.path.join(work, file), errors="replace") as log:
                        print(f"---- {file}\n{log.read()[-3000:]}", flush=True)
            abort_connections()
            for server in rig.servers:
                server.stop()
            raise
