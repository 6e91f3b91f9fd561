#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each file and function that docs/architecture.md names exists; the README keeps to its length.

usage: named_code.py REPOSITORY
"""
import pathlib
import re
import sys

README_WORDS_MAX = 900
ROW = re.compile(r"^\|[^|]*\|\s*`([\w./-]+\.(?:cpp|hpp))` `([\w:]+)`\s*\|$")


def defines(text, symbol):
    """Whether `Class::function`, `function` or `Class` is defined or declared in the text."""
    last = symbol.split("::")[-1]
    owner = symbol.split("::")[-2] if "::" in symbol else None
    if owner and re.search(rf"\b{owner}::{last}\s*\(", text):
        return True
    return re.search(rf"\b(class|struct)\s+{last}\b|\b{last}\s*\(", text) is not None and (
        owner is None or re.search(rf"\b{owner}\b", text) is not None)


def main():
    repository = pathlib.Path(sys.argv[1])
    problems, rows = [], 0
    for line in (repository / "docs/architecture.md").read_text().splitlines():
        row = ROW.match(line)
        if not row:
            continue
        rows += 1
        path, symbol = repository / row[1], row[2]
        if not path.is_file():
            problems.append(f"docs/architecture.md names {row[1]}, which does not exist")
        elif not defines(path.read_text(), symbol):
            problems.append(f"docs/architecture.md names {symbol} in {row[1]}, which is not there")
    if rows < 20:
        problems.append(f"docs/architecture.md: only {rows} steps found; has the table's form changed?")
    words = len((repository / "README.md").read_text().split())
    if words > README_WORDS_MAX:
        problems.append(f"README.md has {words} words, at most {README_WORDS_MAX} are wanted")
    for problem in problems:
        print(problem)
    print(f"{rows} steps checked, {len(problems)} problems")
    return 1 if problems else 0


sys.exit(main())
