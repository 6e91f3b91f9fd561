#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Scans the tree for what the rules in house.py forbid. usage: tidy.py [ROOT]

Prints one line per finding, `file:line: rule: text`, and exits 1 when there is one. A line of tests/tidy/exempt,
`file what reason`, allows one: `what` is the function's name for a long function, else the rule's name.
"""

import ast
import os
import re
import sys
from collections import namedtuple

import cpp
import house

Finding = namedtuple("Finding", "file line rule what text")

TOPS = ("include", "libnfsrdma", "fuse", "tools", "tests", "fuzz", "bench", "examples", "docs", "scripts", "cmake",
        ".ci")
CPP = (".cpp", ".hpp", ".h", ".c", ".cc")
DATA = ("LICENSE", ".json", ".md", ".txt", "exempt", ".in", ".dict", ".conf", ".service")
# A call of the C library's function, not a method or coroutine of the same name.
CALL = r"(?:(?:\bstd|)::\s*|(?:^|[;{}()?:,&|!=]|\b(?:return|else|do|co_return))\s*)\b(%s)\s*\("
SLEEP = re.compile(CALL % "sleep" + r"[^,()]*\)|\b(usleep|nanosleep|clock_nanosleep|this_thread::sleep_\w+)\s*\(", re.M)
EXIT = re.compile(CALL % "_exit|_Exit|quick_exit|exit|abort|terminate", re.M)


def line_of(text, at):
    return text.count("\n", 0, at) + 1


def home_of(path):
    """(kind, name): ("room", "rpc"), ("folder", "fuse"), ("library", "") for files of no room, or None."""
    parts = path.split("/")
    if parts[0] == "libnfsrdma":
        return ("room", parts[1]) if len(parts) > 2 else ("library", "")
    for folder in house.FOLDERS:
        if path.startswith(folder + "/"):
            return ("folder", folder)
    return None


def public_include_fault(kind, name, path, target):
    stem = os.path.splitext(target[len("nfsrdma/"):])[0]
    if stem not in house.HANDLE_HEADERS:
        return None
    if kind == "room" and name not in ("client", "capi", "server"):
        return "room %s may include only the value headers of the public API, not %s" % (name, target)
    own = os.path.splitext(os.path.basename(path))[0]
    if name == "include" and own not in house.HANDLE_HEADERS:
        return "%s is a value header and may not include %s" % (path, target)
    return None


def include_fault(path, target):
    """Why `path` may not include "target", or None."""
    home = home_of(path)
    if home is None:
        return None
    kind, name = home
    first = target.split("/")[0]
    if first == "nfsrdma":
        return public_include_fault(kind, name, path, target)
    if kind == "library":
        return None if target in house.LIBRARY_ROOT_INCLUDES else "libnfsrdma/ itself may not include " + target
    allowed = house.ROOMS.get(name) if kind == "room" else house.FOLDERS[name]
    if allowed is None:
        return "room %s has no row in tests/tidy/house.py" % name
    if first not in house.ROOMS or "/" not in target:
        if kind == "room" or name == "include":
            return "%s is not written from the roots libnfsrdma/ and include/" % target
        return None
    if allowed == "*" or first == name or first in allowed.split():
        return None
    if target in house.HEADERS.get(name, ()):
        return None
    return "%s %s may not include %s" % (kind, name, target)


def check_includes(path, source):
    for match in re.finditer(r'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', source, re.M):
        fault = include_fault(path, match.group(1))
        if fault:
            yield Finding(path, line_of(source, match.start()), "include", "include", fault)
    pattern, allowed = house.SLOW_HEADERS
    if path.endswith((".hpp", ".h")) and path not in allowed:
        for match in re.finditer(r"^[ \t]*#[ \t]*include[ \t]*" + pattern, source, re.M):
            yield Finding(path, line_of(source, match.start()), "slow-header", "slow-header",
                          "a header that compiles slowly belongs inside one .cpp")


def too_long(path, name, first, last):
    length = last - first + 1
    if length > house.FUNCTION_LINES_MAX:
        yield Finding(path, first, "function", name,
                      "%s has %d lines, more than %d" % (name, length, house.FUNCTION_LINES_MAX))


def check_cpp(path, source):
    code = cpp.code_of(source)
    yield from check_includes(path, source)
    for name, first, last in cpp.functions(code):
        yield from too_long(path, name, first, last)
    for at in cpp.conditional_awaits(code):
        yield Finding(path, line_of(code, at), "await", "await",
                      "co_await inside ?:, && or ||: g++ 12 destroys its result twice; use a statement of its own")
    for match in SLEEP.finditer(code):
        yield Finding(path, line_of(code, match.end()), "sleep", "sleep", "wait for a condition or a timer instead")
    if path.startswith(("libnfsrdma/", "include/")):
        for match in EXIT.finditer(code):
            yield Finding(path, line_of(code, match.start(1)), "exit", "exit",
                          "the library never ends the process: %s" % match.group(1))
    for what, pattern, allowed in house.NAMES:
        if path.startswith(allowed):
            continue
        for match in re.finditer(pattern, code):
            yield Finding(path, line_of(code, match.start()), "name", "name",
                          "%s belongs to another room: %s" % (what, match.group(0)))


def check_python(path, source):
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield from too_long(path, node.name, node.lineno, node.end_lineno)


def check_shell(path, source):
    for match in re.finditer(r"^(\w+)\(\) \{\n.*?^\}", source, re.M | re.S):
        first = line_of(source, match.start())
        yield from too_long(path, match.group(1), first, first + match.group(0).count("\n"))


def check_text(path, source):
    lines = source.split("\n")
    for number, line in enumerate(lines, 1):
        if line != line.rstrip():
            yield Finding(path, number, "whitespace", "whitespace", "trailing whitespace")
        if path == "LICENSE":
            continue
        for pattern in house.WORDS:
            match = re.search(pattern, line, re.I if pattern.islower() else 0)
            if match:
                yield Finding(path, number, "words", "words", "says how or where the work was done: " + match.group(0))
    if source and not source.endswith("\n"):
        yield Finding(path, len(lines), "whitespace", "whitespace", "no newline at the end of the file")


def check_file(path, source):
    """All findings of one file; path is relative to the root, with slashes."""
    findings = list(check_text(path, source))
    name = os.path.basename(path)
    shebang = source.split("\n", 1)[0] if source.startswith("#!") else ""
    if name != "CMakeLists.txt" and (name.endswith(DATA) or name.startswith(".") or not (shebang or "." in name)):
        return findings
    if not re.search(r"SPDX-License-Identifier: Apache-2\.0", "\n".join(source.split("\n")[:3])):
        findings.append(Finding(path, 1, "spdx", "spdx", "no SPDX-License-Identifier: Apache-2.0 in its first lines"))
    length = source.count("\n")
    if length > house.FILE_LINES_MAX:
        findings.append(Finding(path, length, "file", "file",
                                "%d lines, more than %d: one job per file" % (length, house.FILE_LINES_MAX)))
    if name.endswith(CPP):
        findings += check_cpp(path, source)
    elif name.endswith(".py") or "python" in shebang:
        findings += check_python(path, source)
    elif name.endswith(".sh") or shebang.endswith("sh"):
        findings += check_shell(path, source)
    return findings


def files_under(root):
    for entry in sorted(os.listdir(root)):
        full = os.path.join(root, entry)
        if os.path.isfile(full) and entry not in (".gitignore", ".git"):
            yield entry
    for top in TOPS:
        for folder, folders, names in os.walk(os.path.join(root, top)):
            folders[:] = sorted(f for f in folders if f not in ("__pycache__", "corpus"))
            for name in sorted(names):
                yield os.path.relpath(os.path.join(folder, name), root).replace(os.sep, "/")


def read_exempt(root):
    """{(file, what): line number}; raises ValueError on a line without a reason."""
    exempt = {}
    path = os.path.join(root, "tests/tidy/exempt")
    if not os.path.exists(path):
        return exempt
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if line.startswith("#") or not line.strip():
                continue
            words = line.split(None, 2)
            if len(words) < 3:
                raise ValueError("tests/tidy/exempt:%d: want: file, function or rule, reason" % number)
            exempt[(words[0], words[1])] = number
    return exempt


def scan(root):
    """Returns (findings not exempted, number of files seen)."""
    exempt = read_exempt(root)
    used, findings, seen = set(), [], 0
    for path in files_under(root):
        try:
            with open(os.path.join(root, path), encoding="utf-8") as file:
                source = file.read()
        except UnicodeDecodeError:
            continue  # captures and other binary data
        seen += 1
        for finding in check_file(path, source):
            key = (finding.file, finding.what)
            if key in exempt:
                used.add(key)
            else:
                findings.append(finding)
    for key in sorted(set(exempt) - used):
        findings.append(Finding("tests/tidy/exempt", exempt[key], "exempt", "exempt",
                                "%s %s needs no exemption any more" % key))
    return findings, seen


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.dirname(here))
    try:
        findings, seen = scan(root)
    except ValueError as fault:
        print(fault)
        return 1
    for finding in findings:
        print("%s:%d: %s: %s" % (finding.file, finding.line, finding.rule, finding.text))
    if seen < 10:
        print("only %d files found under %s: is this the tree?" % (seen, root))
        return 1
    print("%d files, %d findings" % (seen, len(findings)))
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
