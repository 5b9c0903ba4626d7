"""docs/regulation.md and the tests name the same rules, and the code it names exists."""

import ast
import re
from pathlib import Path

HOUSE = Path(__file__).parents[2]
PAGE = (HOUSE / "docs/regulation.md").read_text()
ROWS = {m[1]: m[0] for m in re.finditer(r"^\| (R-\d+[a-z]?) \|.*$", PAGE, re.MULTILINE)}


def rules_with_tests() -> set[str]:
    found = set()
    for path in (HOUSE / "tests").rglob("test_*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.rule":
                found |= {arg.value for arg in node.args if isinstance(arg, ast.Constant)}
    return found


def test_every_rule_of_the_page_has_a_test():
    assert len(ROWS) > 20
    assert set(ROWS) - rules_with_tests() == set()


def test_every_rule_with_a_test_is_on_the_page():
    assert rules_with_tests() - set(ROWS) == set()


def test_the_code_the_page_names_exists():
    for rule, row in ROWS.items():
        for name in re.findall(r"`((?:controller/)?[a-z_/]+\.py)`(?: `(\w+)`)?", row):
            path = HOUSE / name[0] if "/" in name[0] else HOUSE / "controller/table" / name[0]
            assert path.is_file(), (rule, name[0])
            if name[1]:
                assert name[1] in path.read_text(), (rule, name)
