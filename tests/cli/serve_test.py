# SPDX-License-Identifier: Apache-2.0
"""nfsrdma-serve as a program: usage, what keeps it from starting, its limits, its end, its manual page."""

import contextlib
import os
import re
import resource
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import unittest

import harness
from harness import Outcome, Server, run

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MANUAL = os.path.join(ROOT, "docs", "man", "nfsrdma-serve.8.scd")
END_S = 20
SOMEBODY = 54321


def serve(*arguments, **more):
    """Runs nfsrdma-serve where it must end by itself."""
    return Outcome(subprocess.run([harness.program("nfsrdma-serve"), *arguments], capture_output=True, timeout=END_S,
                                  check=False, **more))


class Program(unittest.TestCase):
    def setUp(self):
        self.work = tempfile.mkdtemp(prefix="nfsrdma-serve-")
        self.addCleanup(shutil.rmtree, self.work, ignore_errors=True)
        self.export = self.path("export")
        os.mkdir(self.export)

    def path(self, name):
        return os.path.join(self.work, name)

    def server(self, *options, **more):
        server = Server(*options, **more)
        self.addCleanup(self.end, server)
        return server

    def end(self, server):
        if server.process.stdout.closed:
            return
        log = server.stop()
        self.assertEqual(server.process.returncode, 0, log)

    def refused(self, code, *arguments, **more):
        """It must end with that exit code, one line on stderr and nothing on stdout."""
        outcome = serve(*arguments, **more)
        self.assertEqual(outcome.code, code, outcome.err + outcome.text)
        self.assertEqual(outcome.out, b"")
        self.assertEqual(len(outcome.error_lines), 1, outcome.err)
        self.assertTrue(outcome.err.startswith("nfsrdma-serve: "), outcome.err)
        return outcome.err


class Usage(Program):
    def test_help_and_version(self):
        for arguments, pattern in ((("--help",), r"Usage: nfsrdma-serve"), (("-h",), r"Usage: nfsrdma-serve"),
                                   (("--version",), r"^nfsrdma-serve \d+\.\d+\.\d+( \([0-9a-f]+(-dirty)?\))?\n$")):
            outcome = serve(*arguments)
            self.assertEqual((outcome.code, outcome.err), (0, ""))
            self.assertRegex(outcome.text, pattern)

    def test_wrong_arguments(self):
        for arguments, words in (
                ((), "DIR is required"),
                ((self.export, "more"), "more"),
                ((self.export, "--frob"), "--frob"),
                ((self.export, "--listen"), "--listen"),
                ((self.export, "--listen", ""), "--listen"),
                ((self.export, "--listen", "127.0.0.1:65536"), "65535"),
                ((self.export, "--listen", "127.0.0.1:x"), "65535"),
                ((self.export, "--listen", "127.0.0.1:"), "65535"),
                ((self.export, "--listen", "20049"), "written :20049"),
                ((self.export, "--grace", "5"), "requires --state-dir"),
                ((self.export, "--no-root-squash=maybe"), "--no-root-squash"),
                ((self.export, "--provider", "frob"), "iwarp,verbs"),
                ((self.export, "--provider", "tcp"), "use iwarp"),
                ((self.export, "--delegations", "frob"), "none,read,write"),
                ((self.export, "--lease", "0"), "1 to 3600"),
                ((self.export, "--grace", "3601"), "1 to 3600"),
                ((self.export, "--slots", "0"), "1 to 1024"),
                ((self.export, "--slots", "x"), "1 to 1024"),
                ((self.export, "--memory", "15"), "16 to"),
                ((self.export, "--max-clients", "0"), "1 to"),
                ((self.export, "--max-sessions", "-1"), "--max-sessions"),
                ((self.export, "--max-connections", "99999999999"), "--max-connections"),
                ((self.export, "--fault", "frob=1"), "disconnect=N"),
                ((self.export, "--fault", "drop=x"), "drop=x"),
                ((self.export, "--fault", "refuse=frob"), "refuse=frob")):
            with self.subTest(arguments=arguments[1:]):
                self.assertIn(words, self.refused(2, *arguments))


class Start(Program):
    def test_directory_missing(self):
        self.assertIn("does not exist", self.refused(1, self.path("none"), "--listen", "127.0.0.1:0"))

    def test_directory_is_a_file(self):
        with open(self.path("file"), "wb"):
            pass
        self.assertIn("is not a directory", self.refused(1, self.path("file"), "--listen", "127.0.0.1:0"))

    def test_directory_not_permitted(self):
        if os.geteuid() != 0:
            self.skipTest("needs root")
        os.chmod(self.work, 0o755)
        os.chmod(self.export, 0o700)
        # The program itself may lie where others cannot reach it.
        copy = shutil.copy(harness.program("nfsrdma-serve"), self.work)
        done = Outcome(subprocess.run([copy, self.export, "--listen", "127.0.0.1:0"], capture_output=True, check=False,
                                      timeout=END_S, user=SOMEBODY, group=SOMEBODY, extra_groups=[]))
        self.assertEqual((done.code, len(done.error_lines)), (1, 1), done.err)
        self.assertIn("may not be read by this user", done.err)

    def test_port_zero_takes_a_free_one_and_says_which(self):
        server = self.server()
        self.assertRegex(server.base, r"^nfsrdma://127\.0\.0\.1:[1-9]\d*/\?provider=iwarp$")
        self.assertEqual(run("ls", server.url("/")).code, 0)

    def test_ipv6(self):
        try:
            with socket.socket(socket.AF_INET6) as probe:
                probe.bind(("::1", 0))
        except OSError:
            self.skipTest("no IPv6 here")
        server = self.server(listen="[::1]:0")
        self.assertRegex(server.base, r"^nfsrdma://\[::1\]:[1-9]\d*/")
        self.assertEqual(run("ls", server.url("/")).code, 0)

    def test_port_busy(self):
        address = self.server().base.split("/")[2]
        why = self.refused(1, self.export, "--listen", address)
        self.assertIn(address, why)
        self.assertIn("choose another port", why)

    def test_address_that_is_none(self):
        self.assertIn("four decimal numbers", self.refused(1, self.export, "--listen", "10.1:0"))

    def test_no_thread_to_be_had(self):
        if os.geteuid() != 0:
            self.skipTest("needs root")
        os.chmod(self.work, 0o755)
        copy = shutil.copy(harness.program("nfsrdma-serve"), self.work)

        def limit():
            resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))
        done = Outcome(subprocess.run([copy, self.export, "--listen", "127.0.0.1:0"], capture_output=True, check=False,
                                      timeout=END_S, user=SOMEBODY, group=SOMEBODY, extra_groups=[], preexec_fn=limit))
        self.assertEqual((done.code, len(done.error_lines)), (1, 1), done.err)
        self.assertIn("ulimit -u", done.err)

    def test_address_of_nobody(self):
        # 192.0.2.0/24 is for documentation (RFC 5737): no machine has an address of it.
        self.assertIn("cannot listen on 192.0.2.1", self.refused(1, self.export, "--listen", "192.0.2.1:0"))

    def test_state_directory_belongs_to_one(self):
        state = self.path("state")
        first = self.server("--state-dir", state)
        self.assertIn("in use by another server",
                      self.refused(1, self.export, "--listen", "127.0.0.1:0", "--state-dir", state))
        self.end(first)
        self.server("--state-dir", state)

    def test_state_directory_is_a_file(self):
        with open(self.path("file"), "wb"):
            pass
        self.refused(1, self.export, "--listen", "127.0.0.1:0", "--state-dir", self.path("file"))

    def test_state_directory_of_a_killed_server_is_free(self):
        state = self.path("state")
        first = self.server("--state-dir", state)
        first.process.kill()
        first.process.wait()
        first.stop()
        self.server("--state-dir", state)


class End(Program):
    def check_end(self, server, number):
        server.process.send_signal(number)
        self.assertEqual(server.process.wait(timeout=END_S), 0)

    def test_signals_end_it(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            with self.subTest(signal=number):
                self.check_end(self.server(), number)

    def test_with_a_client_that_is_there(self):
        server = self.server()
        with held_session(server):
            self.check_end(server, signal.SIGTERM)

    def test_with_a_peer_that_says_nothing(self):
        server = self.server()
        host, port = server.base.split("/")[2].split(":")
        with socket.create_connection((host, int(port)), timeout=END_S):
            self.check_end(server, signal.SIGTERM)


@contextlib.contextmanager
def held_session(server):
    """A client in the midst of a file: its output is not read, so it goes on neither to the end nor away."""
    with open(server.path("held"), "wb") as file:
        file.truncate(64 << 20)
    client = subprocess.Popen([harness.program("nfsrdma"), "cat", server.url("/held")], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL)
    try:
        ready, _, _ = select.select([client.stdout], [], [], harness.READY_S)
        if not ready or client.stdout.read(1) != b"\0":
            raise RuntimeError("the client that was to stay did not come")
        yield
    finally:
        client.kill()
        client.wait()
        client.stdout.close()


class Limits(Program):
    def test_connections(self):
        server = self.server("--max-connections", "1")
        with held_session(server):
            outcome = run("ls", server.url("/"))
        self.assertEqual((outcome.code, len(outcome.error_lines)), (3, 1), outcome.err)
        self.assertIn("rejected the connection", outcome.err)
        self.assertIn("1 connections are the limit", server.stop())

    def test_sessions(self):
        server = self.server("--max-sessions", "1")
        with held_session(server):
            outcome = run("ls", server.url("/"))
        self.assertEqual((outcome.code, len(outcome.error_lines)), (1, 1), outcome.err)
        self.assertIn("CREATE_SESSION: the server answered NFS4ERR_NOSPC", outcome.err)
        self.assertIn("1 sessions are the limit", server.stop())

    def test_clients_wait_until_there_is_room(self):
        server = self.server("--max-clients", "1")
        with held_session(server):
            outcome = run("ls", server.url("/", connect_timeout=2))
        self.assertEqual((outcome.code, len(outcome.error_lines)), (3, 1), outcome.err)
        self.assertIn("1 clients are the limit", server.stop())

    def test_room_comes_back(self):
        server = self.server("--max-connections", "1", "--max-sessions", "1", "--max-clients", "1")
        for _ in range(3):
            self.assertEqual(run("ls", server.url("/")).code, 0)


class ReadOnly(Program):
    def test_every_change_is_refused(self):
        server = self.server("--read-only", "--no-root-squash", folder=self.export)
        with open(server.path("there"), "wb") as file:
            file.write(b"text")
        os.mkdir(server.path("dir"))
        local = self.path("local")
        shutil.copy(server.path("there"), local)
        for arguments in (("put", local, server.url("/new")), ("put", local, server.url("/there")),
                          ("mkdir", server.url("/new")), ("rm", server.url("/there")),
                          ("mv", server.url("/there"), server.url("/new")),
                          ("ln", server.url("/there"), server.url("/new"))):
            with self.subTest(command=arguments[0]):
                outcome = run(*arguments)
                self.assertEqual((outcome.code, len(outcome.error_lines)), (1, 1), outcome.err)
                self.assertIn("Read-only file system", outcome.err)
        self.assertEqual(run("cat", server.url("/there")).out, b"text")
        self.assertEqual(sorted(os.listdir(self.export)), ["dir", "there"])


class Manual(unittest.TestCase):
    def test_holds_the_options_of_the_program_and_no_others(self):
        listed = serve("--help").text.partition("\nOptions:\n")[2]
        program = set(re.findall(r"(?<![\w-])(--?[a-z][a-z-]*)", "\n".join(
            line.split("  ")[1] for line in listed.splitlines() if re.match(r"  -", line))))
        with open(MANUAL, encoding="utf-8") as file:
            section = re.search(r"(?ms)^# OPTIONS$(.*?)^# ", file.read()).group(1)
        heads = [line for line in section.splitlines() if line.startswith("*-")]
        manual = set(re.findall(r"\*(--?[a-z-]+)\*", "\n".join(heads)))
        self.assertGreater(len(program), 20)
        self.assertEqual(manual, program)

    def test_holds_the_faults_of_the_program_and_no_others(self):
        known = serve("/", "--fault", "?").err.partition("known are: ")[2]
        program = {re.match(r"[a-z_]+", word).group(0) for word in known.split()}
        with open(MANUAL, encoding="utf-8") as file:
            section = re.search(r"(?ms)^# FAULTS$(.*?)^# ", file.read()).group(1)
        self.assertGreater(len(program), 5)
        self.assertEqual(set(re.findall(r"(?m)^\*([a-z_]+)=?\*", section)), program)

    def test_is_a_manual_page(self):
        if not shutil.which("scdoc") or not shutil.which("mandoc"):
            self.skipTest("scdoc and mandoc are not installed")
        with open(MANUAL, "rb") as file:
            page = subprocess.run(["scdoc"], stdin=file, capture_output=True, check=True).stdout
        lint = subprocess.run(["mandoc", "-T", "lint", "-W", "warning"], input=page, capture_output=True, check=False)
        worse = [line for line in lint.stdout.decode().splitlines() if re.search(r"ERROR|UNSUPP", line)]
        self.assertEqual(worse, [])


if __name__ == "__main__":
    harness.main()
