"""Makes docs/regulation.md from the table of rules and the tests' markers: `make regulation`."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from controller.table.profiles.casino_night import CASINO_NIGHT
from controller.table.profiles.index_69f import INDEX
from controller.table.profiles.licensed import LICENSED
from controller.table.profiles.rule import NO_FACT, Rule
from controller.table.profiles.rules_table import NUMBERED, RULES

HOUSE = Path(__file__).parents[1]
PAGE = HOUSE / "docs/regulation.md"
BY_ID = {rule.id: rule for rule in RULES}

HEAD = """\
# Regulation: clause, code, test, journal entry

*Made by `make regulation` from `controller/table/profiles/rules_table.py` and the tests' markers: change
those.*

Every sub-paragraph of the texts at hand first, then the rules by number (R-nn: our own numbers, profile
`nj-casino`). What a clause asks is told in our own words; the tag says how well the clause is known:

- **verbatim**: the clause itself was read; **partial**: only its beginning; **analogue**: the same rule was
  read in another jurisdiction; **recalled**: known but not read again; **inferred**: our consequence, no
  clause says it in these words.

A rule with one reading is hard whatever its tag. A switch exists only where the texts have two readings;
the first one is the default. A sub-paragraph that a numbered rule carries shows that rule's code, tests and
facts beside its own. *Journal* names the kinds of facts that show the rule in `cutcard journal show`; a tap
against a rule leaves the fact `refused` with its clause. What is left out stands with its reason: *in
part*, *not built yet*, or *out of scope*.

Tests carry `@pytest.mark.rule("R-nn")`: `pytest -m rule` runs them. `tests/unit/test_regulation_page.py`
fails when this page is stale, when a rule has neither code and test nor a reason, when code named here does
not exist, when a switch has no row with two readings, and when a sub-paragraph has no row. This is not
legal advice.
"""
TAIL = """
The sequences of play are scenarios in `tests/scenarios` by their names, S1 to S10; so are the incidents for
which casinos were fined, INC-1 to INC-11.
"""
INDEX_NOTE = """
The index prints the beginning of each section, mostly without its number: the numbers are told by their
place in the list and by what other sections cite; where even that is not safe, the row is named by its
subject.
"""
NIGHT_NOTE = """
Casino nights are a regime of their own (profile `nj-casino-night`), never merged with 13:69F.
"""


class Test(NamedTuple):
    file: str
    name: str


@cache
def tests() -> dict[str, list[Test]]:
    """The tests of each marked rule, by file and name."""
    found: dict[str, list[Test]] = {}
    for path in sorted((HOUSE / "tests").rglob("test_*.py")):
        tree = ast.parse(path.read_text())
        for node in ast.walk(tree):
            if not isinstance(node, ast.FunctionDef | ast.ClassDef):
                continue
            for rule in dict.fromkeys(r for d in node.decorator_list for r in _marked(d, tree)):
                found.setdefault(rule, []).append(Test(str(path.relative_to(HOUSE)), node.name))
    return found


def _marked(decorator: ast.expr, tree: ast.Module) -> Iterator[str]:
    """The rules a decorator names: plainly, or in the rows of the module's list that it goes through."""
    for call in ast.walk(decorator):
        if not (isinstance(call, ast.Call) and ast.unparse(call.func) == "pytest.mark.rule"):
            continue
        for arg in call.args:
            if isinstance(arg, ast.Constant):
                yield arg.value
            elif isinstance(arg, ast.JoinedStr):
                yield "".join(_text(part, tree) for part in arg.values)
            else:
                yield from _in_lists(decorator, tree)


def _text(part: ast.expr, tree: ast.Module) -> str:
    """A part of an f-string: plain, or a constant of the module or of the one that it came from."""
    if not isinstance(part, ast.FormattedValue):
        assert isinstance(part, ast.Constant)
        return str(part.value)
    name = ast.unparse(part.value)
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name:
            return _text(node.value, tree)
        if isinstance(node, ast.ImportFrom) and name in {alias.name for alias in node.names}:
            path = HOUSE / f"{(node.module or '').replace('.', '/')}.py"
            return _text(part, ast.parse(path.read_text()))
    raise LookupError(name)


def _in_lists(decorator: ast.expr, tree: ast.Module) -> Iterator[str]:
    names = {ast.unparse(n.iter) for n in ast.walk(decorator) if isinstance(n, ast.comprehension)}
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if names & {ast.unparse(t) for t in targets}:
                constants = (n.value for n in ast.walk(node.value) if isinstance(n, ast.Constant))
                yield from (c for c in constants if isinstance(c, str) and re.fullmatch(r"R-\d+[a-z]?", c))


def carried(rule: Rule) -> list[Rule]:
    """The row itself and the rules that carry it."""
    return [rule, *(BY_ID[name] for name in rule.by)]


def code_of(rule: Rule) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for row in carried(rule) for name in row.code))


def journal_of(rule: Rule) -> tuple[str, ...]:
    """A row's own facts are the nearer ones; else those of the rules that carry it."""
    return rule.journal or tuple(dict.fromkeys(kind for row in carried(rule) for kind in row.journal))


def tests_of(rule: Rule, marked: dict[str, list[Test]]) -> list[Test]:
    return list(dict.fromkeys(t for row in carried(rule) for t in marked.get(row.id, ())))


def left_out_of(rule: Rule) -> tuple[str, ...]:
    return tuple(dict.fromkeys(row.left_out for row in carried(rule) if row.left_out))


def module_path(name: str) -> str:
    path = name.partition(":")[0].replace(".", "/")
    return f"{path}/__init__.py" if (HOUSE / path).is_dir() else f"{path}.py"


def _code(rule: Rule) -> str:
    shown = []
    for name in code_of(rule):
        module, _, thing = name.partition(":")
        short = module.rpartition(".")[2]
        shown.append(
            f"[`{short}.{thing}`](../{module_path(name)})"
            if thing
            else f"[`{short}`](../{module_path(name)})"
        )
    return "<br>".join(shown)


def _journal(rule: Rule) -> str:
    return "<br>".join(kind if kind in NO_FACT else f"`{kind}`" for kind in journal_of(rule))


def _test_files(found: list[Test], *, names: bool) -> str:
    files: dict[str, list[str]] = {}
    for test in found:
        files.setdefault(test.file, []).append(test.name)
    cells = []
    for file, functions in files.items():
        link = f"[`{Path(file).name}`](../{file})"
        listed = ", ".join(f"`{name}`" for name in functions)
        cells.append(f"{link}: {listed}" if names else f"{link} {len(functions)}")
    return "<br>".join(cells)


def _asks(rule: Rule, *, reasons: tuple[str, ...]) -> str:
    parts = [rule.asks]
    if rule.switch is not None:
        first, second = rule.switch.readings
        key = f"switch `{rule.switch.key}`" if rule.switch.key else "two readings, no switch in this version"
        parts.append(f"*{key}*: {first} (default), or {second}")
    return "<br>".join([*parts, *(f"*{reason}*" for reason in reasons)])


def _anchor(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def _named(rule: Rule) -> str:
    return f'<a id="{_anchor(rule.id)}"></a>{rule.id}'


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _table(head: list[str], rows: list[list[str]]) -> str:
    return "\n".join([_row(head), _row(["---"] * len(head)), *map(_row, rows), ""])


def clauses(rules: tuple[Rule, ...], marked: dict[str, list[Test]]) -> str:
    """A table of sub-paragraphs; the tests stand by name with the rules that carry them."""
    rows = []
    for rule in rules:
        by = ", ".join(f"[{name}](#{_anchor(name)})" for name in rule.by)
        asks = _asks(rule, reasons=left_out_of(rule))
        found = _test_files(tests_of(rule, marked), names=False)
        rows.append([_named(rule), rule.tag, asks, by, _code(rule), found, _journal(rule)])
    return _table(["clause", "tag", "what it asks", "rule", "code", "tests", "journal"], rows)


def numbered(marked: dict[str, list[Test]]) -> str:
    rows = []
    for rule in NUMBERED:
        found = _test_files(tests_of(rule, marked), names=True)
        asks = _asks(rule, reasons=left_out_of(rule))
        rows.append([_named(rule), rule.clause, rule.tag, asks, _code(rule), found, _journal(rule)])
    return _table(["rule", "clause", "tag", "what it asks", "code", "tests", "journal"], rows)


def page() -> str:
    marked = tests()
    parts = [
        HEAD,
        "## 13:69F-2.2 and 13:69F-2.23\n",
        clauses(LICENSED, marked),
        f"## 13:69F, the index\n{INDEX_NOTE}",
        clauses(INDEX, marked),
        f"## 13:47-20.22, casino nights\n{NIGHT_NOTE}",
        clauses(CASINO_NIGHT, marked),
        "## The rules by number\n",
        numbered(marked),
    ]
    return "\n".join(parts) + TAIL


if __name__ == "__main__":
    PAGE.write_text(page())
