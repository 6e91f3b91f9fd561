# SPDX-License-Identifier: Apache-2.0
"""What cannot be mounted: one line that says why, an exit code as mount(8) has it, in bounded time."""
import contextlib
import errno
import os
import resource
import socket
import struct
import subprocess
import threading

from rig import Skipped, case, expect, expect_errno, expect_true, mounts, processes, wait_for, write_file


def iwarp(port, more=""):
    return f"provider=iwarp,port={port}" + ("," + more if more else "")


def mpa_reply(flags, private_data):
    return b"MPA ID Rep Frame" + struct.pack(">BBH", flags, 2, len(private_data)) + private_data


@contextlib.contextmanager
def listener(answer=None, after_request=False):
    """A TCP port that takes connections; answer: the bytes it says to each, None for silence; after_request: when the
    first bytes have come."""
    place = socket.socket()
    place.bind(("127.0.0.1", 0))
    place.listen(16)
    kept = []

    def serve():
        with contextlib.suppress(OSError):
            while True:
                connection, _ = place.accept()
                kept.append(connection)
                if after_request:
                    connection.recv(4096)
                if answer is not None:
                    connection.sendall(answer)
    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield place.getsockname()[1]
    place.shutdown(socket.SHUT_RDWR)
    place.close()
    thread.join()
    for connection in kept:
        connection.close()


def both_ways(rig, code, text, *args, **kw):
    """In the background and in the foreground: F69 wants the same answer."""
    rig.refused(code, text, *args, **kw)
    rig.refused(code, text, *args, "-f", **kw)
    expect("mounts", mounts(), {})
    expect("processes", processes("nfsrdma-fuse") + processes("nfsrdma-mounter"), [])


@case
def f69_a_wrong_export(rig):
    server = rig.serve()
    both_ways(rig, 32, "none", "127.0.0.1:/none/such", rig.directory("m"), "-o", iwarp(server.port))
    write_file(server.at("file"), b"")
    both_ways(rig, 32, "not a directory", "127.0.0.1:/file", rig.path("m"), "-o", iwarp(server.port))


@case
def f69_a_refused_version(rig):
    server = rig.serve()
    both_ways(rig, 32, "vers", "127.0.0.1:/", rig.directory("m"), "-o", iwarp(server.port, "vers=3"))


@case
def f69_a_bad_option(rig):
    directory = rig.directory("m")
    for words in ("nonsense", "nconnect=0", "nconnect=x", "rsize=-1", "proto=udp", "port=70000", "remount"):
        both_ways(rig, 32, words.split("=")[0], "127.0.0.1:/", directory, "-o", iwarp(1, words))
    done = rig.fuse("127.0.0.1:/", directory, "-s", "-f", "-o", iwarp(1, "nonsense,_netdev,x-a=b"), name="mount.nfsrdma")
    expect("sloppy, and nothing mounted", (done.returncode, done.stderr), (0, ""))


@case
def a_source_address_of_another_host(rig):
    server = rig.serve()
    both_ways(rig, 32, "srcaddr", "127.0.0.1:/", rig.directory("m"), "-o", iwarp(server.port, "srcaddr=192.0.2.1"))


@case
def f69_an_unreachable_server(rig):
    with listener() as port:
        pass
    both_ways(rig, 32, "refused", "127.0.0.1:/", rig.directory("m"), "-o", iwarp(port))
    both_ways(rig, 32, "resolve", "no-such-host.invalid:/", rig.path("m"), "-o", iwarp(port))


@case
def f69_a_refused_client(rig):
    """The export's directory is closed to the squashed root: the walk to it says so."""
    server = rig.serve(squash=True)
    os.makedirs(server.at("closed/inner"))
    os.chmod(server.at("closed"), 0o700)
    both_ways(rig, 32, "permission", "127.0.0.1:/closed/inner", rig.directory("m"), "-o", iwarp(server.port))


@case
def a_server_that_speaks_tcp_but_not_mpa(rig):
    with listener(b"HTTP/1.0 400 Bad Request\r\nContent-Length: 0\r\n\r\n" * 4) as port:
        both_ways(rig, 32, "127.0.0.1", "127.0.0.1:/", rig.directory("m"), "-o", iwarp(port))


@case
def a_server_that_says_nothing(rig):
    with listener() as port:
        rig.refused(32, "127.0.0.1", "127.0.0.1:/", rig.directory("m"), "-o", iwarp(port, "connect_timeout=2"), seconds=6)


@case
def an_mpa_reject(rig):
    with listener(mpa_reply(0x30, struct.pack(">HH", 0x8001, 1)), after_request=True) as port:
        both_ways(rig, 32, "reject", "127.0.0.1:/", rig.directory("m"), "-o", iwarp(port))


@case
def a_reply_that_is_garbage(rig):
    answer = mpa_reply(0x10, struct.pack(">HH", 0x8001, 0x4001)) + bytes(range(256)) * 64
    with listener(answer, after_request=True) as port:
        both_ways(rig, 32, "127.0.0.1", "127.0.0.1:/", rig.directory("m"), "-o", iwarp(port))


@case
def a_server_of_nfs_4_0_only(rig):
    """It answers the first compound with NFS4ERR_MINOR_VERS_MISMATCH."""
    server = rig.serve("--fault", "refuse=exchange_id:10021")
    both_ways(rig, 32, "NFSv4.1 is needed", "127.0.0.1:/", rig.directory("m"), "-o", iwarp(server.port))


@case
def a_name_longer_than_255(rig):
    server = rig.serve()
    both_ways(rig, 32, "too long", "127.0.0.1:/" + "n" * 256, rig.directory("m"), "-o", iwarp(server.port))
    mount = rig.mount(server)
    for call in (os.mkdir, os.stat, os.unlink):
        expect_errno(errno.ENAMETOOLONG, str(call), call, mount.at("n" * 256))
    os.mkdir(mount.at("n" * 255))
    expect("on the server", os.listdir(server.directory), ["n" * 255])


@case
def a_mount_point_that_is_none(rig):
    write_file(rig.path("file"), b"")
    both_ways(rig, 32, "does not exist", "127.0.0.1:/", rig.path("missing"), "-o", iwarp(1))
    both_ways(rig, 32, "not a directory", "127.0.0.1:/", rig.path("file"), "-o", iwarp(1))
    both_ways(rig, 32, "no such descriptor", "127.0.0.1:/", "/dev/fd/99", "-o", iwarp(1))


@case
def a_mount_point_that_is_busy(rig):
    server = rig.serve()
    mount = rig.mount(server)
    line = rig.refused(32, "busy", "127.0.0.1:/", mount.directory, "-o", iwarp(server.port))
    expect_true(f"it names what is there: {line!r}", "127.0.0.1:/ is mounted there" in line)
    expect("the mount that was there works", os.listdir(mount.at()), [])
    server.pause()
    rig.refused(32, "busy", "127.0.0.1:/", mount.directory, "-o", iwarp(server.port))
    server.resume()


@case
def no_device(rig):
    """As in a container without --device /dev/fuse."""
    if os.environ["NFSRDMA_IN_NAMESPACE"] != "1":
        raise Skipped("hiding /dev/fuse needs root")
    server = rig.serve()
    hidden = rig.directory("dev")
    subprocess.run(["mount", "-t", "tmpfs", "-o", "dev,mode=755", "none", hidden], check=True)
    for name, minor in (("null", 3), ("zero", 5), ("urandom", 9)):
        os.mknod(os.path.join(hidden, name), 0o020666, os.makedev(1, minor))
    os.symlink("/proc/self/fd", os.path.join(hidden, "fd"))
    subprocess.run(["mount", "--move", hidden, "/dev"], check=True)
    os.sync()
    line = rig.refused(2, "modprobe fuse", "127.0.0.1:/", rig.directory("m"), "-o", iwarp(server.port))
    expect_true(f"the way out for containers: {line!r}", "--device /dev/fuse" in line)
    rig.refused(2, "/dev/fuse", "127.0.0.1:/", rig.path("m"), "-f", "-o", iwarp(server.port))


@case
def no_right_to_mount(rig):
    """As in a container without --cap-add SYS_ADMIN."""
    server = rig.serve()
    directory = rig.directory("m")
    done = subprocess.run(["setpriv", "--bounding-set", "-sys_admin", "--inh-caps", "-sys_admin",
                           rig.program("nfsrdma-fuse"), "127.0.0.1:/", directory, "-o", iwarp(server.port)],
                          text=True, stderr=subprocess.PIPE, timeout=20, check=False)
    expect("exit code", done.returncode, 1)
    expect_true(f"the line {done.stderr!r}", "CAP_SYS_ADMIN" in done.stderr and len(done.stderr.splitlines()) == 1)


def runs_or_says_why(rig, server, prefix):
    """Where this process may have little: it mounts, or ends with one line and leaves neither mount nor process."""
    directory = rig.path("m")
    done = subprocess.run([*prefix, rig.program("nfsrdma-fuse"), "127.0.0.1:/", directory, "-o", iwarp(server.port)],
                          text=True, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, timeout=20, check=False)
    if done.returncode == 0:
        expect(f"files by {prefix}", os.listdir(directory), ["file"])
        subprocess.run(["umount", directory], check=True)
    else:
        expect(f"lines by {prefix}: {done.stderr!r}", len(done.stderr.splitlines()), 1)
        expect(f"mounts by {prefix} ({done.stderr.strip()})", mounts(), {})
    wait_for("no process is left", lambda: not processes("nfsrdma-fuse") + processes("nfsrdma-mounter"))
    return done.returncode


@case
def few_descriptors_leave_no_dead_mount(rig):
    server = rig.serve()
    write_file(server.at("file"), b"x")
    rig.directory("m")
    # Below the first not even the dynamic linker starts it; 40 is what one connection gets.
    codes = {limit: runs_or_says_why(rig, server, ["prlimit", f"--nofile={limit}"]) for limit in (5, 8, 12, 20, 39, 40)}
    expect("exit codes by limit", codes, {5: 2, 8: 2, 12: 2, 20: 2, 39: 2, 40: 0})
    line = rig.refused(2, "ulimit", "127.0.0.1:/", rig.path("m"), "-o", iwarp(server.port, "nconnect=16"),
                       preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100)))
    expect_true(f"it says how many: {line!r}", "is 100, and this mount needs 160" in line)


@case
def closed_standard_files(rig):
    """The next descriptors that are opened would be 0, 1 and 2: /dev/fuse, or the way to the parent."""
    server = rig.serve()
    write_file(server.at("file"), b"x")
    rig.directory("m")
    for closed in ("<&-", ">&-", "2>&-", "<&- >&- 2>&-"):
        expect(f"exit code with {closed}", runs_or_says_why(rig, server, ["sh", "-c", f'exec "$@" {closed}', "sh"]), 0)
    mount = subprocess.Popen(["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", rig.program("nfsrdma-fuse"), "-f",
                              "127.0.0.1:/", rig.path("m"), "-o", iwarp(server.port)])
    wait_for("it is mounted", lambda: rig.path("m") in mounts())
    targets = [os.readlink(f"/proc/{mount.pid}/fd/{fd}") for fd in range(3)]
    expect("its standard files", targets, ["/dev/null"] * 3)
    subprocess.run(["umount", rig.path("m")], check=True)
    expect("exit code in the foreground", mount.wait(20), 0)


@case
def names_that_break_lines(rig):
    """One line stays one line, whatever the names in it hold."""
    server = rig.serve()
    for directory in ("no\nsuch", ""):
        both_ways(rig, 32, "does not exist", "127.0.0.1:/", directory, "-o", iwarp(server.port))
    os.mkdir(rig.path("new\nline"))
    mount = rig.mount(server, directory=rig.path("new\nline"))
    rig.refused(32, "busy", "127.0.0.1:/", mount.directory, "-o", iwarp(server.port))


@case
def no_rdma_device(rig):
    if os.path.exists("/sys/class/infiniband") and os.listdir("/sys/class/infiniband"):
        raise Skipped("this machine has an RDMA device")
    both_ways(rig, 2, "no RDMA device", "127.0.0.1:/", rig.directory("m"), "-o", "provider=verbs,port=1")


@case
def usage(rig):
    rig.refused(1, "usage", "127.0.0.1:/")
    rig.refused(1, "--nonsense", "127.0.0.1:/", rig.directory("m"), "--nonsense")
    rig.refused(1, "too many", "127.0.0.1:/", rig.path("m"), "third")
    rig.refused(1, "log-level", "127.0.0.1:/", rig.path("m"), "--log-level", "loud")
    rig.refused(32, "source", "no-colon", rig.path("m"), "-o", iwarp(1))
    done = rig.fuse("--version")
    expect_true("version", done.returncode == 0 and done.stdout.startswith("nfsrdma-fuse 0."))
    done = rig.fuse("--help")
    expect_true("help", done.returncode == 0 and "nconnect=" in done.stdout and "--log-file" in done.stdout)
    rig.refused(32, "log file", "127.0.0.1:/", rig.path("m"), "--log-file", "/no/such/dir/log", "-o", iwarp(1))


@case
def a_server_that_ends_while_mounted(rig):
    server = rig.serve()
    mount = rig.mount(server, "soft,timeo=5,retrans=1")
    os.listdir(mount.at())
    server.process.kill()
    server.process.wait()
    expect_errno(errno.EIO, "a soft mount says EIO", os.listdir, mount.at())
    mount.unmount()


@case
def mount_by_helper(rig):
    """mount -t nfsrdma, as an fstab line has it, and mount -t fuse.nfsrdma."""
    if os.environ["NFSRDMA_IN_NAMESPACE"] != "1":
        raise Skipped("mount(8) needs root")
    server = rig.serve()
    write_file(server.at("file"), b"x")
    # Helpers are looked for in /sbin. An overlay puts ours there in this case's own mount namespace: what is beneath it is
    # mounted nowhere else, so that no clean-up can reach the system's directory.
    with open("/proc/filesystems") as known:
        if "overlay" not in known.read():
            raise Skipped("needs overlayfs, to put a helper into /sbin without touching it")
    layers = rig.directory("layers")
    subprocess.run(["mount", "-t", "tmpfs", "layers", layers], check=True)
    upper, scratch = os.path.join(layers, "upper"), os.path.join(layers, "work")
    os.mkdir(upper)
    os.mkdir(scratch)
    sbin = os.path.realpath("/sbin")
    for name in ("mount.nfsrdma", "mount.fuse.nfsrdma"):
        os.symlink(rig.program("nfsrdma-fuse"), os.path.join(upper, name))
    subprocess.run(["mount", "-t", "overlay", "helpers", sbin, "-o",
                    f"lowerdir={sbin},upperdir={upper},workdir={scratch}"], check=True)
    words = iwarp(server.port, "rw,_netdev,noatime,proto=rdma,vers=4.1,nconnect=2,hard,timeo=600,retrans=2")
    for kind in ("nfsrdma", "fuse.nfsrdma"):
        directory = rig.directory(kind)
        done = subprocess.run(["mount", "-t", kind, "127.0.0.1:/", directory, "-o", words], text=True,
                              stderr=subprocess.PIPE, timeout=30, check=False)
        expect(f"mount -t {kind} ({done.stderr})", done.returncode, 0)
        with open("/proc/mounts") as table:
            line = next(line for line in table if directory in line)
        expect_true(f"source, type, noatime in {line!r}",
                    line.startswith("127.0.0.1:/ ") and " fuse.nfsrdma " in line and "noatime" in line)
        expect("a file", os.listdir(directory), ["file"])
        subprocess.run(["umount", directory], check=True)
    done = subprocess.run(["mount", "-t", "nfsrdma", "127.0.0.1:/", rig.directory("bad"), "-o", words + ",nonsense"],
                          text=True, stderr=subprocess.PIPE, timeout=30, check=False)
    expect("exit code through mount(8)", done.returncode, 32)
    expect_true(f"and the reason {done.stderr!r}", "mount.nfsrdma: " in done.stderr and "nonsense" in done.stderr)
