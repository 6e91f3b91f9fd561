#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reruns the transcript in docs/first-hour.md and compares what is printed.

usage: first_hour.py REPOSITORY BIN_DIR [--update]

In the document's ```console blocks a line "$ COMMAND" is run by one shell that lives through the whole document, and the
lines after it are what it prints. What differs from run to run is written as … (any text within a line); a line of its own
with ⋮ stands for any number of lines. A command ending in " &" is left running. Everything happens in an empty directory
and in namespaces of its own, so that nothing is left behind.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

MARK = "__first_hour_end__"


def blocks(text):
    """[(command, [expected lines], line number)] of all console blocks."""
    steps, inside = [], False
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("```"):
            inside = line == "```console"
        elif inside and line.startswith("$ "):
            steps.append((line[2:], [], number))
        elif inside and steps:
            steps[-1][1].append(line)
    return steps


def matches(expected, got):
    if not expected:
        return not got
    if expected[0] == "⋮":
        return any(matches(expected[1:], got[i:]) for i in range(len(got) + 1))
    if not got:
        return False
    pattern = ".*".join(re.escape(part) for part in expected[0].split("…"))
    return re.fullmatch(pattern, got[0]) is not None and matches(expected[1:], got[1:])


class Shell:
    def __init__(self, bin_dir, directory):
        env = dict(os.environ, PATH=f"{bin_dir}:{os.environ['PATH']}", HOME=directory, LC_ALL="C.UTF-8", TZ="UTC")
        self.process = subprocess.Popen(
            ["unshare", "-mpf", "--kill-child", "--mount-proc", "bash", "--norc"], cwd=directory, env=env, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def run(self, command):
        self.process.stdin.write(f"{command}\necho {MARK}\n")
        self.process.stdin.flush()
        lines = []
        for line in self.process.stdout:
            if line.rstrip("\n").endswith(MARK):
                rest = line.rstrip("\n")[:-len(MARK)]
                return lines + ([rest] if rest else [])
            lines.append(line.rstrip("\n").rstrip())
        raise SystemExit(f"the shell ended in: {command}\n" + "\n".join(lines))

    def close(self):
        self.process.stdin.close()
        self.process.kill()
        self.process.wait()


def main():
    repository, bin_dir = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    document = repository / "docs/first-hour.md"
    steps = blocks(document.read_text())
    failures = 0
    with tempfile.TemporaryDirectory(prefix="first-hour.") as directory:
        shell = Shell(bin_dir, directory)
        for command, expected, number in steps:
            got = shell.run(command)
            ok = matches(expected, got)
            print(f"{'ok  ' if ok else 'FAIL'} line {number}: {command}")
            if not ok or "--update" in sys.argv:
                failures += not ok
                print("\n".join("     | " + line for line in got))
        shell.close()
    print(f"{len(steps)} commands, {failures} differ")
    return 1 if failures or len(steps) < 10 else 0


sys.exit(main())
