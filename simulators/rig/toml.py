"""A table.toml as text, from what the standard library reads of one."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any


def to_toml(tree: Mapping[str, Any], prefix: str = "") -> str:
    """Sections, lists of sections, and plain values."""
    lines = [f"{_key(key)} = {_value(value)}" for key, value in tree.items() if not _is_section(value)]
    for key, value in tree.items():
        name = f"{prefix}{_key(key)}"
        if isinstance(value, Mapping):
            lines += ["", f"[{name}]", to_toml(value, f"{name}.")]
        elif _is_section(value):
            lines += [line for item in value for line in ("", f"[[{name}]]", to_toml(item, f"{name}."))]
    return "\n".join(lines)


def _is_section(value: Any) -> bool:
    if isinstance(value, list):
        return bool(value) and all(isinstance(item, Mapping) for item in value)
    return isinstance(value, Mapping)


def _key(key: str) -> str:
    return key if re.fullmatch("[A-Za-z0-9_-]+", key) else json.dumps(key)


def _value(value: Any) -> str:
    """On one line; JSON's texts are TOML's basic strings."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_key(key)} = {_value(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_value, value)) + "]"
    return json.dumps(value)
