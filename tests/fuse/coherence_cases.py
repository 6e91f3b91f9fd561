# SPDX-License-Identifier: Apache-2.0
"""Two mounts of one server, and what the kernel may keep."""
import errno
import json
import os
import stat

from rig import MIB, case, content, expect, expect_errno, expect_true, read_file, wait_for, write_file


@case
def two_mounts_see_each_others_files(rig):
    server = rig.serve()
    a, b = rig.mount(server), rig.mount(server)
    data = content("two", 300_000)
    write_file(a.at("file"), data)
    expect("what A closed, B reads", read_file(b.at("file")), data)
    os.mkdir(b.at("dir"))
    write_file(b.at("dir/inside"), b"b")
    expect("A lists what B made", sorted(os.listdir(a.at())), ["dir", "file"])
    expect("A reads below it", read_file(a.at("dir/inside")), b"b")
    os.rename(b.at("file"), b.at("dir/moved"))
    expect("A lists after B's rename", os.listdir(a.at()), ["dir"])
    expect("A reads the moved file", read_file(a.at("dir/moved")), data)
    wait_for("the old name goes for A", lambda: not os.path.exists(a.at("file")), 3)
    os.unlink(a.at("dir/moved"))
    wait_for("the removed name goes for B", lambda: not os.path.exists(b.at("dir/moved")), 3)


@case
def close_to_open(rig):
    """Open after another node's close: the new bytes, at once, though the old ones lie in the page cache."""
    server = rig.serve()
    a, b = rig.mount(server), rig.mount(server)
    for round_number in range(30):
        size = (round_number * 7919) % 50_000 + 1  # longer and shorter than the last
        data = content(round_number, size)
        writer, reader = (a, b) if round_number % 2 else (b, a)
        write_file(writer.at("file"), data)
        expect(f"bytes of round {round_number}", read_file(reader.at("file")), data)
        with open(reader.at("file"), "rb") as file:
            expect("size after open", os.fstat(file.fileno()).st_size, size)


@case
def same_size_other_bytes(rig):
    server = rig.serve()
    a, b = rig.mount(server), rig.mount(server)
    for i in range(20):
        write_file(a.at("file"), bytes([i]) * 5000)
        expect(f"round {i}", read_file(b.at("file")), bytes([i]) * 5000)


@case
def pages_are_kept_while_nothing_changes(rig):
    server = rig.serve()
    write_file(server.at("file"), content("kept", MIB))
    mount = rig.mount(server)
    expect("first reading", len(read_file(mount.at("file"))), MIB)
    reads = mount.calls("READ")
    for _ in range(5):
        expect("reading again", read_file(mount.at("file")), content("kept", MIB))
    expect("no READ went out", mount.calls("READ"), reads)
    write_file(server.at("file"), content("changed", MIB))
    expect("after a change", read_file(mount.at("file")), content("changed", MIB))
    expect_true("READs went out", mount.calls("READ") > reads)


@case
def buffered_reads_are_large(rig):
    """The kernel's read-ahead of 128 KiB was raised."""
    server = rig.serve()
    write_file(server.at("file"), content("large", 32 * MIB))
    mount = rig.mount(server)
    with open(mount.at("file"), "rb", buffering=0) as file:
        while file.read(128 << 10):
            pass
    reads = mount.calls("READ")
    expect_true(f"{reads} READs for 32 MiB", reads <= 64)


@case
def a_file_replaced_on_the_server(rig):
    server = rig.serve()
    mount = rig.mount(server)
    write_file(server.at("file"), b"one")
    expect("first", read_file(mount.at("file")), b"one")
    write_file(server.at("other"), b"other file")
    os.rename(server.at("other"), server.at("file"))
    wait_for("the new file shows", lambda: read_file(mount.at("file")) == b"other file", 3)
    os.unlink(server.at("file"))
    wait_for("the name goes", lambda: not os.path.exists(mount.at("file")), 3)


@case
def names_that_were_not_there(rig):
    server = rig.serve()
    mount = rig.mount(server)
    expect_errno(errno.ENOENT, "not there", os.stat, mount.at("late"))
    write_file(server.at("late"), b"x")
    wait_for("it shows within a second", lambda: os.path.exists(mount.at("late")), 2)
    uncached = rig.mount(server, "lookupcache=none")
    expect_errno(errno.ENOENT, "not there", os.stat, uncached.at("later"))
    write_file(server.at("later"), b"x")
    expect("lookupcache=none shows it at once", os.stat(uncached.at("later")).st_size, 1)


@case
def attributes_without_cache(rig):
    server = rig.serve()
    mount = rig.mount(server, "noac")
    write_file(server.at("file"), b"x")
    expect("size", os.stat(mount.at("file")).st_size, 1)
    for size in range(2, 12):
        write_file(server.at("file"), b"x" * size)
        expect("size at once", os.stat(mount.at("file")).st_size, size)


@case
def the_control_directory(rig):
    server = rig.serve()
    write_file(server.at("file"), b"x")
    mount = rig.mount(server, "nconnect=3")
    expect("hidden from listing", os.listdir(mount.at()), ["file"])
    expect("its files", sorted(os.listdir(mount.at(".nfsrdma"))),
           ["health", "mountstats", "options", "stats.json", "version"])
    found = os.stat(mount.at(".nfsrdma"))
    expect("kind and mode", found.st_mode, stat.S_IFDIR | 0o555)
    expect("mode of a file", os.stat(mount.at(".nfsrdma/health")).st_mode, stat.S_IFREG | 0o444)
    expect("health", read_file(mount.at(".nfsrdma/health")), b"ok\n")
    expect_true("version", read_file(mount.at(".nfsrdma/version")).startswith(b"nfsrdma "))
    options = dict(line.split("=", 1) for line in read_file(mount.at(".nfsrdma/options")).decode().splitlines()
                   if "=" in line)
    expect("options", (options["nconnect"], options["port"], options["rsize"]), ("3", str(server.port), "1048576"))
    lines = read_file(mount.at(".nfsrdma/mountstats")).decode().splitlines()
    expect("device line", lines[0],
           f"device 127.0.0.1:/ mounted on {mount.directory} with fstype nfs4 statvers=1.1")
    expect("a line per connection", sum(line.startswith("\txprt:\trdma ") for line in lines), 3)
    expect("JSON", len(json.loads(read_file(mount.at(".nfsrdma/stats.json")))["connections"]), 3)
    for what, function, args in (
            ("write", os.open, (mount.at(".nfsrdma/health"), os.O_WRONLY)),
            ("create", os.open, (mount.at(".nfsrdma/new"), os.O_CREAT | os.O_WRONLY)),
            ("unlink", os.unlink, (mount.at(".nfsrdma/health"),)),
            ("rmdir", os.rmdir, (mount.at(".nfsrdma"),)),
            ("rename", os.rename, (mount.at("file"), mount.at(".nfsrdma/file"))),
            ("chmod", os.chmod, (mount.at(".nfsrdma/health"), 0o777))):
        try:
            function(*args)
        except PermissionError:
            continue
        except OSError as error:
            expect(f"{what}: errno", errno.errorcode[error.errno], "EACCES or EPERM")
        expect_true(f"{what} went through", False)
    expect_errno(errno.EEXIST, "mkdir of its name", os.mkdir, mount.at(".nfsrdma"))
    expect_errno(errno.ENOENT, "an unknown file", os.stat, mount.at(".nfsrdma/none"))
    expect("it is in the root only", os.path.exists(mount.at("file/.nfsrdma")), False)


@case
def the_control_directory_answers_while_the_server_is_silent(rig):
    server = rig.serve()
    mount = rig.mount(server)
    os.listdir(mount.at())
    server.pause()
    expect("health", read_file(mount.at(".nfsrdma/health")), b"ok\n")
    expect_true("mountstats", b"xprt:" in read_file(mount.at(".nfsrdma/mountstats")))
    server.resume()
    expect("and the mount goes on", os.listdir(mount.at()), [])
