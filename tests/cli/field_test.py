# SPDX-License-Identifier: Apache-2.0
"""Faults that users of other software met in the field, F numbers as in tests elsewhere: none of them here."""

import os
import random
import unittest

import harness
from harness import Server, read, run

MIB = 1 << 20


class Field(unittest.TestCase):
    def serve(self, *options):
        server = Server("--no-root-squash", *options)
        self.addCleanup(server.stop)
        self.here = os.path.join(server.work, "here")
        os.mkdir(self.here)
        return server

    def done(self, *arguments, stdin=b""):
        outcome = run(*arguments, stdin=stdin)
        self.assertEqual(outcome.code, 0, outcome.err)
        return outcome

    def there_and_back(self, server, sizes):
        source = os.path.join(self.here, "tree")
        os.mkdir(source)
        for size in sizes:
            with open(os.path.join(source, str(size)), "wb") as file:
                file.write(random.Random(size).randbytes(size))
        self.done("put", "-r", source, server.url("/"))
        self.done("get", "-r", server.url("/tree"), os.path.join(self.here, "back"))
        for size in sizes:
            data = random.Random(size).randbytes(size)
            self.assertEqual(read(server.path("tree", str(size))), data, size)
            self.assertEqual(read(os.path.join(self.here, "back", str(size))), data, size)

    def test_F1_every_size_around_the_inline_threshold(self):
        sizes = [1, 400, *range(900, 1101), *range(3600, 4098, 31), 4095, 4096, 4097, 8191, 8192, 8193, 65536, MIB,
                 MIB + 1]
        self.there_and_back(self.serve(), sizes)

    def test_F2_servers_of_every_inline_size(self):
        for fault in ("inline=1024", "inline=4096", "inline=8192", "no_private_data", "inline=1024,no_private_data"):
            with self.subTest(fault=fault):
                self.there_and_back(self.serve("--fault", fault), [0, 1, 900, 1000, 1100, 4000, 5000, 9000, MIB])

    def test_F4_credits_beyond_all_measure_and_none(self):
        for fault in ("credits=4000000000", "credits=0", "credits=1", "credits=64/0/4294967295/1"):
            with self.subTest(fault=fault):
                self.there_and_back(self.serve("--fault", fault), [1, 5000, 3 * MIB + 1])

    def test_F5_a_directory_of_20000_long_names(self):
        server = self.serve()
        os.mkdir(server.path("d"))
        names = ["%05d%s" % (i, "n" * 195) for i in range(20000)]
        for name in names:
            os.close(os.open(server.path("d", name), os.O_CREAT | os.O_WRONLY))
        self.assertEqual(self.done("ls", server.url("/d")).text.split(), names)

    def test_F28_a_connection_that_ends_again_and_again(self):
        server = self.serve("--fault", "disconnect=30")
        data = random.Random(28).randbytes(20 * MIB)
        self.done("put", "-", server.url("/f"), stdin=data)
        self.assertEqual(read(server.path("f")), data)

    def test_F38_a_shorter_overwrite_keeps_no_tail(self):
        server = self.serve()
        for text in (b"123456789", b"ab"):
            self.done("put", "-", server.url("/f"), stdin=text)
        self.assertEqual(read(server.path("f")), b"ab")

    def test_F58_lengths_around_wsize(self):
        server = self.serve()
        for size in (4095, 4096, 4097, 3 * 4096 + 7):
            data = random.Random(size).randbytes(size)
            self.done("put", "-", server.url("/f", wsize=4096), stdin=data)
            self.assertEqual(self.done("cat", server.url("/f", rsize=4096)).out, data)


if __name__ == "__main__":
    harness.main()
