# SPDX-License-Identifier: Apache-2.0
"""Data of regular files through one mount."""
import ctypes
import errno
import mmap
import os
import subprocess

from rig import (MIB, case, content, drop_pages, expect, expect_errno, expect_true, libc, read_file, sha, wait_for,
                 write_file)


@case
def sizes_and_checksums(rig):
    server = rig.serve()
    mount = rig.mount(server, "nconnect=2")
    for size in (0, 1, 4095, 4096, 4097, 8191, 8192, 8193, 65535, 65536, 65537, MIB - 1, MIB, MIB + 1, 5 * MIB + 3):
        data = content(size, size)
        write_file(mount.at(f"f{size}"), data)
        expect(f"{size} bytes on the server", sha(read_file(server.at(f"f{size}"))), sha(data))
        expect(f"{size} bytes read back", sha(read_file(mount.at(f"f{size}"))), sha(data))
        write_file(server.at(f"s{size}"), data)
        expect(f"{size} bytes never seen here", sha(read_file(mount.at(f"s{size}"))), sha(data))


@case
def file_checks_pass(rig):
    """The judge that the kernel's own client is measured with."""
    server = rig.serve()
    mount = rig.mount(server)
    checks = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../vm/file_checks")
    done = subprocess.run([checks, mount.at(), "--server-view", server.directory], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=45, check=False)
    expect(f"exit code of file_checks:\n{done.stdout}", done.returncode, 0)


@case
def large_file_over_many_connections(rig):
    server = rig.serve()
    mount = rig.mount(server, "nconnect=4")
    data = content("large", 64 * MIB)
    write_file(mount.at("large"), data)
    expect("SHA-256 on the server", sha(read_file(server.at("large"))), sha(data))
    drop_pages(mount.at("large"))
    expect("SHA-256 read back", sha(read_file(mount.at("large"))), sha(data))
    stats = mount.stats()
    expect("connections", len(stats["connections"]), 4)


@case
def overwrites_at_odd_places(rig):
    server = rig.serve()
    mount = rig.mount(server)
    data = bytearray(content("base", 300_000))
    write_file(mount.at("file"), data)
    fd = os.open(mount.at("file"), os.O_RDWR)
    for offset, count in ((0, 1), (1, 4095), (4095, 2), (65_535, 65_538), (299_999, 7), (400_001, 10), (123, 177_777)):
        piece = content((offset, count), count)
        expect("pwrite", os.pwrite(fd, piece, offset), count)
        data += bytes(max(0, offset + count - len(data)))
        data[offset:offset + count] = piece
        expect("pread right after", os.pread(fd, count, offset), piece)
    os.close(fd)
    expect("SHA-256 on the server", sha(read_file(server.at("file"))), sha(bytes(data)))


def aligned(size):
    return mmap.mmap(-1, size)


@case
def direct_io(rig):
    server = rig.serve()
    mount = rig.mount(server)
    data = content("direct", 8 * MIB)
    memory = aligned(8 * MIB)
    memory[:] = data
    fd = os.open(mount.at("file"), os.O_RDWR | os.O_CREAT | os.O_DIRECT, 0o644)
    expect("one write of 8 MiB", os.pwritev(fd, [memory], 0), 8 * MIB)
    os.fsync(fd)
    expect("SHA-256 on the server", sha(read_file(server.at("file"))), sha(data))
    back = aligned(8 * MIB)
    expect("one read of 8 MiB", os.preadv(fd, [back], 0), 8 * MIB)
    expect("SHA-256 read back", sha(back[:]), sha(data))
    expect("read across the end", os.preadv(fd, [memory], 8 * MIB - 4096), 4096)
    expect("read at the end", os.preadv(fd, [memory], 8 * MIB), 0)
    write_file(server.at("file"), content("other", MIB))
    expect("a direct read sees the server", os.preadv(fd, [back], 0), MIB)
    expect("its bytes", sha(back[:MIB]), sha(content("other", MIB)))
    os.close(fd)


@case
def payload_is_not_copied(rig):
    """1 MiB writes and reads go straight between FUSE's payload buffer and the wire."""
    server = rig.serve()
    mount = rig.mount(server)
    data = content("copied", 16 * MIB)
    write_file(mount.at("file"), data)
    fd = os.open(mount.at("file"), os.O_RDONLY | os.O_DIRECT)
    memory = aligned(MIB)
    for at in range(0, 16 * MIB, MIB):
        expect("direct read", os.preadv(fd, [memory], at), MIB)
    os.close(fd)
    stats = mount.stats()
    expect("bytes written straight from the buffer", stats["direct_write_bytes"], 16 * MIB)
    expect("bytes that went through another buffer", stats["bounced_bytes"], 0)
    expect_true(f"bytes read straight: {stats['direct_read_bytes']}", stats["direct_read_bytes"] >= 16 * MIB)


@case
def a_small_pool_throttles_and_loses_nothing(rig):
    """More acknowledged data than the pool can hold: writers wait for commits, nothing fails."""
    server = rig.serve()
    mount = rig.mount(server, "pool=16m")
    data = content("pool", 24 * MIB)
    with open(mount.at("file"), "wb", buffering=0) as file:
        for at in range(0, len(data), 64 << 10):
            expect("write", file.write(data[at:at + (64 << 10)]), 64 << 10)
        expect("what is there can be read meanwhile", len(os.listdir(mount.at())), 1)
    expect("SHA-256 on the server", sha(read_file(server.at("file"))), sha(data))
    drop_pages(mount.at("file"))
    expect("SHA-256 read back", sha(read_file(mount.at("file"))), sha(data))
    stats = mount.stats()
    expect_true(f"the pool holds {stats['pool_bytes_registered']} bytes", stats["pool_bytes_registered"] <= 16 * MIB)


@case
def append_in_turn_through_two_mounts(rig):
    """Neither handle is opened again: the kernel's cached size is always the old one."""
    server = rig.serve()
    first, second = rig.mount(server), rig.mount(server)
    a = os.open(first.at("log"), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    b = os.open(second.at("log"), os.O_RDWR | os.O_APPEND)
    wanted = b""
    for i in range(40):
        for fd, letter in ((a, b"a"), (b, b"b")):
            line = letter * (1 + i * 37 % 5000) + b"\n"
            expect("append", os.write(fd, line), len(line))
            wanted += line
    expect("read through the appending handle", os.pread(b, len(wanted) + 1, 0), wanted)
    os.close(a)
    os.close(b)
    expect("on the server", read_file(server.at("log")), wanted)
    expect("through the first mount", read_file(first.at("log")), wanted)


@case
def concurrent_appends_of_one_mount(rig):
    server = rig.serve()
    mount = rig.mount(server, "nconnect=2")
    write_file(mount.at("log"), b"")
    children = []
    for letter in b"abcd":
        child = os.fork()
        if child == 0:
            fd = os.open(mount.at("log"), os.O_WRONLY | os.O_APPEND)
            for _ in range(50):
                os.write(fd, bytes([letter]) * 99 + b"\n")
            os.close(fd)
            os._exit(0)
        children.append(child)
    for child in children:
        expect("exit code of an appender", os.waitpid(child, 0)[1], 0)
    lines = read_file(server.at("log")).splitlines()
    expect("lines", len(lines), 200)
    expect_true("every line is whole", all(len(set(line)) == 1 and len(line) == 99 for line in lines))


@case
def memory_maps(rig):
    server = rig.serve()
    mount = rig.mount(server)
    data = content("map", 100_000)
    write_file(mount.at("file"), data)
    with open(mount.at("file"), "r+b") as file:
        with mmap.mmap(file.fileno(), 0) as shared:
            expect("bytes in a shared map", shared[:], data)
            shared[5000:5005] = b"hello"
            shared.flush()
            expect("read after msync", os.pread(file.fileno(), 5, 5000), b"hello")
            expect("on the server after msync and fsync",
                   (os.fsync(file.fileno()), read_file(server.at("file"))[5000:5005])[1], b"hello")
        with mmap.mmap(file.fileno(), 0, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_WRITE) as private:
            private[0:3] = b"xyz"
    expect("a private map changes nothing", read_file(server.at("file"))[:3], data[:3])


@case
def an_appending_handle_can_be_mapped(rig):
    server = rig.serve()
    mount = rig.mount(server)
    data = content("append", 10_000)
    write_file(mount.at("log"), data)
    fd = os.open(mount.at("log"), os.O_RDWR | os.O_APPEND)
    with mmap.mmap(fd, 0, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ) as private:
        expect("a private map", private[:], data)
    if tuple(map(int, os.uname().release.split(".")[:2])) >= (6, 6):
        with mmap.mmap(fd, 0, prot=mmap.PROT_READ) as shared:
            expect("a shared map", shared[:], data)
    os.write(fd, b"more")
    expect("another handle, whose last page was cached", read_file(mount.at("log")), data + b"more")
    os.close(fd)


@case
def readers_see_what_is_appended_meanwhile(rig):
    """The last page lies in the page cache, with zeros behind the end of the file."""
    server = rig.serve()
    mount = rig.mount(server)
    write_file(mount.at("log"), b"0" * 100)
    reader, writer = os.open(mount.at("log"), os.O_RDONLY), os.open(mount.at("log"), os.O_WRONLY | os.O_APPEND)
    wanted = b"0" * 100
    for i in range(50):
        expect("bytes so far", os.pread(reader, 1_000_000, 0), wanted)
        piece = bytes([65 + i % 26]) * (1 + i * 97 % 6000)
        os.write(writer, piece)
        wanted += piece
    expect("all of it", os.pread(reader, 1_000_000, 0), wanted)
    os.close(reader)
    os.close(writer)


@case
def synchronous_writes_are_durable_at_once(rig):
    server = rig.serve()
    mount = rig.mount(server)
    fd = os.open(mount.at("file"), os.O_WRONLY | os.O_CREAT | os.O_DSYNC)
    before = mount.calls("COMMIT")
    os.write(fd, b"durable")
    os.fsync(fd)
    expect("nothing was left to commit", mount.calls("COMMIT"), before)
    os.close(fd)
    synchronous = rig.mount(server, "sync")
    fd = os.open(synchronous.at("file2"), os.O_WRONLY | os.O_CREAT)
    os.write(fd, content("sync", 3 * MIB))
    expect("all of it is on the server", sha(read_file(server.at("file2"))), sha(content("sync", 3 * MIB)))
    os.close(fd)


@case
def written_data_is_committed_without_being_asked(rig):
    server = rig.serve()
    mount = rig.mount(server)
    fd = os.open(mount.at("file"), os.O_WRONLY | os.O_CREAT)
    os.write(fd, b"x" * 100_000)
    wait_for("a COMMIT", lambda: mount.calls("COMMIT") > 0, 8)
    os.close(fd)


@case
def truncation(rig):
    server = rig.serve()
    mount = rig.mount(server)
    data = content("truncate", 200_000)
    write_file(mount.at("file"), data)
    fd = os.open(mount.at("file"), os.O_RDWR)
    os.ftruncate(fd, 150_001)
    expect("size by fstat", os.fstat(fd).st_size, 150_001)
    os.ftruncate(fd, 160_000)
    expect("bytes after growing", sha(os.pread(fd, 200_000, 0)), sha(data[:150_001] + bytes(9_999)))
    os.chmod(mount.at("file"), 0o400)
    os.ftruncate(fd, 10)
    expect("a handle open for writing cuts whatever the mode", os.stat(server.at("file")).st_size, 10)
    os.close(fd)
    os.close(os.open(mount.at("file"), os.O_WRONLY | os.O_TRUNC))
    expect("O_TRUNC", os.stat(server.at("file")).st_size, 0)
    expect_errno(errno.EINVAL, "negative size", os.truncate, mount.at("file"), -1)
    os.truncate(mount.at("file"), 1 << 33)
    expect("a sparse file", os.stat(mount.at("file")).st_size, 1 << 33)


@case
def copies_by_the_kernel(rig):
    """sendfile and copy_file_range fall back to reads and writes."""
    server = rig.serve()
    mount = rig.mount(server)
    data = content("copy", 3 * MIB + 17)
    write_file(mount.at("from"), data)
    source, sink = os.open(mount.at("from"), os.O_RDONLY), os.open(mount.at("to"), os.O_WRONLY | os.O_CREAT)
    left = len(data)
    while left:
        left -= os.copy_file_range(source, sink, left)
    os.close(sink)
    expect("copy_file_range", sha(read_file(server.at("to"))), sha(data))
    sink = os.open(mount.at("sent"), os.O_WRONLY | os.O_CREAT)
    at = 0
    while at < len(data):
        at += os.sendfile(sink, source, at, len(data) - at)
    os.close(sink)
    os.close(source)
    expect("sendfile", sha(read_file(server.at("sent"))), sha(data))


@case
def what_the_protocol_lacks_is_refused(rig):
    server = rig.serve()
    mount = rig.mount(server)
    write_file(mount.at("file"), b"x")
    fd = os.open(mount.at("file"), os.O_RDWR)
    expect_errno(errno.EOPNOTSUPP, "fallocate with a hole", fallocate, fd, 3, 0, 4096)
    expect_errno(errno.EOPNOTSUPP, "extended attribute", os.setxattr, mount.at("file"), "user.x", b"1")
    expect_errno(errno.EOPNOTSUPP, "O_TMPFILE", os.open, mount.at(), os.O_TMPFILE | os.O_WRONLY)
    os.close(fd)


def fallocate(fd, mode, offset, length):
    libc.fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_long, ctypes.c_long]
    if libc.fallocate(fd, mode, offset, length) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


@case
def a_full_disk_reaches_the_writer(rig):
    small = rig.directory("small")
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "none", small], check=True)
    server = rig.serve(directory=small)
    mount = rig.mount(server)
    data = content("full", 16 * MIB)
    failed = None
    fd = os.open(mount.at("file"), os.O_WRONLY | os.O_CREAT, 0o644)
    try:
        at = 0
        while at < len(data):
            at += os.write(fd, data[at:at + 100_000])
        os.fsync(fd)
    except OSError as error:
        failed = error.errno
    try:
        os.close(fd)
    except OSError as error:
        failed = failed or error.errno
    expect("what the writer was told", failed, errno.ENOSPC)
    stored = read_file(server.at("file"))
    expect_true("what was acknowledged is there, unchanged", stored == data[:len(stored)] and len(stored) >= at)
    os.unlink(mount.at("file"))
    write_file(mount.at("again"), data[:MIB])
    expect("after making room", sha(read_file(server.at("again"))), sha(data[:MIB]))


@case
def a_read_only_mount(rig):
    server = rig.serve()
    write_file(server.at("file"), b"content")
    mount = rig.mount(server, "ro")
    expect("read", read_file(mount.at("file")), b"content")
    expect_errno(errno.EROFS, "create", os.open, mount.at("new"), os.O_CREAT | os.O_WRONLY)
    expect_errno(errno.EROFS, "mkdir", os.mkdir, mount.at("dir"))
    expect_errno(errno.EROFS, "open for writing", os.open, mount.at("file"), os.O_WRONLY)
    expect_errno(errno.EROFS, "unlink", os.unlink, mount.at("file"))
    read_only = rig.serve("--read-only", directory=server.directory)
    writable = rig.mount(read_only)
    expect_errno(errno.EROFS, "create on a read-only export", os.open, writable.at("new"), os.O_CREAT | os.O_WRONLY)
    expect_errno(errno.EROFS, "mkdir on a read-only export", os.mkdir, writable.at("dir"))
