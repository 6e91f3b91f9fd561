# SPDX-License-Identifier: Apache-2.0
"""ls, stat, mkdir, rm, mv, ln: what they do there and what they print here."""

import os
import re
import stat
import unittest

import harness
from harness import ServedTest, run


class List(ServedTest):
    def test_names_sorted_one_a_line(self):
        for name in ("b", "a", ".hidden", "sp ace"):
            self.served(name, b"")
        os.mkdir(self.there("dir"))
        self.assertEqual(self.done("ls", self.url("")).text, ".hidden\na\nb\ndir\nsp ace\n")

    def test_an_empty_directory_prints_nothing(self):
        self.assertEqual(self.done("ls", self.url("")).text, "")

    def test_long_form(self):
        self.served("f", b"12345")
        os.chmod(self.there("f"), 0o4751)
        os.symlink("f", self.there("l"))
        lines = self.done("ls", "-l", self.url("")).text.splitlines()
        self.assertRegex(lines[0], r"^-rwsr-x--x 1 \S+ +\S+ +5 \w{3} [ \d]\d \d\d:\d\d f$")
        self.assertRegex(lines[1], r"^lrwxrwxrwx 1 .* l -> f$")

    def test_a_file_and_a_directory_itself(self):
        self.served("f", b"x")
        self.assertEqual(self.done("ls", self.url("f")).text, "f\n")
        self.assertEqual(self.done("ls", "-d", self.url("")).text, self.name + "\n")

    def test_several_urls_get_headings(self):
        for name in ("a", "b"):
            os.mkdir(self.there(name))
            self.served(name + "/f", b"")
        text = self.done("ls", self.url("a"), self.url("b")).text
        self.assertEqual(text, "%s:\nf\n\n%s:\nf\n" % (self.url("a"), self.url("b")))

    def test_json_tells_everything(self):
        self.served("f", b"123")
        os.utime(self.there("f"), ns=(1, 1_700_000_000_123_456_789))
        os.symlink("f", self.there("l"))
        found = {entry["name"]: entry for entry in self.done("ls", "--json", self.url("")).json()}
        self.assertEqual(found["f"]["type"], "regular file")
        self.assertEqual(found["f"]["size_bytes"], 3)
        self.assertEqual(found["f"]["mode"], "0644")
        self.assertEqual(found["f"]["mtime"], "2023-11-14T22:13:20.123456789Z")
        self.assertEqual(found["f"]["fileid"], os.stat(self.there("f")).st_ino)
        self.assertEqual(found["l"]["target"], "f")

    def test_names_that_are_no_text(self):
        with open(os.path.join(os.fsencode(self.there()), b"\xff\n"), "wb"):
            pass
        entry = self.done("ls", "--json", self.url("")).json()[0]
        self.assertEqual(entry["name_hex"], "ff0a")
        self.assertEqual(self.done("ls", self.url("")).out, b"\xff\n\n")

    def test_many_entries(self):
        names = ["%05d-%s" % (i, "n" * 100) for i in range(3000)]
        for name in names:
            self.served(name, b"")
        self.assertEqual(self.done("ls", self.url("")).text.split(), names)

    def test_missing(self):
        outcome = self.refused(1, "ls", self.url("nothing"))
        self.assertIn("No such file", outcome.err)


class Version(ServedTest):
    def test_vers_4_2_says_once_that_4_1_is_used(self):
        for words in ("vers=4.2", "v4.2", "nfsvers=4.2", "minorversion=2"):
            outcome = run("ls", "-o", words, self.url(""), self.url(""))
            self.assertEqual(outcome.code, 0, outcome.err)
            self.assertEqual(len(outcome.error_lines), 1, outcome.err)
            self.assertIn("NFSv4.2 are not there yet: 4.1 is used", outcome.err)
        self.assertEqual(run("ls", "-o", "vers=4.1", self.url("")).err, "")


class Stat(ServedTest):
    def test_like_stat1(self):
        self.served("f", b"12345")
        text = self.done("stat", self.url("f")).text
        self.assertRegex(text, r"  File: /\S+/f\n  Size: 5 +\tBlocks: \d+ +IO Block: \d+ +regular file\n")
        self.assertIn("Access: (0644/-rw-r--r--)", text)
        self.assertRegex(text, r"Inode: %d +Links: 1\n" % os.stat(self.there("f")).st_ino)
        self.assertRegex(text, r"Modify: \d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{9} [+-]\d{4}\n")

    def test_links(self):
        self.served("f", b"12")
        os.symlink("f", self.there("l"))
        self.assertIn("symbolic link", self.done("stat", self.url("l")).text)
        self.assertIn("regular file", self.done("stat", "-L", self.url("l")).text)

    def test_json(self):
        self.served("f", b"12")
        entry = self.done("stat", "--json", self.url("f")).json()[0]
        self.assertEqual(entry["size_bytes"], 2)
        self.assertEqual(entry["links"], 1)

    def test_one_missing_of_two(self):
        self.served("f", b"")
        outcome = run("stat", self.url("f"), self.url("g"))
        self.assertEqual(outcome.code, 1)
        self.assertEqual(len(outcome.error_lines), 1)
        self.assertIn("File: ", outcome.text)


class MakeDirectory(ServedTest):
    def test_one(self):
        self.done("mkdir", self.url("d"))
        self.assertTrue(os.path.isdir(self.there("d")))
        self.assertIn("exists", self.refused(1, "mkdir", self.url("d")).err)
        self.refused(1, "mkdir", self.url("no/such/d"))
        self.refused(1, "mkdir", self.server.url("/"))

    def test_parents(self):
        self.done("mkdir", "-p", self.url("a/b c/d"))
        self.done("mkdir", "-p", self.url("a/b c/d"))
        self.assertTrue(os.path.isdir(self.there("a", "b c", "d")))
        self.served("f", b"")
        self.refused(1, "mkdir", "-p", self.url("f/x"))

    def test_mode(self):
        self.done("mkdir", "-m", "0700", self.url("d"))
        self.assertEqual(stat.S_IMODE(os.stat(self.there("d")).st_mode), 0o700)
        for wrong in ("rwx", "8", "77777", ""):
            if wrong:
                self.refused(2, "mkdir", "-m", wrong, self.url("e"))

    def test_json(self):
        entry = self.done("mkdir", "--json", self.url("d")).json()[0]
        self.assertEqual(entry["type"], "directory")


class Remove(ServedTest):
    def test_files_and_links(self):
        self.served("f", b"")
        os.symlink("f", self.there("l"))
        self.done("rm", self.url("l"))
        self.assertTrue(os.path.exists(self.there("f")))
        self.done("rm", self.url("f"))
        self.assertEqual(os.listdir(self.there()), [])

    def test_directories_only_with_r(self):
        os.makedirs(self.there("d", "e"))
        self.served("d/f", b"x")
        os.symlink("/", self.there("d", "l"))
        self.assertIn("-r", self.refused(1, "rm", self.url("d")).err)
        self.assertTrue(os.path.exists(self.there("d", "f")))
        self.assertEqual(self.done("rm", "--json", "-r", self.url("d")).json(), {"removed": 4})
        self.assertEqual(os.listdir(self.there()), [])

    def test_missing(self):
        self.refused(1, "rm", self.url("nothing"))
        self.done("rm", "-f", self.url("nothing"))
        self.refused(1, "rm", "-r", self.server.url("/"))

    def test_a_large_directory(self):
        os.mkdir(self.there("d"))
        for i in range(1500):
            self.served("d/%d" % i, b"")
        self.done("rm", "-r", self.url("d"))
        self.assertEqual(os.listdir(self.there()), [])


class Move(ServedTest):
    def test_names_and_directories(self):
        self.served("a", b"1")
        os.mkdir(self.there("d"))
        self.done("mv", self.url("a"), self.url("b"))
        self.done("mv", self.url("b"), self.url("d"))
        self.assertEqual(os.listdir(self.there("d")), ["b"])
        self.done("mv", self.url("d/b"), "/" + self.name + "/c")
        self.assertEqual(sorted(os.listdir(self.there())), ["c", "d"])

    def test_replaces_a_file(self):
        self.served("a", b"new")
        self.served("b", b"old")
        self.done("mv", self.url("a"), self.url("b"))
        self.assertEqual(harness.read(self.there("b")), b"new")
        self.assertFalse(os.path.exists(self.there("a")))

    def test_refusals(self):
        self.refused(1, "mv", self.url("nothing"), self.url("b"))
        self.refused(2, "mv", self.url("a"), "nfsrdma://127.0.0.9/b")
        self.served("a", b"")
        self.refused(1, "mv", self.url("a"), self.url("nodir").replace("?", "/?"))


class Link(ServedTest):
    def test_hard(self):
        self.served("a", b"1")
        self.done("ln", self.url("a"), self.url("b"))
        self.assertTrue(os.path.samefile(self.there("a"), self.there("b")))
        self.refused(1, "ln", self.url("a"), self.url("b"))
        self.refused(1, "ln", self.url("nothing"), self.url("c"))

    def test_symbolic(self):
        self.done("ln", "-s", "../any text", self.url("l"))
        self.assertEqual(os.readlink(self.there("l")), "../any text")
        os.mkdir(self.there("d"))
        self.done("ln", "-s", "/x/y", self.url("d"))
        self.assertEqual(os.readlink(self.there("d", "y")), "/x/y")


class Tell(ServedTest):
    def test_ping_names_every_step(self):
        outcome = self.done("ping", self.server.url("/"))
        steps = [re.split(r"  +", line)[0] for line in outcome.text.splitlines()]
        self.assertEqual(steps, ["name", "route and device", "connect", "NULL", "EXCHANGE_ID", "session", "root"])
        self.assertEqual(outcome.text.count(" ok "), len(steps))
        found = self.done("ping", "--json", self.server.url("/")).json()
        self.assertEqual([step["step"] for step in found], steps)
        self.assertTrue(all(step["ok"] for step in found))

    def test_ping_of_a_path_that_is_not_there(self):
        outcome = run("ping", self.url("nothing"))
        self.assertEqual(outcome.code, 1, outcome.text)
        self.assertRegex(outcome.text.splitlines()[-1], r"^root +FAILED .*(No such file|NOENT)")

    def test_info(self):
        found = self.done("info", "--json", self.url("", nconnect=2, rsize=65536)).json()
        self.assertEqual(found["rsize_bytes"], 65536)
        self.assertEqual(len(found["connections"]), 2)
        self.assertGreater(found["slots"], 0)
        self.assertGreater(found["pool_bytes_max"], 0)
        text = self.done("info", self.url("")).text
        self.assertRegex(text, r"(?m)^pool +256\.0 MiB of registered buffers at most")
        self.assertRegex(text, r"(?m)^connection 0 +\S")


if __name__ == "__main__":
    harness.main()
