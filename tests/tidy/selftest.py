#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Small bad samples, one for each rule: a scanner that finds nothing in them would pass any tree."""

import os
import tempfile
import unittest

import cpp
import tidy

SPDX = "// SPDX-License-Identifier: Apache-2.0\n"


def rules(path, text, spdx=SPDX):
    return [finding.rule for finding in tidy.check_file(path, spdx + text)]


def long_body(lines):
    return "\n".join("  call(%d);" % i for i in range(lines))


class Includes(unittest.TestCase):
    def fault(self, path, target):
        return rules(path, '#include "%s"\n' % target) == ["include"]

    def test_upward(self):
        for path, target in [
            ("libnfsrdma/base/a.cpp", "xdr/decoder.hpp"),
            ("libnfsrdma/xdr/a.hpp", "rdma/provider.hpp"),
            ("libnfsrdma/nfs4/a.cpp", "io/loop.hpp"),
            ("libnfsrdma/slots/a.cpp", "rpc/call.hpp"),
            ("libnfsrdma/rpc/a.cpp", "rpcrdma/endpoint.hpp"),
            ("libnfsrdma/session/a.cpp", "client/mount.hpp"),
            ("libnfsrdma/client/a.cpp", "server/server.hpp"),
            ("libnfsrdma/client/a.cpp", "rpcrdma/header.hpp"),
            ("libnfsrdma/server/a.cpp", "session/server.hpp"),
            ("include/nfsrdma/mount.hpp", "client/mount.hpp"),
            ("fuse/ops/read.cpp", "client/mount.hpp"),
            ("examples/read.cpp", "base/log.hpp"),
            ("tools/nfsrdma/ls.cpp", "client/mount.hpp"),
            ("tools/serve/main.cpp", "client/mount.hpp"),
            ("libnfsrdma/nosuchroom/a.cpp", "base/log.hpp"),
        ]:
            self.assertTrue(self.fault(path, target), path + " -> " + target)

    def test_allowed(self):
        for path, target in [
            ("libnfsrdma/xdr/a.hpp", "base/bytes.hpp"),
            ("libnfsrdma/xdr/a.hpp", "xdr/b.hpp"),
            ("libnfsrdma/xdr/a.hpp", "nfsrdma/error.hpp"),
            ("libnfsrdma/server/a.cpp", "rpcrdma/endpoint.hpp"),
            ("libnfsrdma/client/a.cpp", "rpcrdma/factory.hpp"),
            ("libnfsrdma/client/a.cpp", "nfsrdma/mount.hpp"),
            ("include/nfsrdma/mount.hpp", "nfsrdma/file.hpp"),
            ("tests/client/a_test.cpp", "server/server.hpp"),
            ("fuse/ops/read.cpp", "ops/ops.hpp"),
            ("tools/serve/main.cpp", "server/server.hpp"),
        ]:
            self.assertFalse(self.fault(path, target), path + " -> " + target)

    def test_public_handles(self):
        self.assertTrue(self.fault("libnfsrdma/rpc/a.cpp", "nfsrdma/mount.hpp"))
        self.assertTrue(self.fault("include/nfsrdma/error.hpp", "nfsrdma/mount.hpp"))

    def test_not_from_the_roots(self):
        self.assertTrue(self.fault("libnfsrdma/base/a.cpp", "log.hpp"))
        self.assertTrue(self.fault("libnfsrdma/base/a.cpp", "../xdr/decoder.hpp"))

    def test_slow_header(self):
        self.assertEqual(rules("tools/serve/a.hpp", "#include <CLI/CLI.hpp>\n"), ["slow-header"])
        self.assertEqual(rules("tools/serve/a.cpp", "#include <CLI/CLI.hpp>\n"), [])

    def test_commented_out(self):
        self.assertEqual(rules("libnfsrdma/base/a.cpp", '// #include "xdr/decoder.hpp"\n'), [])


class Lengths(unittest.TestCase):
    def test_function(self):
        for head in ["void f() {", "int A::f(int a) const noexcept {", "TEST(Suite, name) {", "A::A() : a_{1}, b_(2) {",
                     "template <class T>\nvoid f(T t) {", "struct A {\n  void f() {", "namespace a {\nauto f = [](int) {",
                     "bool operator==(const A& a) {", "extern \"C\" {\nint f(void) {"]:
            bad = head + "\n" + long_body(70) + "\n}\n"
            self.assertEqual(rules("libnfsrdma/base/a.cpp", bad), ["function"], head)

    def test_function_at_the_limit(self):
        self.assertEqual(rules("libnfsrdma/base/a.cpp", "void f() {\n" + long_body(68) + "\n}\n"), [])
        self.assertEqual(rules("libnfsrdma/base/a.cpp", "void f() {\n" + long_body(69) + "\n}\n"), ["function"])

    def test_long_types_and_tables_are_no_functions(self):
        members = "\n".join("  int a%d = f(1);" % i for i in range(90))
        self.assertEqual(rules("libnfsrdma/base/a.hpp", "struct A : B {\n" + members + "\n};\n"), [])
        rows = "\n".join("  {1, f(2)}," for _ in range(90))
        self.assertEqual(rules("libnfsrdma/base/a.cpp", "const Row rows[] = {\n" + rows + "\n};\n"), [])

    def test_braces_in_text_do_not_count(self):
        text = 'void f() {\n  g("{{{", \'{\', R"x({{)x");  // {{\n}\n' * 2
        self.assertEqual([name for name, _, _ in cpp.functions(cpp.code_of(text))], ["f", "f"])

    def test_python_and_shell(self):
        hash_spdx = SPDX.replace("//", "#")
        body = "\n".join("  x = %d" % i for i in range(71))
        self.assertEqual(rules("scripts/a.py", "def f():\n" + body + "\n", hash_spdx), ["function"])
        self.assertEqual(rules("scripts/a.sh", "f() {\n" + body + "\n}\n", hash_spdx), ["function"])
        self.assertEqual(rules("scripts/a", "f() {\n" + body + "\n}\n", "#!/bin/sh\n" + hash_spdx), ["function"])

    def test_file(self):
        self.assertEqual(rules("libnfsrdma/base/a.cpp", "int a;\n" * 799), [])
        self.assertEqual(rules("libnfsrdma/base/a.cpp", "int a;\n" * 800), ["file"])


class Code(unittest.TestCase):
    def test_sleep(self):
        for call in ["sleep(1);", "::sleep(1);", "usleep(1);", "std::this_thread::sleep_for(ms);", "if (a) sleep(2);"]:
            self.assertEqual(rules("tools/nfsrdma/a.cpp", "void f() {\n  " + call + "\n}\n"), ["sleep"], call)
        self.assertEqual(rules("libnfsrdma/io/a.cpp", "Task<void> sleep(int ms);\n// sleep(1)\n"), [])
        self.assertEqual(rules("libnfsrdma/io/a.cpp", "void f() {\n  co_await loop.sleep_for(5);\n}\n"), [])
        self.assertEqual(rules("libnfsrdma/io/a.cpp", "void f() {\n  if (late) sleep(now, until);\n}\n"), [])

    def test_conditional_await(self):
        for line in ["auto r = a ? co_await f() : co_await g();", "auto r = a ? 1 : co_await g();",
                     "if (a && co_await f()) g();", "bool b = a || co_await f();", "co_return a ? g(co_await f()) : 0;",
                     "if (a &&\n      !(co_await f())) g();"]:
            self.assertIn("await", rules("libnfsrdma/io/a.cpp", "void f() {\n  " + line + "\n}\n"), line)
        for line in ["if (a && b) co_await f();", "if (a) co_return co_await f();", "auto r = co_await f(a ? 1 : 2);",
                     "x = a ? 1 : 2; co_await f();", "auto&& r = co_await f();", "if (co_await f() && b) g();",
                     "if (a || b) {\n    co_await f();\n  }", "Result<T>&& r = co_await f();",
                     "// a ? co_await f() : 0", "else if (a || b) co_return co_await f(a);"]:
            self.assertEqual(rules("libnfsrdma/io/a.cpp", "void f() {\n  " + line + "\n}\n"), [], line)

    def test_exit(self):
        for call in ["exit(1);", "abort();", "std::abort();", "::_exit(1);", "if (a) abort();", "std::terminate();"]:
            self.assertEqual(rules("libnfsrdma/rpc/a.cpp", "void f() {\n  " + call + "\n}\n"), ["exit"], call)
        self.assertEqual(rules("libnfsrdma/rpc/a.cpp", "void f(A& a) {\n  a.abort();\n}\nvoid abort();\n"), [])
        self.assertEqual(rules("tools/serve/a.cpp", "void f() {\n  exit(1);\n}\n"), [])

    def test_names(self):
        for path, line in [
            ("libnfsrdma/rpcrdma/a.cpp", "ibv_qp* qp;"),
            ("libnfsrdma/rdma/iwarp/a.cpp", "#include <infiniband/verbs.h>"),
            ("libnfsrdma/rdma/a.cpp", "rdma_cm_id* id;"),
            ("libnfsrdma/io/a.cpp", "boost::asio::io_context c;"),
            ("libnfsrdma/rpc/a.cpp", "#include <rpc/rpc.h>"),
            ("libnfsrdma/client/a.cpp", "cudaMalloc(&p, 1);"),
            ("include/nfsrdma/a.hpp", "fuse_req_t r;"),
        ]:
            self.assertEqual(rules(path, line + "\n"), ["name"], line)
        self.assertEqual(rules("libnfsrdma/rdma/verbs/a.cpp", "ibv_qp* qp;  // ibv\n"), [])
        self.assertEqual(rules("libnfsrdma/rdma/a.cpp", "// not an ibv_qp\n"), [])


class Text(unittest.TestCase):
    def test_spdx(self):
        for path in ["fuse/a.cpp", "scripts/a.py", "tests/a/CMakeLists.txt", "cmake/A.cmake", "tests/a/a.x"]:
            self.assertEqual(rules(path, "", "\n"), ["spdx"], path)
        self.assertEqual(rules("scripts/a", "", "#!/bin/sh\n"), ["spdx"])

    def test_whitespace(self):
        self.assertEqual(rules("fuse/a.cpp", "int a; \n"), ["whitespace"])
        self.assertEqual(rules("fuse/a.cpp", "int a;\r\n"), ["whitespace"])
        self.assertEqual(rules("fuse/a.cpp", "int a;"), ["whitespace"])
        self.assertEqual(rules("docs/a.md", "text \n", ""), ["whitespace"])

    def test_words(self):
        for words in ["/" + "work/main", "a sub" + "agent", "Is" + "sue 3", "as the is" + "sue says", "TO" + "DO",
                      "sha" + "red/lab", "the bri" + "ef", "FIX" + "ME"]:
            self.assertEqual(rules("docs/a.md", "See %s here.\n" % words, ""), ["words"], words)
            self.assertEqual(rules("fuse/a.cpp", "// %s\n" % words), ["words"], words)
        self.assertEqual(rules("docs/a.md", "A session, a worker, a shared library: network/worker.\n", ""), [])


class Tree(unittest.TestCase):
    def scan(self, files):
        with tempfile.TemporaryDirectory() as root:
            for path, text in files.items():
                full = os.path.join(root, path)
                os.makedirs(os.path.dirname(full), exist_ok=True)
                with open(full, "w", encoding="utf-8") as file:
                    file.write(text)
            return [finding.rule for finding in tidy.scan(root)[0]]

    def test_exemption(self):
        bad = {"libnfsrdma/io/a.cpp": SPDX + "void f() {\n" + long_body(80) + "\n}\n"}
        self.assertEqual(self.scan(bad), ["function"])
        self.assertEqual(self.scan({**bad, "tests/tidy/exempt": "libnfsrdma/io/a.cpp f a table in code\n"}), [])
        self.assertEqual(self.scan({**bad, "tests/tidy/exempt": "libnfsrdma/io/a.cpp g no such thing\n"}),
                         ["function", "exempt"])
        with self.assertRaises(ValueError):
            self.scan({**bad, "tests/tidy/exempt": "libnfsrdma/io/a.cpp f\n"})

    def test_every_folder_is_seen(self):
        bad = SPDX + "int a; \n"
        for path in ["include/nfsrdma/a.hpp", "libnfsrdma/io/deep/a.cpp", "fuse/ops/a.cpp", "tools/serve/a.cpp",
                     "tests/io/a.cpp", "fuzz/a.cpp", "bench/a.cpp", "examples/a.c", "docs/a.md", "README.md",
                     "scripts/a", "cmake/a.cmake", ".ci/run"]:
            self.assertIn("whitespace", self.scan({path: bad}), path)


if __name__ == "__main__":
    unittest.main()
