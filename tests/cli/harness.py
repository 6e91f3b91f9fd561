# SPDX-License-Identifier: Apache-2.0
"""A served directory and the command line beside it. The folder of the programs is the test's first argument."""

import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import unittest
import urllib.parse

BIN = os.environ.get("NFSRDMA_BIN", "")
READY_S = 20
COMMAND_S = 60


def program(name):
    return os.path.join(BIN, name)


class Outcome:
    def __init__(self, completed):
        self.code = completed.returncode
        self.out = completed.stdout
        self.err = completed.stderr.decode(errors="replace")
        self.text = self.out.decode(errors="replace")
        self.error_lines = self.err.splitlines()

    def json(self):
        return json.loads(self.text)


def run(*arguments, stdin=b"", **more):
    """Runs `nfsrdma ARGUMENTS` to its end."""
    return Outcome(subprocess.run([program("nfsrdma"), *arguments], input=stdin, capture_output=True,
                                  timeout=COMMAND_S, check=False, **more))


class Server:
    """nfsrdma-serve over a folder of its own, on a port of its own."""

    def __init__(self, *options, folder=None, listen="127.0.0.1:0"):
        self.work = tempfile.mkdtemp(prefix="nfsrdma-cli-")
        self.folder = folder or os.path.join(self.work, "export")
        os.makedirs(self.folder, exist_ok=True)
        with open(os.path.join(self.work, "log"), "wb") as log:
            self.process = subprocess.Popen(
                [program("nfsrdma-serve"), self.folder, "--listen", listen, *options],
                stdout=subprocess.PIPE, stderr=log)
        ready, _, _ = select.select([self.process.stdout], [], [], READY_S)
        line = self.process.stdout.readline().decode() if ready else ""
        if not line.startswith("ready nfsrdma://"):
            self.stop()
            raise RuntimeError("no ready line from nfsrdma-serve: %r" % line)
        self.base = line.split()[1]

    def url(self, path="/", **arguments):
        head, _, query = self.base.partition("?")
        more = urllib.parse.urlencode(arguments)
        return head.rstrip("/") + urllib.parse.quote(path) + "?" + query + ("&" + more if more else "")

    def path(self, *parts):
        return os.path.join(self.folder, *parts)

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        with open(os.path.join(self.work, "log"), encoding="utf-8", errors="replace") as log:
            text = log.read()
        shutil.rmtree(self.work, ignore_errors=True)
        return text


class ServedTest(unittest.TestCase):
    """One server for all tests of a class; each test works below a directory of its own name."""

    SERVE_OPTIONS = ("--no-root-squash",)

    @classmethod
    def setUpClass(cls):
        cls.server = Server(*cls.SERVE_OPTIONS)
        cls.scratch = tempfile.mkdtemp(prefix="nfsrdma-here-")

    @classmethod
    def tearDownClass(cls):
        log = cls.server.stop()
        shutil.rmtree(cls.scratch, ignore_errors=True)
        if cls.server.process.returncode != 0:
            raise AssertionError("nfsrdma-serve ended with %s: %s" % (cls.server.process.returncode, log[-2000:]))

    def setUp(self):
        self.name = self.id().rsplit(".", 1)[1]
        self.here = os.path.join(self.scratch, self.name)
        os.makedirs(self.here)
        os.makedirs(self.there())

    def there(self, *parts):
        return self.server.path(self.name, *parts)

    def url(self, path="", **arguments):
        return self.server.url("/" + self.name + ("/" + path if path else ""), **arguments)

    def local(self, name, data=None):
        path = os.path.join(self.here, name)
        if data is not None:
            with open(path, "wb") as file:
                file.write(data)
        return path

    def served(self, name, data=None):
        path = self.there(name)
        if data is not None:
            with open(path, "wb") as file:
                file.write(data)
        return path

    def done(self, *arguments, **more):
        """Runs a command that must succeed in silence on stderr."""
        outcome = run(*arguments, **more)
        self.assertEqual(outcome.code, 0, outcome.err)
        self.assertEqual(outcome.err, "")
        return outcome

    def refused(self, code, *arguments, **more):
        """Runs a command that must fail with one line (a usage error adds its hint) and nothing on stdout."""
        outcome = run(*arguments, **more)
        self.assertEqual(outcome.code, code, outcome.err + outcome.text)
        self.assertEqual(len(outcome.error_lines), 2 if code == 2 else 1, outcome.err)
        if code == 2:
            self.assertRegex(outcome.error_lines[1], r"^try 'nfsrdma .*--help'$")
        self.assertTrue(outcome.err.startswith("nfsrdma"), outcome.err)
        return outcome


def read(path):
    with open(path, "rb") as file:
        return file.read()


def main():
    global BIN
    if len(sys.argv) > 1 and os.path.isdir(sys.argv[1]):
        BIN = os.path.abspath(sys.argv.pop(1))
        os.environ["NFSRDMA_BIN"] = BIN
    unittest.main(module="__main__", verbosity=1)
