# SPDX-License-Identifier: Apache-2.0
"""What needs no server: usage, versions, the option list, the manual page."""

import os
import re
import shutil
import subprocess
import unittest

import harness
from harness import run

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MANUAL = os.path.join(ROOT, "docs", "man", "nfsrdma.1.scd")
COMMANDS = ("ls", "stat", "cat", "get", "put", "mkdir", "rm", "mv", "ln", "ping", "info", "options", "version")


class Usage(unittest.TestCase):
    def wrong(self, *arguments):
        outcome = run(*arguments)
        self.assertEqual(outcome.code, 2, outcome.err)
        self.assertEqual(outcome.out, b"")
        self.assertEqual(len(outcome.error_lines), 2, outcome.err)
        self.assertRegex(outcome.error_lines[1], r"^try 'nfsrdma .*--help'$")
        return outcome.error_lines[0]

    def test_no_command(self):
        self.assertEqual(self.wrong(), "nfsrdma: a command is missing")

    def test_unknown_command(self):
        self.assertEqual(self.wrong("frobnicate"), 'nfsrdma: there is no command "frobnicate"')

    def test_missing_operands(self):
        for command in COMMANDS:
            if command in ("options", "version"):
                continue
            self.assertIn("required", self.wrong(command))

    def test_too_many_operands(self):
        self.wrong("get", "nfsrdma://h/a", "b", "c")
        self.wrong("version", "x")

    def test_unknown_flag(self):
        self.assertIn("--frob", self.wrong("ls", "--frob", "nfsrdma://h/"))

    def test_wrong_urls(self):
        for url in ("http://h/", "h:/x", "nfsrdma://", "nfsrdma://h:0/", "nfsrdma://h/%zz", "nfsrdma://h/?nconnect=17",
                    "nfsrdma://h/?proto=tcp", "nfsrdma://h/?vers=3", "nfsrdma://h/?frob=1", "nfsrdma://[::1/"):
            for command in ("ls", "ping", "info", "get"):
                self.wrong(command, url)

    def test_wrong_option_list(self):
        self.assertIn("1 to 16", self.wrong("ls", "-o", "nconnect=17", "nfsrdma://h/"))

    def test_help(self):
        for arguments in [("--help",)] + [(command, "--help") for command in COMMANDS]:
            outcome = run(*arguments)
            self.assertEqual(outcome.code, 0)
            self.assertEqual(outcome.err, "")
            self.assertIn("nfsrdma", outcome.text)


class Version(unittest.TestCase):
    def test_all_forms(self):
        text = run("version").text
        self.assertRegex(text, r"^nfsrdma \d+\.\d+\.\d+( \([0-9a-f]+(-dirty)?\))?\n$")
        self.assertEqual(run("--version").text, text)
        found = run("version", "--json").json()
        self.assertTrue(text.startswith("nfsrdma " + found["version"]))


class OptionList(unittest.TestCase):
    def test_forms_agree(self):
        rows = run("options", "--json").json()
        self.assertGreater(len(rows), 100)
        text = run("options").text
        self.assertEqual(len(text.splitlines()), len(rows))
        names = [line.rstrip("=") for line in run("options", "--names").text.splitlines()]
        for row in rows:
            if row["verdict"] != "refused" and not row["name"].endswith("*"):
                self.assertIn(row["name"], names)


class Manual(unittest.TestCase):
    def test_holds_the_option_table_as_it_is(self):
        with open(MANUAL, encoding="utf-8") as file:
            manual = file.read()
        listed = run("options", "--manual").text
        self.assertIn(listed, manual, "run: nfsrdma options --manual, and put it into docs/man/nfsrdma.1.scd")

    def test_of_the_mount_holds_its_flags_and_no_others(self):
        listed = subprocess.run([harness.program("nfsrdma-fuse"), "--help"], capture_output=True, check=True).stdout
        flags = listed.decode().partition("\nflags:\n")[2].partition("\noptions:\n")[0]
        heads = [re.split(r" {2,}", line.strip())[0] for line in flags.splitlines()]
        program = set(re.findall(r"(?<![\w-])(--?[A-Za-z][a-z-]*)", "\n".join(heads)))
        with open(os.path.join(ROOT, "docs", "man", "nfsrdma-fuse.8.scd"), encoding="utf-8") as file:
            section = re.search(r"(?ms)^# FLAGS$(.*?)^# ", file.read()).group(1)
        manual = set(re.findall(r"\*(--?[A-Za-z-]+)\*", "\n".join(
            line for line in section.splitlines() if line.startswith("*-"))))
        self.assertGreater(len(program), 12)
        self.assertEqual(manual, program)

    def test_names_every_command(self):
        with open(MANUAL, encoding="utf-8") as file:
            manual = file.read()
        for command in COMMANDS:
            self.assertRegex(manual, r"(?m)^\*%s\*" % command)

    def test_is_a_manual_page(self):
        if not shutil.which("scdoc") or not shutil.which("mandoc"):
            self.skipTest("scdoc and mandoc are not installed")
        with open(MANUAL, "rb") as file:
            page = subprocess.run(["scdoc"], stdin=file, capture_output=True, check=True).stdout
        lint = subprocess.run(["mandoc", "-T", "lint", "-W", "warning"], input=page, capture_output=True, check=False)
        worse = [line for line in lint.stdout.decode().splitlines() if re.search(r"ERROR|UNSUPP", line)]
        self.assertEqual(worse, [])

    def test_completion_offers_commands_and_options(self):
        script = os.path.join(ROOT, "tools", "nfsrdma", "nfsrdma.bash")
        for words, expected in ((["nfsrdma", "ve"], "version"), (["nfsrdma", "ls", "--js"], "--json"),
                                (["nfsrdma", "ls", "-o", "ncon"], "nconnect=")):
            program = "PATH=%s:$PATH; . %s; COMP_WORDS=(%s); COMP_CWORD=%d; _nfsrdma; printf '%%s\\n' \"${COMPREPLY[@]}\"" % (
                harness.BIN, script, " ".join(words), len(words) - 1)
            offered = subprocess.run(["bash", "-c", program], capture_output=True, check=True).stdout.decode().split()
            self.assertIn(expected, offered)


if __name__ == "__main__":
    harness.main()
