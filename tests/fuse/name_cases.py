# SPDX-License-Identifier: Apache-2.0
"""Names: create, remove, rename, links, directories, and files that are unlinked while open."""
import ctypes
import errno
import os
import signal
import socket
import stat
import subprocess

from rig import case, content, expect, expect_errno, expect_true, libc, read_file, renameat2, wait_for, write_file


def silly_names(directory):
    return [name for name in os.listdir(directory) if name.startswith(".nfs") and name != ".nfsrdma"]


@case
def create_and_open_flags(rig):
    server = rig.serve()
    mount = rig.mount(server)
    fd = os.open(mount.at("file"), os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o640)
    expect("write", os.write(fd, b"abc"), 3)
    os.close(fd)
    expect("mode", stat.S_IMODE(os.stat(server.at("file")).st_mode), 0o640)
    expect_errno(errno.EEXIST, "O_EXCL on a file", os.open, mount.at("file"), os.O_CREAT | os.O_EXCL | os.O_WRONLY)
    fd = os.open(mount.at("file"), os.O_CREAT | os.O_RDWR, 0o777)
    expect("O_CREAT on a file keeps its bytes", os.read(fd, 10), b"abc")
    expect("and its mode", stat.S_IMODE(os.fstat(fd).st_mode), 0o640)
    expect_errno(errno.EINVAL, "write of nothing at a negative place", os.pwrite, fd, b"x", -1)
    os.close(fd)
    fd = os.open(mount.at("file"), os.O_RDONLY)
    expect_errno(errno.EBADF, "write through a reading handle", os.write, fd, b"x")
    os.close(fd)
    expect_errno(errno.ENOENT, "open of nothing", os.open, mount.at("none"), os.O_RDONLY)
    expect_errno(errno.ENOTDIR, "below a file", os.open, mount.at("file/x"), os.O_RDONLY)
    expect_errno(errno.EISDIR, "writing a directory", os.open, mount.at(), os.O_WRONLY)
    os.close(os.open(mount.at("x" * 255), os.O_CREAT | os.O_WRONLY, 0o600))
    expect_errno(errno.ENAMETOOLONG, "a name of 256 bytes", os.open, mount.at("x" * 256), os.O_CREAT | os.O_WRONLY)
    expect_errno(errno.ENAMETOOLONG, "a directory of 256 bytes", os.mkdir, mount.at("y" * 256))
    os.close(os.open(mount.at("ü\n\\ \x01"), os.O_CREAT | os.O_WRONLY, 0o600))
    expect_true("an odd name is there", "ü\n\\ \x01" in os.listdir(server.directory))


@case
def nodes_of_every_kind(rig):
    server = rig.serve()
    mount = rig.mount(server)
    os.mknod(mount.at("plain"), 0o100644)
    expect("a regular file", stat.S_IFMT(os.stat(server.at("plain")).st_mode), stat.S_IFREG)
    expect_errno(errno.EEXIST, "mknod of a name that is there", os.mknod, mount.at("plain"), 0o100644)
    os.mkfifo(mount.at("fifo"), 0o622)
    expect("a fifo", stat.S_IFMT(os.stat(server.at("fifo")).st_mode), stat.S_IFIFO)
    expect("its mode under the umask", stat.S_IMODE(os.stat(mount.at("fifo")).st_mode), 0o600)
    child = os.fork()
    if child == 0:
        fd = os.open(mount.at("fifo"), os.O_WRONLY)
        os.write(fd, b"through the fifo")
        os._exit(0)
    with open(mount.at("fifo"), "rb") as fifo:
        expect("bytes through the fifo", fifo.read(), b"through the fifo")
    os.waitpid(child, 0)
    place = socket.socket(socket.AF_UNIX)
    os.chdir(mount.at())
    place.bind("socket")
    os.chdir("/")
    place.close()
    expect("a socket", stat.S_IFMT(os.stat(server.at("socket")).st_mode), stat.S_IFSOCK)
    if os.environ["NFSRDMA_IN_NAMESPACE"] == "1":
        os.mknod(mount.at("device"), 0o020600, os.makedev(1, 3))
        found = os.stat(mount.at("device"))
        expect("a device", (stat.S_IFMT(found.st_mode), found.st_rdev), (stat.S_IFCHR, os.makedev(1, 3)))
    kinds = {e.name: stat.S_IFMT(e.stat(follow_symlinks=False).st_mode) for e in os.scandir(mount.at())}
    expect("kinds by listing", (kinds["fifo"], kinds["socket"]), (stat.S_IFIFO, stat.S_IFSOCK))


@case
def directories(rig):
    server = rig.serve()
    mount = rig.mount(server)
    os.mkdir(mount.at("a"), 0o1775)
    expect("mode under the umask", stat.S_IMODE(os.stat(server.at("a")).st_mode), 0o1755)
    os.makedirs(mount.at("a/b/c/d"))
    expect_errno(errno.EEXIST, "mkdir of a directory", os.mkdir, mount.at("a"))
    expect_errno(errno.ENOENT, "mkdir below nothing", os.mkdir, mount.at("none/x"))
    expect_errno(errno.ENOTEMPTY, "rmdir of a full one", os.rmdir, mount.at("a"))
    expect_errno(errno.ENOENT, "rmdir of nothing", os.rmdir, mount.at("none"))
    write_file(mount.at("file"), b"")
    expect_errno(errno.ENOTDIR, "rmdir of a file", os.rmdir, mount.at("file"))
    expect_errno(errno.EISDIR, "unlink of a directory", os.unlink, mount.at("a"))
    os.rmdir(mount.at("a/b/c/d"))
    expect("what is left", os.listdir(mount.at("a/b/c")), [])
    expect("links of a directory with one below", os.stat(mount.at("a")).st_nlink, os.stat(server.at("a")).st_nlink)
    fd = os.open(mount.at("a"), os.O_RDONLY | os.O_DIRECTORY)
    os.fsync(fd)
    os.mkdir("inside", dir_fd=fd)
    os.close(fd)
    expect("mkdirat", sorted(os.listdir(server.at("a"))), ["b", "inside"])


@case
def types_are_the_servers_and_not_the_caches(rig):
    """The name was replaced on the server after this kernel looked: REMOVE must not take the wrong kind."""
    server = rig.serve()
    mount = rig.mount(server)
    write_file(mount.at("file"), b"x")
    os.mkdir(mount.at("dir"))
    os.stat(mount.at("file"))
    os.unlink(server.at("file"))
    os.mkdir(server.at("file"))
    expect_errno(errno.EISDIR, "unlink of what became a directory", os.unlink, mount.at("file"))
    os.stat(mount.at("dir"))
    os.rmdir(server.at("dir"))
    write_file(server.at("dir"), b"y")
    expect_errno(errno.ENOTDIR, "rmdir of what became a file", os.rmdir, mount.at("dir"))
    expect("both are there", sorted(os.listdir(server.directory)), ["dir", "file"])


@case
def renames(rig):
    server = rig.serve()
    mount = rig.mount(server)
    write_file(mount.at("a"), b"a")
    write_file(mount.at("b"), b"b")
    os.rename(mount.at("a"), mount.at("b"))
    expect("content after replacing", read_file(mount.at("b")), b"a")
    expect_errno(errno.ENOENT, "the old name", os.stat, mount.at("a"))
    os.makedirs(mount.at("d1/x"))
    os.mkdir(mount.at("d2"))
    os.rename(mount.at("b"), mount.at("d2/c"))
    expect_errno(errno.ENOTEMPTY, "over a full directory", os.rename, mount.at("d2"), mount.at("d1"))
    expect_errno(errno.EISDIR, "a file over a directory", os.rename, mount.at("d2/c"), mount.at("d1"))
    expect_errno(errno.ENOTDIR, "a directory over a file", os.rename, mount.at("d1"), mount.at("d2/c"))
    expect_errno(errno.EINVAL, "a directory below itself", os.rename, mount.at("d1"), mount.at("d1/x/y"))
    os.mkdir(mount.at("d3"))
    os.rename(mount.at("d1"), mount.at("d3"))
    expect("over an empty directory", os.listdir(mount.at("d3")), ["x"])
    write_file(mount.at("e"), b"e")
    for flags, name, target in ((1, "NOREPLACE", "f"), (2, "EXCHANGE", "d2/c")):
        expect_errno(errno.EINVAL, f"RENAME_{name}", renameat2, mount.at("e"), mount.at(target), flags)
    os.link(mount.at("e"), mount.at("same"))
    os.rename(mount.at("e"), mount.at("same"))
    expect("two names of one file: nothing happens", sorted(os.listdir(server.directory)), ["d2", "d3", "e", "same"])


@case
def links(rig):
    server = rig.serve()
    mount = rig.mount(server)
    write_file(mount.at("a"), b"shared")
    os.link(mount.at("a"), mount.at("b"))
    one, two = os.stat(mount.at("a")), os.stat(mount.at("b"))
    expect("inode and links", (two.st_ino, two.st_nlink), (one.st_ino, 2))
    expect("the server's number", one.st_ino, os.stat(server.at("a")).st_ino)
    os.unlink(mount.at("a"))
    expect("links of the other", os.stat(mount.at("b")).st_nlink, 1)
    os.mkdir(mount.at("dir"))
    expect_errno(errno.EPERM, "link to a directory", os.link, mount.at("dir"), mount.at("dir2"))
    target = "t/" * 1000 + "end"
    os.symlink(target, mount.at("link"))
    expect("a long link text", os.readlink(mount.at("link")), target)
    expect("its size", os.lstat(mount.at("link")).st_size, len(target))
    os.symlink("b", mount.at("to-b"))
    expect("through a link", read_file(mount.at("to-b")), b"shared")
    os.symlink("loop", mount.at("loop"))
    expect_errno(errno.ELOOP, "a loop", os.stat, mount.at("loop"))
    expect_errno(errno.EINVAL, "readlink of a file", os.readlink, mount.at("b"))


@case
def unlinked_while_open(rig):
    server = rig.serve()
    mount = rig.mount(server)
    data = content("silly", 100_000)
    write_file(mount.at("file"), data)
    fd = os.open(mount.at("file"), os.O_RDWR)
    os.unlink(mount.at("file"))
    expect_errno(errno.ENOENT, "the name", os.stat, mount.at("file"))
    hidden = silly_names(server.directory)
    expect("silly names on the server", len(hidden), 1)
    expect("links by fstat", os.fstat(fd).st_nlink, 0)
    expect("reading goes on", os.pread(fd, 200_000, 0), data)
    expect("writing goes on", os.pwrite(fd, b"more", 100_000), 4)
    os.fsync(fd)
    expect("size", os.fstat(fd).st_size, 100_004)
    expect_errno(errno.EBUSY, "unlink of the silly name", os.unlink, mount.at(hidden[0]))
    again = os.open(mount.at("file"), os.O_RDWR | os.O_CREAT | os.O_EXCL)
    expect("a new file of that name is another one", os.fstat(again).st_size, 0)
    os.close(again)
    second = os.dup(fd)
    os.close(fd)
    expect("the last handle is what counts", os.pread(second, 4, 100_000), b"more")
    os.close(second)
    wait_for("the silly name goes", lambda: not silly_names(server.directory))


@case
def replaced_while_open(rig):
    server = rig.serve()
    mount = rig.mount(server)
    write_file(mount.at("old"), b"old content")
    fd = os.open(mount.at("old"), os.O_RDONLY)
    write_file(mount.at("new"), b"new content")
    os.rename(mount.at("new"), mount.at("old"))
    expect("the open handle", os.pread(fd, 100, 0), b"old content")
    expect("the name", read_file(mount.at("old")), b"new content")
    expect("links of the replaced one", os.fstat(fd).st_nlink, 0)
    expect("names on the server", len(os.listdir(server.directory)), 2)
    os.close(fd)
    wait_for("the silly name goes", lambda: not silly_names(server.directory))
    expect("names on the server at the end", os.listdir(server.directory), ["old"])


@case
def unlinked_with_another_name_left(rig):
    server = rig.serve()
    mount = rig.mount(server)
    write_file(mount.at("a"), b"x")
    os.link(mount.at("a"), mount.at("b"))
    fd = os.open(mount.at("a"), os.O_RDONLY)
    os.unlink(mount.at("a"))
    expect("no silly name is needed", os.listdir(server.directory), ["b"])
    expect("reading goes on", os.pread(fd, 1, 0), b"x")
    os.close(fd)


@case
def silly_names_end_with_the_mount(rig):
    server = rig.serve()
    mount = rig.mount(server)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        fd = os.open(mount.at("file"), os.O_RDWR | os.O_CREAT)
        os.write(fd, b"x")
        os.unlink(mount.at("file"))
        os.write(writer, b"r")
        signal.pause()
    os.read(reader, 1)
    expect("silly names", len(silly_names(server.directory)), 1)
    daemon = mount.pids()[0]
    subprocess.run(["umount", "-l", mount.directory], check=True)
    expect("the daemon lives as long as the file is open", mount.pids(), [daemon])
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    mount.wait_gone()
    expect("silly names at the end", silly_names(server.directory), [])


@case
def a_large_directory(rig):
    server = rig.serve()
    names = {f"entry-{i}-{'x' * (i % 100)}" for i in range(3000)}
    os.mkdir(server.at("large"))
    for name in names:
        os.close(os.open(server.at(f"large/{name}"), os.O_CREAT | os.O_WRONLY))
    for options in ("", "rdirplus=none", "rdirplus=force"):
        mount = rig.mount(server, options)
        found = os.listdir(mount.at("large"))
        expect(f"number of names ({options})", len(found), len(names))
        expect_true(f"the names ({options})", set(found) == names)
        with os.scandir(mount.at("large")) as entries:
            numbers = {entry.name: entry.inode() for entry in entries}
        name = "entry-17-" + "x" * 17
        expect("number by listing", numbers[name], os.stat(mount.at(f"large/{name}")).st_ino)
    listed = os.popen(f"ls -a {mount.at('large')}").read().split()[:2]
    expect("dot and dot dot come first", listed, [".", ".."])


@case
def a_directory_that_changes_while_it_is_read(rig):
    server = rig.serve()
    mount = rig.mount(server)
    stay = {f"stay-{i}" for i in range(1000)}
    for name in stay | {f"go-{i}" for i in range(400)}:
        os.close(os.open(server.at(name), os.O_CREAT | os.O_WRONLY))
    seen = []
    with os.scandir(mount.at()) as entries:
        for count, entry in enumerate(entries):
            seen.append(entry.name)
            if entry.name.startswith("go-"):
                os.unlink(mount.at(entry.name))
            if count % 100 == 0:
                write_file(mount.at(f"new-{count}"), b"")
    expect("what stayed was seen once", sorted(n for n in seen if n.startswith("stay-")), sorted(stay))
    expect("nothing was seen twice", len(seen), len(set(seen)))
    expect("what is left", {n for n in os.listdir(mount.at()) if not n.startswith("new-")}, stay)


@case
def listing_starts_anew_and_goes_back(rig):
    """rewinddir and seekdir by the C library."""
    server = rig.serve()
    mount = rig.mount(server)
    for i in range(700):
        os.close(os.open(server.at(f"f{i}"), os.O_CREAT | os.O_WRONLY))

    class Dirent(ctypes.Structure):
        _fields_ = [("ino", ctypes.c_ulong), ("off", ctypes.c_long), ("len", ctypes.c_ushort), ("type", ctypes.c_ubyte),
                    ("name", ctypes.c_char * 256)]
    libc.opendir.restype = ctypes.c_void_p
    libc.readdir.argtypes, libc.readdir.restype = [ctypes.c_void_p], ctypes.POINTER(Dirent)
    libc.telldir.argtypes, libc.telldir.restype = [ctypes.c_void_p], ctypes.c_long
    libc.seekdir.argtypes, libc.rewinddir.argtypes = [ctypes.c_void_p, ctypes.c_long], [ctypes.c_void_p]
    libc.closedir.argtypes = [ctypes.c_void_p]
    stream = libc.opendir(os.fsencode(mount.at()))

    def read_all():
        names = []
        while entry := libc.readdir(stream):
            names.append((libc.telldir(stream), entry.contents.name))
        return names
    first = read_all()
    expect("entries", len(first), 702)
    for at in (0, 1, 2, 350, 701):
        libc.seekdir(stream, first[at][0])
        expect(f"from place {at}", read_all(), first[at + 1:])
    write_file(server.at("late"), b"")
    libc.rewinddir(stream)
    expect("after rewinding the new name is there", len(read_all()), 703)
    libc.closedir(stream)
