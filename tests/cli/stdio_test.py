# SPDX-License-Identifier: Apache-2.0
"""Standard files that are closed or full, in all three programs: an error that is said, and nothing written elsewhere."""

import os
import subprocess
import tempfile
import unittest

import harness
from harness import Outcome, ServedTest, read

END_S = 20
PROGRAMS = ("nfsrdma", "nfsrdma-fuse", "nfsrdma-serve")
CLOSED = {"stdin": "<&-", "stdout": ">&-", "stderr": "2>&-"}


def by_shell(redirection, *command):
    """Runs the command with standard files that only a shell can give it."""
    line = 'exec "$@" ' + redirection
    return Outcome(subprocess.run(["sh", "-c", line, "sh", *command], stdin=subprocess.DEVNULL, capture_output=True,
                                  timeout=END_S, check=False))


class NoServer(unittest.TestCase):
    def fails(self, outcome, *words):
        self.assertEqual(outcome.code, 1, outcome.err)
        self.assertEqual(len(outcome.error_lines), 1, outcome.err)
        for word in words:
            self.assertIn(word, outcome.err)

    def test_what_was_asked_for_must_arrive(self):
        for name in PROGRAMS:
            for flag in ("--help", "--version"):
                for redirection in (">/dev/full", ">&-"):
                    with self.subTest(program=name, flag=flag, redirection=redirection):
                        self.fails(by_shell(redirection, harness.program(name), flag), name + ": standard output: ")

    def test_the_ready_line_must_arrive(self):
        with tempfile.TemporaryDirectory() as folder:
            command = (harness.program("nfsrdma-serve"), folder, "--listen", "127.0.0.1:0")
            self.fails(by_shell(">/dev/full", *command), "stdout", "No space left")
            self.fails(by_shell(">&-", *command), "stdout", "Bad file descriptor")


class Served(ServedTest):
    def test_bytes_go_to_no_other_descriptor(self):
        self.served("f", b"x" * 100_000)
        for arguments in (("cat", self.url("f")), ("get", self.url("f"), "-")):
            outcome = by_shell(">&-", harness.program("nfsrdma"), *arguments)
            self.assertEqual((outcome.code, len(outcome.error_lines)), (1, 1), outcome.err)
            self.assertIn("Bad file descriptor", outcome.err)

    def test_nothing_comes_from_a_closed_stdin(self):
        outcome = by_shell("<&-", harness.program("nfsrdma"), "put", "-", self.url("f"))
        self.assertEqual((outcome.code, len(outcome.error_lines)), (1, 1), outcome.err)
        self.assertIn("Bad file descriptor", outcome.err)
        self.assertEqual(os.listdir(self.there()), [])

    def test_what_needs_no_standard_files_works_without_them(self):
        self.served("f", b"text")
        outcome = by_shell(" ".join(CLOSED.values()), harness.program("nfsrdma"), "get", self.url("f"), self.local("f"))
        self.assertEqual(outcome.code, 0)
        self.assertEqual(read(self.local("f")), b"text")

    def test_a_full_local_disk_is_told_from_one_of_the_server(self):
        self.served("f", b"text")
        outcome = self.refused(1, "get", self.url("f"), "/dev/full")
        self.assertIn("writing on this machine: No space left", outcome.err)


if __name__ == "__main__":
    harness.main()
