# SPDX-License-Identifier: Apache-2.0
"""Just enough of C++ to find function bodies and to look at code without comments and strings."""

import re

_TOKENS = re.compile(
    r"""//[^\n]*
      | /\*.*?\*/
      | \b(?:u8|u|U|L)?R"(?P<tag>[^()\s\\]{0,16})\(.*?\)(?P=tag)"
      | "(?:\\.|[^"\\\n])*"
      | (?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'
    """,
    re.S | re.X,
)


def _blank(match):
    text = match.group(0)
    lines = "\n" * text.count("\n")
    if text[0] == "/":
        return " " + lines
    return '""' + lines if text[-1] == '"' else "' '"


def code_of(source):
    """The source with comments and literals emptied; every line keeps its number. #include lines stay whole."""
    kept = {}

    def keep(match):
        kept[len(kept)] = match.group(0)
        return "\x00%d\x00" % (len(kept) - 1)

    held = re.sub(r'^[ \t]*#[ \t]*include[ \t]*("[^"\n]*"|<[^>\n]*>)', keep, source, flags=re.M)
    bare = _TOKENS.sub(_blank, held)
    return re.sub("\x00(\\d+)\x00", lambda m: kept[int(m.group(1))], bare)


_OPEN, _CLOSE = "([{", ")]}"


def _holds_choice(text):
    """Whether ?:, && or || stands in text outside all brackets; && of a type (`auto&& x`, `T&& x`) is none."""
    return re.search(r"\?|\|\||(?<!\bauto)(?<=[\w)\]\s])&&\s", text) is not None


def conditional_awaits(code):
    """Yields the offset of each co_await that runs under a condition inside an expression: an arm of ?:, or what stands
    to the right of && or || (an expression that is always evaluated, in front of them, does no harm)."""
    for match in re.finditer(r"\bco_await\b", code):
        depth, at, before = 0, match.start(), []
        while at > 0:
            at -= 1
            mark = code[at]
            if mark in _CLOSE:
                if mark == "}" and depth == 0:
                    break
                depth += 1
            elif mark in _OPEN:
                if mark == "{" and depth == 0:
                    break
                depth -= 1
                depth = max(depth, 0)  # out of a call's or an if's parentheses: still the same full expression
            elif depth == 0:
                if mark == ";":
                    break
                before.append(mark)
        if _holds_choice("".join(reversed(before))):
            yield match.start()


_SCOPE = re.compile(r"\b(namespace|class|struct|union|enum|extern)\b")
_NAME = re.compile(r"(operator\s*(?:\(\)|[^\s\w(]+|\w+)|[~\w:]*\w)\s*\(")


def _kind(head, before):
    """What a brace at namespace or class scope opens; `before` is the character in front of it."""
    if before and (before.isalnum() or before in "_>]"):
        return "value"  # a_{1}: the style puts a space before a body
    outside = re.sub(r"\btemplate\s*<[^{;]*?>(?=\s*\w)", "", head)
    parens = outside.find("(")
    scope = _SCOPE.search(outside)
    if scope and (parens < 0 or scope.start() < parens and "alignas" in outside):
        return "scope"
    if re.search(r"=\s*$", outside):
        return "value"
    return "function" if parens >= 0 else "scope"


def functions(code):
    """Yields (name, first line, last line) of each function body; lambdas and local types belong to it."""
    code = re.sub(r"^[ \t]*#(?:[^\n\\]|\\.|\\\n)*", "", code, flags=re.M)
    stack = []
    start = 0  # where the current declaration began
    for match in re.finditer(r"[{};]", code):
        at, mark = match.start(), match.group(0)
        inside = bool(stack) and stack[-1][0] != "scope"
        if mark == "{":
            if inside:
                stack.append(("inner", None))
                continue
            head = code[start:at]
            kind = _kind(head, code[at - 1] if at else "")
            stack.append((kind, head))
            if kind == "scope":
                start = at + 1
        elif mark == "}":
            if not stack:
                continue
            kind, head = stack.pop()
            if kind == "function":
                name = _NAME.search(head)
                begin = start + len(head) - len(head.lstrip())
                yield (name.group(1).replace(" ", "") if name else "?", code.count("\n", 0, begin) + 1,
                       code.count("\n", 0, at) + 1)
            if kind in ("function", "scope"):
                start = at + 1
        elif not inside:
            start = at + 1
