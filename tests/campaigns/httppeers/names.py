"""Names and texts that a terminal, a log or a table would obey."""

from __future__ import annotations

__all__ = ["HOSTILE_NAMES", "STORED"]

HOSTILE_NAMES: dict[str, str] = {
    "markup that ends nothing": "[/oops]",
    "markup": "[red]x[/red] [link=http://evil.example]y[/link]",
    "escape": "a\x1b[2J\x1b[31mb",
    "title": "a\x1b]0;evil\x07b",
    "link": "a\x1b]8;;http://evil.example\x1b\\b\x1b]8;;\x1b\\",
    "clipboard": "a\x1b]52;c;ZXZpbA==\x07b",
    "eight bits": "a\x9b31mb\x9d0;evil\x9c",
    "line": "a\nERROR dataproxy: all is lost",
    "return": "good\rbad",
    "backspace": "good\b\b\b\bbad",
    "delete": "a\x7fb",
    "NUL": "a\0b",
    "right to left": "a\u202egnp.exe\u2066b",
    "paragraph": "a\u2028b\u2029c\x85d",
    "nothing to see": "a\u200b\u200d\ufeffb",
    "half a pair": "a\udcffb\ud800",
    "no character": "a\uffff\U000e0041b",
}

#: Those that a request can carry in its names: UTF-8, and none of the signs that end a name in attributes.
STORED = {
    name: text for name, text in HOSTILE_NAMES.items() if name != "half a pair" and "=" not in text and ";;" not in text
}
