# SPDX-License-Identifier: Apache-2.0
"""get, put and cat: exact bytes at every size, whole trees, and what is left behind by a failure."""

import os
import random
import signal
import stat
import subprocess
import threading
import time
import unittest

import harness
from harness import Server, ServedTest, program, read, run

MIB = 1 << 20
SIZES = (0, 1, 400, 4095, 4096, 4097, 65535, 65536, 65537, MIB - 1, MIB, MIB + 1, 8 * MIB + 3)


def content(size):
    return random.Random(size).randbytes(size)


class Put(ServedTest):
    def test_every_size_arrives_exactly(self):
        for size in SIZES:
            data = content(size)
            self.done("put", self.local("f%d" % size, data), self.url("f%d" % size))
            self.assertEqual(read(self.there("f%d" % size)), data, size)

    def test_several_connections(self):
        data = content(24 * MIB + 1)
        self.done("put", self.local("f", data), self.url("f", nconnect=4))
        self.assertEqual(read(self.there("f")), data)

    def test_small_wsize(self):
        data = content(300_001)
        self.done("put", self.local("f", data), self.url("f", wsize=4096))
        self.assertEqual(read(self.there("f")), data)

    def test_standard_input(self):
        data = content(3 * MIB + 5)
        self.done("put", "-", self.url("f"), stdin=data)
        self.assertEqual(read(self.there("f")), data)

    def test_into_a_directory_under_its_own_name(self):
        source = self.local("own name", b"x")
        self.done("put", source, self.url(""))
        self.done("put", source, self.url("") .replace("?", "/?"))
        self.assertEqual(os.listdir(self.there()), ["own name"])

    def test_shorter_content_replaces_longer(self):
        self.served("f", b"123456789")
        self.done("put", self.local("f", b"ab"), self.url("f"))
        self.assertEqual(read(self.there("f")), b"ab")

    def test_mode_is_the_files_own(self):
        source = self.local("f", b"x")
        os.chmod(source, 0o750)
        self.done("put", source, self.url("f"))
        self.assertEqual(stat.S_IMODE(os.stat(self.there("f")).st_mode), 0o750)

    def test_a_link_there_is_followed(self):
        self.served("target", b"old")
        os.symlink("target", self.there("link"))
        self.done("put", self.local("f", b"new"), self.url("link"))
        self.assertEqual(read(self.there("target")), b"new")
        self.assertTrue(os.path.islink(self.there("link")))

    def test_json(self):
        got = self.done("--json", "put", self.local("f", b"12345"), self.url("f")).json()
        self.assertEqual(got, {"files": 1, "bytes": 5})

    def test_refusals(self):
        self.refused(1, "put", self.local("missing"), self.url("f"))
        self.refused(1, "put", self.here, self.url("f"))
        self.refused(1, "put", self.local("f", b"x"), self.url("no/such/f"))
        self.refused(1, "put", self.local("f", b"x"), self.url("nodir/"))
        self.refused(2, "put", "-", self.url(""))
        self.refused(2, "put", "-r", "-", self.url("f"))
        self.assertEqual(os.listdir(self.there()), [])

    def test_name_longer_than_255_bytes(self):
        outcome = self.refused(1, "put", self.local("f", b"x"), self.url("n" * 256))
        self.assertIn("name", outcome.err.lower())

    def test_a_read_only_directory(self):
        os.chmod(self.there(), 0o555)
        outcome = self.refused(1, "put", self.local("f", b"x"), self.url("f", uid=12345, gid=12345))
        self.assertIn("ermission denied", outcome.err)
        os.chmod(self.there(), 0o755)


class Tree(ServedTest):
    def make_tree(self, root):
        os.makedirs(os.path.join(root, "a b", "empty"))
        os.makedirs(os.path.join(root, "c"))
        for name, data in (("a b/one", b"1"), ("a b/k\xc3\xb6ln".encode("latin1").decode("utf-8"), b"2"),
                           ("c/big", content(2 * MIB + 7)), (".hidden", b"3"), ("none", b"")):
            with open(os.path.join(root, name), "wb") as file:
                file.write(data)
        os.symlink("../none", os.path.join(root, "c", "link"))
        os.symlink("/does/not/exist", os.path.join(root, "dangling"))
        os.chmod(os.path.join(root, "none"), 0o600)

    def snapshot(self, root):
        found = {}
        for folder, folders, files in os.walk(root):
            for name in folders + files:
                path = os.path.join(folder, name)
                key = os.path.relpath(path, root)
                if os.path.islink(path):
                    found[key] = ("link", os.readlink(path))
                elif os.path.isdir(path):
                    found[key] = ("directory",)
                else:
                    found[key] = ("file", stat.S_IMODE(os.stat(path).st_mode), read(path))
        return found

    def test_there_and_back(self):
        self.make_tree(os.path.join(self.here, "tree"))
        self.done("put", "-r", os.path.join(self.here, "tree"), self.url(""))
        self.assertEqual(self.snapshot(self.there("tree")), self.snapshot(os.path.join(self.here, "tree")))
        os.makedirs(os.path.join(self.here, "back"))
        counts = self.done("--json", "get", "-r", self.url("tree"), os.path.join(self.here, "back")).json()
        self.assertEqual(counts["files"], 5)
        self.assertEqual(self.snapshot(os.path.join(self.here, "back", "tree")), self.snapshot(self.there("tree")))

    def test_under_a_new_name(self):
        self.make_tree(os.path.join(self.here, "tree"))
        self.done("put", "-r", os.path.join(self.here, "tree"), self.url("new"))
        self.done("get", "-r", self.url("new"), os.path.join(self.here, "again"))
        self.assertEqual(self.snapshot(os.path.join(self.here, "again")), self.snapshot(os.path.join(self.here, "tree")))

    def test_no_file_is_written_through_a_local_link(self):
        os.makedirs(self.there("d"))
        self.served("d/f", b"from the server")
        outside = self.local("outside", b"mine")
        os.makedirs(os.path.join(self.here, "d"))
        os.symlink(outside, os.path.join(self.here, "d", "f"))
        outcome = run("get", "-r", self.url("d"), self.here)
        self.assertEqual(outcome.code, 1, outcome.err)
        self.assertEqual(read(outside), b"mine")

    def test_one_failure_does_not_stop_the_rest(self):
        os.makedirs(self.there("d"))
        for name in ("a", "b", "c"):
            self.served("d/" + name, name.encode())
        os.chmod(self.there("d", "b"), 0)
        outcome = run("get", "-r", self.url("d", uid=12345, gid=12345), self.here)
        self.assertEqual(outcome.code, 1)
        self.assertEqual(len(outcome.error_lines), 1, outcome.err)
        self.assertEqual(sorted(os.listdir(os.path.join(self.here, "d"))), ["a", "c"])


class Get(ServedTest):
    def test_every_size_arrives_exactly(self):
        for size in SIZES:
            self.served("f%d" % size, content(size))
            self.done("get", self.url("f%d" % size), self.local("f%d" % size))
            self.assertEqual(read(self.local("f%d" % size)), content(size), size)
            self.assertEqual(self.done("cat", self.url("f%d" % size)).out, content(size))

    def test_small_rsize_and_several_connections(self):
        data = content(3 * MIB + 11)
        self.served("f", data)
        self.assertEqual(self.done("cat", self.url("f", rsize=4096)).out, data)
        self.assertEqual(self.done("cat", self.url("f", nconnect=4)).out, data)

    def test_standard_output_and_directories(self):
        self.served("f", b"bytes\0\n")
        self.assertEqual(self.done("get", self.url("f"), "-").out, b"bytes\0\n")
        self.done("get", self.url("f"), self.here)
        self.done("get", self.url("f"), cwd=self.scratch)
        self.assertEqual(read(self.local("f")), b"bytes\0\n")
        self.assertEqual(read(os.path.join(self.scratch, "f")), b"bytes\0\n")

    def test_cat_writes_several(self):
        self.served("a", b"1")
        self.served("b", b"2")
        self.assertEqual(self.done("cat", self.url("a"), self.url("b")).out, b"12")

    def test_a_link_is_followed(self):
        self.served("f", b"x")
        os.symlink("f", self.there("link"))
        self.assertEqual(self.done("cat", self.url("link")).out, b"x")

    def test_refusals(self):
        outcome = self.refused(1, "get", self.url("missing"), self.local("f"))
        self.assertIn("No such file", outcome.err)
        self.refused(1, "cat", self.url(""))
        self.refused(1, "get", self.url(""), self.local("f"))
        self.served("f", b"x")
        self.refused(1, "get", self.url("f"), self.local("no/such/folder"))
        self.refused(2, "get", "-r", self.url("f"), "-")
        self.assertEqual(os.listdir(self.here), [])

    def test_a_reader_that_goes_away_ends_it_quietly(self):
        self.served("f", content(8 * MIB))
        process = subprocess.Popen([program("nfsrdma"), "cat", self.url("f")], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE)
        self.assertEqual(len(process.stdout.read(10)), 10)
        process.stdout.close()
        error = process.stderr.read()
        process.stderr.close()
        self.assertEqual(process.wait(timeout=30), 1)
        self.assertEqual(error, b"")


class Failures(unittest.TestCase):
    def with_server(self, *options):
        server = Server("--no-root-squash", *options)
        self.addCleanup(server.stop)
        return server

    def test_a_refused_write_leaves_no_new_file(self):
        server = self.with_server("--fault", "refuse=write:28")
        outcome = run("put", "-", server.url("/f"), stdin=b"x" * 100000)
        self.assertEqual(outcome.code, 1, outcome.err)
        self.assertEqual(len(outcome.error_lines), 1, outcome.err)
        self.assertIn("No space left", outcome.err)
        self.assertEqual(os.listdir(server.folder), [])

    def test_a_refused_write_keeps_an_old_file(self):
        server = self.with_server("--fault", "refuse=write:28")
        with open(server.path("f"), "wb") as file:
            file.write(b"old")
        outcome = run("put", "-", server.url("/f"), stdin=b"x" * 100000)
        self.assertEqual(outcome.code, 1, outcome.err)
        self.assertEqual(os.listdir(server.folder), ["f"])

    def test_a_refused_commit_is_an_error(self):
        server = self.with_server("--fault", "refuse=commit:5")
        outcome = run("put", "-", server.url("/f"), stdin=b"x" * 3000000)
        self.assertEqual(outcome.code, 1, outcome.err)
        self.assertEqual(os.listdir(server.folder), [])

    def test_a_refused_read_leaves_no_new_file_here(self):
        server = self.with_server("--fault", "refuse=read:5")
        with open(server.path("f"), "wb") as file:
            file.write(b"x" * 5000000)
        target = os.path.join(server.work, "here")
        outcome = run("get", server.url("/f"), target)
        self.assertEqual(outcome.code, 1, outcome.err)
        self.assertEqual(len(outcome.error_lines), 1, outcome.err)
        self.assertFalse(os.path.exists(target))

    def test_a_changed_write_verifier_loses_nothing(self):
        server = self.with_server("--fault", "verifier=7")
        data = content(20 * MIB + 9)
        outcome = run("put", "-", server.url("/f"), stdin=data)
        self.assertEqual(outcome.code, 0, outcome.err)
        self.assertEqual(read(server.path("f")), data)

    def test_lost_connections_lose_nothing(self):
        data = content(6 * MIB + 1)
        server = self.with_server("--fault", "disconnect=14")
        outcome = run("put", "-", server.url("/f", wsize=262144), stdin=data)
        self.assertEqual(outcome.code, 0, outcome.err)
        self.assertEqual(read(server.path("f")), data)
        server = self.with_server("--fault", "disconnect=14")
        with open(server.path("f"), "wb") as file:
            file.write(data)
        outcome = run("cat", server.url("/f"))
        self.assertEqual(outcome.code, 0, outcome.err)
        self.assertEqual(outcome.out, data)

    def test_an_interrupt_removes_the_new_file(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with self.subTest(signal=number):
                self.check_interrupt(number)

    def check_interrupt(self, number):
        server = self.with_server()
        process = subprocess.Popen([program("nfsrdma"), "put", "-", server.url("/f")], stdin=subprocess.PIPE,
                                   stderr=subprocess.PIPE)
        process.stdin.write(b"x" * (2 * MIB))
        process.stdin.flush()
        deadline = time.monotonic() + 20
        while not os.path.exists(server.path("f")) and time.monotonic() < deadline:
            select_nothing()
        process.send_signal(number)
        error = process.stderr.read()
        process.stdin.close()
        process.stderr.close()
        self.assertEqual(process.wait(timeout=20), 1, error)
        self.assertIn(b"interrupted", error)
        self.assertEqual(os.listdir(server.folder), [])

    def test_an_interrupt_ends_a_command_whose_server_is_gone(self):
        server = self.with_server()
        with open(server.path("f"), "wb") as file:
            file.write(b"x" * (64 * MIB))
        process = subprocess.Popen([program("nfsrdma"), "cat", server.url("/f")], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE)
        self.assertEqual(len(process.stdout.read(4 * MIB)), 4 * MIB)
        server.process.send_signal(signal.SIGSTOP)
        try:
            drain = threading.Thread(target=process.stdout.read)
            drain.start()
            process.send_signal(signal.SIGTERM)
            self.assertEqual(process.wait(timeout=20), 130)
            drain.join()
            self.assertIn(b"interrupted", process.stderr.read())
        finally:
            server.process.send_signal(signal.SIGCONT)
            process.stdout.close()
            process.stderr.close()


def select_nothing():
    """Gives the processor away for a moment."""
    os.sched_yield()


if __name__ == "__main__":
    harness.main()
