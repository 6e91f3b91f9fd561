# SPDX-License-Identifier: Apache-2.0
"""From the first call to the last process: start, unmount, signals, crashes, interrupts."""
import contextlib
import errno
import os
import signal
import subprocess
import time

from rig import (Skipped, abort_connections, as_user, case, content, expect, expect_errno, expect_true, libc,
                 mounts, processes, read_file, state_of, wait_for, write_file)


def spawn(function):
    """A child that runs function and ends; its PID."""
    child = os.fork()
    if child == 0:
        code = 1
        with contextlib.suppress(BaseException):
            function()
            code = 0
        os._exit(code)
    return child


def gone(pid):
    return os.waitpid(pid, os.WNOHANG)[0] == pid


# What the kernel says of a mount whose daemon is gone: the request that was under way, and those after it.
DEAD = (errno.ENOTCONN, errno.ECONNABORTED)


@case
def usable_when_the_command_returns(rig):
    server = rig.serve()
    write_file(server.at("file"), b"at once")
    directory = rig.directory("mount")
    done = rig.fuse("127.0.0.1:/", directory, "-o", f"provider=iwarp,port={server.port}")
    expect("exit code, stdout, stderr", (done.returncode, done.stdout, done.stderr), (0, "", ""))
    expect("in the mount table", mounts()[directory][1], "127.0.0.1:/")
    expect("a file", read_file(os.path.join(directory, "file")), b"at once")
    with open("/proc/mounts") as table:
        line = next(line for line in table if directory in line)
    expect_true(f"flags in {line!r}", " fuse.nfsrdma rw,nosuid,nodev," in line and "allow_other" in line)


@case
def vers_4_2_says_once_that_4_1_is_used(rig):
    server = rig.serve()
    directory = rig.directory("mount")
    log = rig.path("mount.log")
    done = rig.fuse("127.0.0.1:/", directory, "--log-file", log, "-o", f"provider=iwarp,port={server.port},vers=4.2")
    expect("exit code", done.returncode, 0)
    expect(f"lines on stderr {done.stderr!r}", len(done.stderr.splitlines()), 1)
    expect_true(f"the notice {done.stderr!r}", "NFSv4.2 are not there yet: 4.1 is used" in done.stderr)
    with open(log) as file:
        expect("and in the log", file.read().count("4.1 is used"), 1)


@case
def unmounting_leaves_nothing(rig):
    server = rig.serve()
    mount = rig.mount(server, "nconnect=2")
    write_file(mount.at("file"), content("left", 1_000_000))
    mount.unmount()
    # A process that is ending has no command line any more, by which it was waited for.
    wait_for("no process is left", lambda: not processes("nfsrdma-fuse") + processes("nfsrdma-mounter"))
    expect("mounts", mounts(), {})
    expect("the directory below", os.listdir(mount.directory), [])
    expect_true("the log says so", mount.log().splitlines()[-1].endswith(f"{mount.directory} ends"))
    again = rig.mount(server, directory=mount.directory)
    expect("mounted again", read_file(again.at("file")), content("left", 1_000_000))


@case
def busy_and_lazy_unmount(rig):
    server = rig.serve()
    mount = rig.mount(server)
    fd = os.open(mount.at("file"), os.O_CREAT | os.O_RDWR)
    busy = subprocess.run(["umount", mount.directory], stderr=subprocess.PIPE, text=True, check=False)
    expect("umount of a busy mount", (busy.returncode, "busy" in busy.stderr), (32, True))
    subprocess.run(["umount", "-l", mount.directory], check=True)
    os.write(fd, b"still works")
    os.fsync(fd)
    expect("through the open handle", read_file(server.at("file")), b"still works")
    expect_true("the daemon lives", mount.pids())
    os.close(fd)
    mount.wait_gone()


@case
def sigterm_unmounts_and_drains(rig):
    server = rig.serve()
    mount = rig.mount(server)
    fd = os.open(mount.at("file"), os.O_CREAT | os.O_WRONLY)
    os.write(fd, b"x" * 500_000)
    os.kill(mount.pids()[0], signal.SIGTERM)
    wait_for("it is unmounted", lambda: mount.directory not in mounts())
    os.write(fd, b"y" * 500_000)
    os.close(fd)
    mount.wait_gone()
    expect("what was written before and after", read_file(server.at("file")), b"x" * 500_000 + b"y" * 500_000)


@case
def a_second_signal_ends_at_once(rig):
    server = rig.serve()
    mount = rig.mount(server)
    fd = os.open(mount.at("file"), os.O_CREAT | os.O_WRONLY)
    pid = mount.pids()[0]
    os.kill(pid, signal.SIGTERM)
    wait_for("it is unmounted", lambda: mount.directory not in mounts())
    started = time.monotonic()
    os.kill(pid, signal.SIGTERM)
    mount.wait_gone()
    expect_true("it took its time", time.monotonic() - started < 8)
    expect_errno(DEAD, "the handle is dead", os.fsync, fd)
    with contextlib.suppress(OSError):
        os.close(fd)


@case
def a_killed_daemon_fails_loudly_and_is_replaced(rig):
    server = rig.serve()
    write_file(server.at("file"), b"x")
    mount = rig.mount(server)
    os.kill(mount.pids()[0], signal.SIGKILL)
    mount.wait_gone()
    expect_errno(DEAD, "the mount point", os.listdir, mount.directory)
    wait_for("its helper ends, too", lambda: not processes("nfsrdma-mounter"))
    again = rig.mount(server, directory=mount.directory)
    expect("mounted over it", read_file(again.at("file")), b"x")
    again.unmount()
    expect("nothing lies below", (mounts(), os.listdir(mount.directory)), ({}, []))


@case
def an_aborted_connection_ends_the_daemon(rig):
    server = rig.serve()
    mount = rig.mount(server)
    os.listdir(mount.at())
    abort_connections()
    mount.wait_gone()
    expect_errno(DEAD, "the mount point", os.listdir, mount.directory)


@case
def f13_devices_are_opened_after_the_last_fork(rig):
    """Started without -f it does I/O; the process that mounts holds no descriptor of a device or connection."""
    server = rig.serve()
    mount = rig.mount(server, "nconnect=2")
    data = content("f13", 2_000_000)
    write_file(mount.at("file"), data)
    expect("I/O in the background", read_file(server.at("file")), data)
    daemons, helpers = mount.pids(), processes("nfsrdma-mounter")
    expect("processes", (len(daemons), len(helpers)), (1, 1))
    fds = {fd: os.readlink(f"/proc/{helpers[0]}/fd/{fd}") for fd in os.listdir(f"/proc/{helpers[0]}/fd")}
    others = sorted(target for target in fds.values() if target != "/dev/null")
    expect_true(f"descriptors of the helper: {others}", len(others) == 1 and others[0].startswith("socket:"))
    with open("/proc/net/tcp") as table:
        inodes = {f"socket:[{line.split()[9]}]" for line in table if ":" in line.split()[0]}
    expect("its socket is no connection", others[0] in inodes, False)
    expect("parent of the helper", int(open(f"/proc/{helpers[0]}/stat").read().rpartition(")")[2].split()[1]),
           daemons[0])


@case
def logs_go_where_they_are_told(rig):
    server = rig.serve()
    quiet = rig.mount(server, flags=["--log-level", "error"])
    loud = rig.mount(server, flags=["--log-level", "debug"])
    loud.unmount()
    quiet.unmount()
    expect("at level error", quiet.log(), "")
    expect_true("at level debug", "is mounted on" in loud.log())
    directory = rig.directory("foreground")
    process = subprocess.Popen([rig.program("nfsrdma-fuse"), "127.0.0.1:/", directory, "-f", "--log-file", "-", "-o",
                                f"provider=iwarp,port={server.port}"], stderr=subprocess.PIPE, text=True)
    wait_for("it is mounted", lambda: directory in mounts())
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=20)
    expect("exit code in the foreground", process.returncode, 0)
    expect_true(f"lines on stderr: {said!r}", "is mounted on" in said and "a signal came" in said)
    expect("no mount is left", mounts(), {})


@case
def capabilities_and_cores(rig):
    server = rig.serve()
    mount = rig.mount(server)
    with open(f"/proc/{mount.pids()[0]}/status") as file:
        status = dict(line.split(":\t", 1) for line in file.read().splitlines() if ":\t" in line)
    kept = int(status["CapEff"], 16)
    expect("capabilities beyond locking memory, ports and tracing", kept & ~(1 << 14 | 1 << 10 | 1 << 19), 0)
    expect_true("no dump of users' data: /proc/PID belongs to root and cannot be read by the daemon's user",
                os.stat(f"/proc/{mount.pids()[0]}/mem").st_uid == 0)


@case
def a_killed_reader_of_a_silent_server_ends(rig):
    """Synchronous calls end within 2 s of SIGKILL though the server never answers."""
    server = rig.serve()
    write_file(server.at("file"), b"x" * 100_000)
    mount = rig.mount(server, "noac,nconnect=2")
    os.listdir(mount.at())
    server.pause()
    calls = [lambda: os.stat(mount.at("file")), lambda: os.mkdir(mount.at("dir")), lambda: os.listdir(mount.at()),
             lambda: os.rename(mount.at("file"), mount.at("other")), lambda: os.statvfs(mount.at())] * 3
    children = [spawn(call) for call in calls]
    # rename waits for the name that mkdir's caller has locked the directory for: not every call is out.
    wait_for("requests are out", lambda: mount.waiting() >= 10, 5)
    started = time.monotonic()
    for child in children:
        os.kill(child, signal.SIGKILL)
    for child in children:
        wait_for("a killed caller ends", lambda: gone(child), 5)
    expect_true(f"it took {time.monotonic() - started:.1f} s", time.monotonic() - started < 4)
    server.resume()
    expect_true("the mount goes on", len(os.listdir(mount.at())) >= 1)


@case
def handled_signals_change_nothing(rig):
    """1 kHz of SIGALRM during metadata and data calls."""
    server = rig.serve()
    mount = rig.mount(server)
    hits = []
    signal.signal(signal.SIGALRM, lambda *_: hits.append(1))
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    data = content("signals", 400_000)
    for i in range(60):
        name = mount.at(f"file-{i}")
        write_file(name, data)
        os.rename(name, name + "x")
        expect("size", os.stat(name + "x").st_size, len(data))
        expect("bytes", read_file(name + "x"), data)
        os.unlink(name + "x")
    signal.setitimer(signal.ITIMER_REAL, 0)
    expect_true("signals came", len(hits) > 20)
    expect("names left", os.listdir(server.directory), [])


@case
def a_paused_server_only_delays(rig):
    server = rig.serve()
    mount = rig.mount(server, "nconnect=2")
    data = content("paused", 3_000_000)

    def work():
        write_file(mount.at("file"), data)
        expect("bytes", read_file(mount.at("file")), data)
    server.pause()
    child = spawn(work)
    wait_for("a request is out", lambda: mount.waiting() > 0)
    server.resume()
    expect("exit code of the worker", os.waitpid(child, 0)[1], 0)
    expect("on the server", read_file(server.at("file")), data)


@case
def fusermount_for_users_without_rights(rig):
    if os.environ["NFSRDMA_IN_NAMESPACE"] != "1":
        raise Skipped("another user is needed")
    server = rig.serve()
    os.chmod(server.directory, 0o1777)
    directory = rig.directory("users")
    os.chown(directory, 1000, 1000)
    words = f"provider=iwarp,port={server.port}"

    def mount_and_use():
        done = rig.fuse("127.0.0.1:/", directory, "-o", words)
        expect(f"exit code ({done.stderr})", done.returncode, 0)
        write_file(os.path.join(directory, "file"), b"mine")
        return os.stat(os.path.join(directory, "file")).st_uid
    expect("owner of the file", as_user(1000, 1000, [], mount_and_use), 1000)
    expect_errno(errno.EACCES, "root has no business there", os.listdir, directory)

    def refused():
        return rig.fuse("127.0.0.1:/", rig.work, "-o", words)
    done = as_user(1000, 1000, [], refused)
    expect_true(f"somebody else's directory: {done.stderr!r}", done.returncode != 0 and len(done.stderr.splitlines()) == 1)
    as_user(1000, 1000, [], subprocess.run, ["fusermount3", "-u", directory])
    wait_for("the daemon ends", lambda: not rig.daemons(directory))
    expect("on the server", read_file(server.at("file")), b"mine")


@case
def a_passed_descriptor(rig):
    """Somebody with the right to mount did it, and hands over the descriptor."""
    server = rig.serve()
    write_file(server.at("file"), b"x" * 5000)
    directory = rig.directory("passed")
    fd = os.open("/dev/fuse", os.O_RDWR)
    data = f"fd={fd},rootmode=40000,user_id=0,group_id=0,allow_other,max_read=1048576"
    done = libc.mount(b"127.0.0.1:/", os.fsencode(directory), b"fuse.nfsrdma", 6, data.encode())
    expect("mount(2)", done, 0)
    run = rig.fuse("127.0.0.1:/", f"/dev/fd/{fd}", "-o", f"provider=iwarp,port={server.port}", pass_fds=[fd])
    expect(f"exit code ({run.stderr})", run.returncode, 0)
    os.close(fd)
    expect("a file", read_file(os.path.join(directory, "file")), b"x" * 5000)
    subprocess.run(["umount", directory], check=True)
    wait_for("the daemon ends", lambda: not processes("nfsrdma-fuse"))
