# SPDX-License-Identifier: Apache-2.0
"""Each ends in one line that says what was tried, what was found and what to do, with its exit code, in bounded time."""

import os
import resource
import socket
import struct
import subprocess
import threading
import time
import unittest

import harness
from harness import ServedTest, Server, run

# Where each condition is tested. Names of the mount are CTest entries fuse.NAME.
#
# condition                       command line                                   mount
# unreachable host                NoServer.test_F69_unreachable_host             f69_an_unreachable_server
# name that does not resolve      NoServer.test_name_that_does_not_resolve       f69_an_unreachable_server
# port closed                     NoServer.test_port_closed                      f69_an_unreachable_server
# speaks TCP but not MPA          NoServer.test_server_that_speaks_tcp_but_not_mpa  a_server_that_speaks_tcp_but_not_mpa
# says nothing                    NoServer.test_server_that_says_nothing         a_server_that_says_nothing
# MPA reject                      NoServer.test_mpa_reject                       an_mpa_reject
# reply that is garbage           NoServer.test_reply_that_is_garbage            a_reply_that_is_garbage
# NFSv4.0 only                    FaultyServer.test_server_of_nfs_4_0_only       a_server_of_nfs_4_0_only
# export that does not exist      Refused.test_F69_path_that_does_not_exist      f69_a_wrong_export
# no permission                   Refused.test_F69_no_permission                 f69_a_refused_client
# no /dev/fuse                    (none: it needs none)                          no_device
# mount point missing or busy     (none: it has none)                            a_mount_point_that_is_none, a_mount_point_that_is_busy
# memlock too small for verbs     tests/vm/cases/13_verbs_memlock                (the same library call)
# no RDMA device, provider=verbs  NoServer.test_no_rdma_device_with_provider_verbs  no_rdma_device
# full server disk                FaultyServer.test_full_server_disk             a_full_disk_reaches_the_writer
# name longer than 255            Refused.test_name_longer_than_255              a_name_longer_than_255
# wrong version, bad option       text_test.py Usage.test_wrong_urls             f69_a_refused_version, f69_a_bad_option

BOUND_S = 15
SOMEBODY = 54322


class Peer:
    """A TCP listener on loopback that is no NFS server: on_connection(socket) for each that comes."""

    def __init__(self, on_connection):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.on_connection = on_connection
        self.connections = []
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            self.connections.append(connection)
            try:
                self.on_connection(connection)
            except OSError:
                pass

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join()
        for connection in self.connections:
            connection.close()

    def url(self, **arguments):
        query = "".join("&%s=%s" % item for item in arguments.items())
        return "nfsrdma://127.0.0.1:%d/?provider=iwarp%s" % (self.port, query)


def mpa_reply(flags, revision=2, private_data=b""):
    return b"MPA ID Rep Frame" + struct.pack(">BBH", flags, revision, len(private_data)) + private_data


def receive_request(connection):
    head = b""
    while len(head) < 20:
        more = connection.recv(20 - len(head))
        if not more:
            return
        head += more
    rest = struct.unpack(">H", head[18:20])[0]
    while rest > 0:
        more = connection.recv(rest)
        if not more:
            return
        rest -= len(more)


class NoServer(unittest.TestCase):
    def fails(self, url, *words, code=3, command=("ls",), lines=1):
        began = time.monotonic()
        outcome = run(*command, url)
        self.assertLess(time.monotonic() - began, BOUND_S)
        self.assertEqual(outcome.code, code, outcome.err)
        self.assertEqual(outcome.out, b"")
        self.assertEqual(len(outcome.error_lines), lines, outcome.err)
        for word in words:
            self.assertIn(word, outcome.err)
        return outcome.err

    def peer(self, on_connection):
        peer = Peer(on_connection)
        self.addCleanup(peer.close)
        return peer

    def test_name_that_does_not_resolve(self):
        self.fails("nfsrdma://no-such-host.invalid/?provider=iwarp", "no-such-host.invalid", "check the name")

    def test_F69_unreachable_host(self):
        # A network namespace without any route: nothing is sent.
        if subprocess.run(["unshare", "-Urn", "true"], capture_output=True, check=False).returncode != 0:
            self.skipTest("no user and network namespaces here")
        outcome = subprocess.run(["unshare", "-Urn", harness.program("nfsrdma"), "ls",
                                  "nfsrdma://192.0.2.1/?provider=iwarp"], capture_output=True, timeout=BOUND_S, check=False)
        self.assertEqual(outcome.returncode, 3)
        self.assertEqual(len(outcome.stderr.splitlines()), 1, outcome.stderr)
        self.assertIn(b"192.0.2.1", outcome.stderr)
        self.assertIn(b"unreachable", outcome.stderr)

    def test_port_closed(self):
        listener = socket.create_server(("127.0.0.1", 0))
        port = listener.getsockname()[1]
        listener.close()
        # A healthy RoCE server has no such TCP port: the text must say so.
        self.fails("nfsrdma://127.0.0.1:%d/?provider=iwarp" % port, str(port), "refused", "RoCE", "provider=verbs")

    def test_source_address_of_another_host(self):
        # 192.0.2.0/24 is for documentation (RFC 5737): no machine has an address of it.
        self.fails("nfsrdma://127.0.0.1/?provider=iwarp&srcaddr=192.0.2.1", "source address 192.0.2.1", "srcaddr=")

    def test_short_forms_of_addresses_are_none(self):
        # The resolver of the C library takes them: "10.1" would be 10.0.0.1, and a port alone an address.
        for host in ("10.1", "20049", "127.0.0.01x", "0x7f.1"):
            self.fails("nfsrdma://%s/?provider=iwarp" % host, host)
        self.fails("nfsrdma://127.0.0.1/?provider=iwarp&srcaddr=127.1", "numeric local address", code=2, lines=2)

    def test_ping_says_at_which_step(self):
        listener = socket.create_server(("127.0.0.1", 0))
        port = listener.getsockname()[1]
        listener.close()
        outcome = run("ping", "nfsrdma://127.0.0.1:%d/?provider=iwarp" % port)
        self.assertEqual(outcome.code, 3)
        self.assertEqual(outcome.err, "")
        lines = outcome.text.splitlines()
        self.assertRegex(lines[-1], r"^connect +FAILED +\d+\.\d{3} ms +.*refused")
        self.assertTrue(all(" ok " in line for line in lines[:-1]))

    def test_server_that_speaks_tcp_but_not_mpa(self):
        peer = self.peer(lambda c: c.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"))
        self.fails(peer.url(), str(peer.port), "MPA")

    def test_server_that_says_nothing(self):
        peer = self.peer(lambda c: None)
        began = time.monotonic()
        self.fails(peer.url(connect_timeout="1"), str(peer.port))
        self.assertLess(time.monotonic() - began, 5)

    def test_server_that_hangs_up(self):
        peer = self.peer(lambda c: c.close())
        self.fails(peer.url(), str(peer.port))

    def test_mpa_reject(self):
        def reject(connection):
            receive_request(connection)
            connection.sendall(mpa_reply(0x20 | 0x10, 2, struct.pack(">HH", 0x8001, 0x0001)))
        peer = self.peer(reject)
        self.fails(peer.url(), str(peer.port), "reject")

    def test_reply_that_is_garbage(self):
        def garbage(connection):
            receive_request(connection)
            connection.sendall(mpa_reply(0x10, 2, struct.pack(">HH", 0x8001, 0x4001)))
            connection.sendall(bytes(range(256)) * 64)
        peer = self.peer(garbage)
        self.fails(peer.url(connect_timeout="5"), str(peer.port), "FPDU", "check that an NFS server")

    def test_no_rdma_device_with_provider_verbs(self):
        if os.path.isdir("/sys/class/infiniband") and os.listdir("/sys/class/infiniband"):
            self.skipTest("this machine has an RDMA device")
        self.fails("nfsrdma://127.0.0.1/?provider=verbs", "provider=verbs", "no RDMA device", "provider=iwarp")
        # Without a word about the provider: software RDMA is never taken by accident.
        self.fails("nfsrdma://127.0.0.1/", "no RDMA device", "provider=iwarp")


class Refused(ServedTest):
    SERVE_OPTIONS = ()  # root is squashed

    def test_F69_path_that_does_not_exist(self):
        outcome = self.refused(1, "ls", self.url("no/export"))
        self.assertIn("No such file", outcome.err)

    def test_F69_no_permission(self):
        os.mkdir(self.there("d"))
        os.chmod(self.there("d"), 0)
        outcome = self.refused(1, "ls", self.url("d", uid=12345, gid=12345))
        self.assertIn("ermission denied", outcome.err)

    def test_name_longer_than_255(self):
        for command in (("ls",), ("stat",), ("mkdir",), ("rm",), ("cat",)):
            outcome = self.refused(1, *command, self.url("n" * 256))
            self.assertRegex(outcome.err, "(?i)too long")

    def test_path_longer_than_is_taken(self):
        self.refused(2, "ls", self.url("/".join(["d" * 200] * 30)))


    def test_few_descriptors(self):
        """It runs, or says in one line what is missing."""
        codes = {}
        for limit in range(4, 16):
            outcome = run("ls", self.url(), preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit)))
            codes[limit] = outcome.code
            if outcome.code != 0:
                self.assertEqual(len(outcome.error_lines), 1, outcome.err)
                self.assertRegex(outcome.err, "Too many open files|cannot open shared object file")
        self.assertEqual((codes[5] != 0, codes[15]), (True, 0), codes)

    def test_no_thread_to_be_had(self):
        if os.geteuid() != 0:
            self.skipTest("needs root, to become somebody who has no other process")
        try:
            outcome = run("ls", self.url(), user=SOMEBODY, group=SOMEBODY, extra_groups=[],
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NPROC, (1, 1)))
        except PermissionError:
            self.skipTest("others may not run programs that lie here")
        self.assertEqual((outcome.code, len(outcome.error_lines)), (1, 1), outcome.err)
        self.assertIn("ulimit -u", outcome.err)


class FaultyServer(unittest.TestCase):
    def fails(self, code, fault, *words):
        server = Server("--fault", fault)
        try:
            began = time.monotonic()
            outcome = run("ls", server.url("/"))
            self.assertLess(time.monotonic() - began, BOUND_S)
        finally:
            server.stop()
        self.assertEqual(outcome.code, code, outcome.err)
        self.assertEqual(len(outcome.error_lines), 1, outcome.err)
        for word in words:
            self.assertIn(word, outcome.err)

    def test_server_of_nfs_4_0_only(self):
        # Such a server answers the first compound with NFS4ERR_MINOR_VERS_MISMATCH.
        self.fails(1, "refuse=exchange_id:10021", "NFSv4.1 is needed")

    def test_full_server_disk(self):
        server = Server("--no-root-squash", "--fault", "refuse=write:28")
        self.addCleanup(server.stop)
        outcome = run("put", "-", server.url("/f"), stdin=b"x" * 5000)
        self.assertEqual(outcome.code, 1, outcome.err)
        self.assertIn("No space left", outcome.err)


if __name__ == "__main__":
    harness.main()
