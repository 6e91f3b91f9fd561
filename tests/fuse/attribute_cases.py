# SPDX-License-Identifier: Apache-2.0
"""Attributes, and what is allowed to whom."""
import errno
import os
import stat
import subprocess
import time

from rig import Skipped, as_user, case, expect, expect_errno, expect_true, read_file, write_file


def modes(path):
    return stat.S_IMODE(os.stat(path).st_mode)


def needs_users():
    if os.environ["NFSRDMA_IN_NAMESPACE"] != "1":
        raise Skipped("other users need root")


def open_and_close(path, flags, mode=0o777):
    os.close(os.open(path, flags, mode))


@case
def modes_owners_times(rig):
    server = rig.serve()
    mount = rig.mount(server)
    write_file(mount.at("file"), b"x")
    for mode in (0o600, 0o4755, 0o2755, 0o1777, 0o000, 0o644):
        os.chmod(mount.at("file"), mode)
        expect("chmod here and there", (modes(mount.at("file")), modes(server.at("file"))), (mode, mode))
    if os.environ["NFSRDMA_IN_NAMESPACE"] == "1":
        os.chown(mount.at("file"), 1234, 5678)
        expect("chown", (os.stat(server.at("file")).st_uid, os.stat(server.at("file")).st_gid), (1234, 5678))
        os.chown(mount.at("file"), -1, 1)
        expect("chgrp", (os.stat(mount.at("file")).st_uid, os.stat(mount.at("file")).st_gid), (1234, 1))
    os.utime(mount.at("file"), ns=(1_111_111_111_222_333_444, 999_999_999))
    found = os.stat(server.at("file"))
    expect("times with nanoseconds", (found.st_atime_ns, found.st_mtime_ns), (1_111_111_111_222_333_444, 999_999_999))
    before = time.time()
    os.utime(mount.at("file"))
    expect_true("the present", abs(os.stat(mount.at("file")).st_mtime - before) < 60)
    subprocess.run(["touch", "-m", "-d", "@5.25", mount.at("file")], check=True)
    found = os.stat(mount.at("file"))
    expect("mtime alone", (found.st_mtime, found.st_atime > 1e9), (5.25, True))
    with open(mount.at("file"), "rb") as file:
        os.fchmod(file.fileno(), 0o604)
        os.utime(file.fileno(), (7, 8))
    expect("by a handle", (modes(server.at("file")), os.stat(server.at("file")).st_mtime), (0o604, 8.0))
    os.symlink("nowhere", mount.at("link"))
    os.utime(mount.at("link"), (1, 2), follow_symlinks=False)
    expect("times of a link", os.lstat(server.at("link")).st_mtime, 2.0)


@case
def stat_tells_what_the_server_has(rig):
    server = rig.serve()
    mount = rig.mount(server)
    write_file(server.at("file"), b"y" * 123_456)
    os.mkdir(server.at("dir"))
    for name in ("file", "dir", ""):
        here, there = os.stat(mount.at(name)), os.stat(server.at(name))
        for field in ("st_mode", "st_nlink", "st_uid", "st_gid", "st_size", "st_mtime_ns", "st_ctime_ns", "st_ino"):
            expect(f"{field} of {name!r}", getattr(here, field), getattr(there, field))
    expect_true("blocks are counted", os.stat(mount.at("file")).st_blocks >= 123_456 // 512)
    here, there = os.statvfs(mount.at()), os.statvfs(server.directory)
    expect("size of the file system", here.f_blocks * here.f_frsize, there.f_blocks * there.f_frsize)
    expect("files", here.f_files, there.f_files)
    expect("longest name", here.f_namemax, 255)


@case
def the_umask_is_applied_once(rig):
    server = rig.serve()
    mount = rig.mount(server)
    os.umask(0o027)
    write_file(mount.at("file"), b"")
    os.mkdir(mount.at("dir"))
    expect("modes on the server", (modes(server.at("file")), modes(server.at("dir"))), (0o640, 0o750))
    os.umask(0)
    os.close(os.open(mount.at("open"), os.O_CREAT | os.O_WRONLY, 0o666))
    expect("without one", modes(server.at("open")), 0o666)


@case
def every_caller_is_himself(rig):
    needs_users()
    server = rig.serve()
    os.chmod(server.directory, 0o1777)
    mount = rig.mount(server)
    as_user(1000, 1000, [], write_file, mount.at("private"), b"secret")
    found = os.stat(server.at("private"))
    expect("owner of what a user made", (found.st_uid, found.st_gid), (1000, 1000))
    os.chmod(mount.at("private"), 0o600)
    expect_errno(errno.EACCES, "another user reads", as_user, 1001, 1001, [], read_file, mount.at("private"))
    expect_errno(errno.EACCES, "another user truncates", as_user, 1001, 1001, [], os.truncate, mount.at("private"), 0)
    expect_errno(errno.EPERM, "another user changes the mode", as_user, 1001, 1001, [], os.chmod,
                 mount.at("private"), 0o777)
    expect_errno(errno.EPERM, "sticky directory", as_user, 1001, 1001, [], os.unlink, mount.at("private"))
    expect("the owner reads", as_user(1000, 1000, [], read_file, mount.at("private")), b"secret")
    expect("root reads", read_file(mount.at("private")), b"secret")
    expect_errno(errno.EPERM, "giving away", as_user, 1000, 1000, [], os.chown, mount.at("private"), 1001, -1)


@case
def supplementary_groups_count_as_they_are_now(rig):
    needs_users()
    server = rig.serve()
    mount = rig.mount(server)
    write_file(server.at("team"), b"team work")
    os.chown(server.at("team"), 0, 4242)
    os.chmod(server.at("team"), 0o640)
    expect("a member by a supplementary group",
           as_user(1000, 1000, [7, 4242, 9], read_file, mount.at("team")), b"team work")
    expect_errno(errno.EACCES, "the same user without the group", as_user, 1000, 1000, [7, 9], read_file,
                 mount.at("team"))

    def leaves_the_group():
        first = os.access(mount.at("team"), os.R_OK)
        os.setgroups([7])
        return first, os.access(mount.at("team"), os.R_OK)

    def as_root_in_group():
        os.setgroups([4242])
        os.setresgid(1000, 1000, 1000)
        os.setreuid(0, 1000)  # may still change its groups
        os.setresuid(-1, 0, 0)
        return True
    expect("root can read in any case", as_root_in_group(), True)
    os.setresuid(0, 0, 0)
    os.setresgid(0, 0, 0)
    os.setgroups([])
    expect("access(2) answers by the server", as_user(1000, 4242, [], os.access, mount.at("team"), os.R_OK), True)
    expect("and says no", as_user(1000, 4242, [], os.access, mount.at("team"), os.W_OK), False)
    expect_true("root may do everything", leaves_the_group()[0])


@case
def a_cached_name_gives_no_way_in(rig):
    """The kernel asks nobody for search on names it has cached: root has just been there."""
    needs_users()
    server = rig.serve()
    os.makedirs(server.at("closed/inner"))
    write_file(server.at("closed/file"), b"secret")
    write_file(server.at("closed/inner/deep"), b"secret")
    os.chmod(server.at("closed"), 0o700)
    os.chmod(server.at("closed/file"), 0o666)
    mount = rig.mount(server)
    for _ in range(3):
        expect("root reads", read_file(mount.at("closed/file")), b"secret")
        expect("root lists", len(list(os.scandir(mount.at("closed")))), 2)
        expect("root goes deep", read_file(mount.at("closed/inner/deep")), b"secret")
        for name in ("closed/file", "closed/inner", "closed/inner/deep"):
            expect_errno(errno.EACCES, f"another user's stat of {name}", as_user, 1000, 1000, [], os.stat,
                         mount.at(name))
        expect_errno(errno.EACCES, "another user's read", as_user, 1000, 1000, [], read_file, mount.at("closed/file"))
        expect_errno(errno.EACCES, "another user's listing", as_user, 1000, 1000, [], os.listdir, mount.at("closed"))
        expect_errno(errno.EACCES, "another user's chdir", as_user, 1000, 1000, [], os.chdir, mount.at("closed"))


@case
def executable_but_not_readable(rig):
    needs_users()
    server = rig.serve()
    mount = rig.mount(server)
    subprocess.run(["cp", "/bin/true", server.at("program")], check=True)
    os.chmod(server.at("program"), 0o711)

    def execute():
        return subprocess.run([mount.at("program")], check=False).returncode
    expect("another user runs it", as_user(1000, 1000, [], execute), 0)
    expect_errno(errno.EACCES, "another user reads it", as_user, 1000, 1000, [], read_file, mount.at("program"))
    os.chmod(server.at("program"), 0o644)
    mount2 = rig.mount(server)
    expect_errno(errno.EACCES, "not executable", subprocess.run, [mount2.at("program")], check=False)


@case
def the_creator_may_use_what_the_mode_forbids(rig):
    needs_users()
    server = rig.serve()
    os.chmod(server.directory, 0o1777)
    mount = rig.mount(server)

    def create(name, flags):
        fd = os.open(mount.at(name), os.O_CREAT | os.O_RDWR | flags, 0)
        os.write(fd, b"mine")
        text = os.pread(fd, 10, 0)
        os.close(fd)
        return text
    expect("O_CREAT with mode 0", as_user(1000, 1000, [], create, "a", 0), b"mine")
    expect("O_EXCL with mode 0", as_user(1000, 1000, [], create, "b", os.O_EXCL), b"mine")
    expect_errno(errno.EACCES, "opening it again", as_user, 1000, 1000, [], open_and_close, mount.at("a"), os.O_RDONLY)
    expect_errno(errno.EACCES, "creating it again", as_user, 1000, 1000, [], open_and_close, mount.at("a"),
                 os.O_RDWR | os.O_CREAT)


@case
def a_set_user_id_file_can_be_written_by_others(rig):
    """Clearing the bits is the server's work: the kernel must not try it in the writer's name, who may not."""
    needs_users()
    server = rig.serve()
    mount = rig.mount(server)
    write_file(server.at("program"), b"x")
    os.chown(server.at("program"), 1000, 1000)
    os.chmod(server.at("program"), 0o6777)
    as_user(1001, 1001, [], write_file, mount.at("program"), b"changed", "r+b")
    expect("what was written", read_file(server.at("program")), b"changed")
    expect("mode here as on the server", modes(mount.at("program")), modes(server.at("program")))


@case
def a_set_group_id_directory_gives_its_group(rig):
    needs_users()
    server = rig.serve()
    os.mkdir(server.at("team"))
    os.chown(server.at("team"), 0, 4242)
    os.chmod(server.at("team"), 0o2777)
    mount = rig.mount(server)
    as_user(1000, 1000, [], write_file, mount.at("team/file"), b"")
    as_user(1000, 1000, [], os.mkdir, mount.at("team/dir"))
    expect("group of a file", os.stat(mount.at("team/file")).st_gid, 4242)
    expect("group and bit of a directory", (os.stat(mount.at("team/dir")).st_gid, modes(mount.at("team/dir")) & 0o2000),
           (4242, 0o2000))


@case
def root_is_squashed_where_the_server_says_so(rig):
    needs_users()
    server = rig.serve(squash=True)
    os.chmod(server.directory, 0o777)
    write_file(server.at("roots"), b"x")
    os.chmod(server.at("roots"), 0o600)
    mount = rig.mount(server)
    write_file(mount.at("made"), b"y")
    expect("owner of what root made", os.stat(server.at("made")).st_uid, 65534)
    expect_errno(errno.EACCES, "root reads the server's root's file", read_file, mount.at("roots"))
    expect_errno(errno.EPERM, "chown", os.chown, mount.at("made"), 5, 5)


@case
def default_permissions_on_request(rig):
    needs_users()
    server = rig.serve()
    write_file(server.at("file"), b"x")
    os.chmod(server.at("file"), 0o600)
    mount = rig.mount(server, "default_permissions")
    expect_errno(errno.EACCES, "the kernel refuses", as_user, 1000, 1000, [], read_file, mount.at("file"))
    expect("root reads", read_file(mount.at("file")), b"x")
