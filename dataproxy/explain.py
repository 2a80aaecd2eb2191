"""Explanations of codes and error classes: the look-up of ``dataproxy explain``, and the page docs/errors.md."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from dataproxy import errors
from dataproxy.codes import CLASS_TEXT, LOCAL_CODES, SERVER_CODES, UNKNOWN_ERROR

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Explanation", "every_topic", "explain", "render_page"]

PAGE: Final = "docs/errors.md"
_LONGEST_NUMBER: Final = 20
_HIGHEST_CODE: Final = 2**31 - 1  # a reply carries it in 32 bits, with a sign
_CLASSES: Final[dict[str, type[errors.DataProxyError]]] = {name: getattr(errors, name) for name in errors.__all__}


class Explanation(NamedTuple):
    """Hold the explanation of one code or error class.

    ``topic`` is the number, word or class name; ``name`` its word; ``error`` the class that carries it; ``kind``
    what a retry can do; ``meaning``, ``action`` (of the producer) and ``hint`` are sentences; ``page`` is where the
    documentation has it.
    """

    topic: int | str
    name: str
    error: str
    kind: str
    meaning: str
    action: str
    hint: str
    page: str


def _of_server_code(code: int) -> Explanation:
    entry = SERVER_CODES[code]
    kind, action = CLASS_TEXT[entry.retry]
    error = "-" if kind == "success" else "DeliveryFailed"
    return Explanation(code, entry.name, error, kind, f"the proxy says: {entry.text}", action, entry.hint, _page(code))


def _of_local_code(code: str) -> Explanation:
    entry = LOCAL_CODES[code]
    action = "The same call may succeed later." if entry.retriable else "The same call fails again."
    return Explanation(code, code, entry.error, entry.kind, entry.text, action, entry.hint, _page(code))


def _of_class(name: str) -> Explanation:
    kind = _CLASSES[name]
    bases = ", ".join(base.__name__ for base in kind.__bases__)
    own = [code for code, entry in LOCAL_CODES.items() if entry.error == name]
    if kind is errors.DeliveryFailed:
        own.append("and every number that a proxy answers")
    doc = (
        (kind.__doc__ or "")
        .strip()
        .split("\n")[0]
        .removeprefix("Report ")
        .removeprefix("that ")
        .removesuffix(".")
        .replace("``", "`")
    )
    retry = "retry later" if kind._default_retriable else "permanent"
    if kind in (errors.DataProxyError, errors.DeliveryError, errors.DeliveryFailed):
        retry = "by its code"
    return Explanation(name, name, bases, retry, doc, "", f"its codes: {', '.join(own)}", _page(name))


def _page(topic: int | str) -> str:
    return f"{PAGE}#{topic}"


def every_topic() -> Iterator[Explanation]:
    """Yield all explanations: numbers, then words, then classes."""
    yield from (_of_server_code(code) for code in SERVER_CODES)
    yield from (_of_local_code(code) for code in LOCAL_CODES)
    yield from (_of_class(name) for name in _CLASSES)


def explain(word: int | str) -> Explanation | None:
    """Return the explanation of a number, a code's name or an error class; None for an unknown word.

    Numbers that the protocol does not define are explained as the producer treats them.
    """
    text = str(word).strip().strip("[]")
    if text.lstrip("-").isdecimal() and len(text) <= _LONGEST_NUMBER:
        number = int(text)
        if number in SERVER_CODES:
            return _of_server_code(number)
        meaning = f"the protocol defines no code {number}; the producer treats it like {UNKNOWN_ERROR}"
        same = _of_server_code(UNKNOWN_ERROR)
        if not 0 <= number <= _HIGHEST_CODE:
            return None
        return same._replace(topic=number, name=f"CODE_{number}", meaning=meaning)
    upper = text.upper().replace("-", "_")
    for code, entry in SERVER_CODES.items():
        if entry.name == upper:
            return _of_server_code(code)
    if upper in LOCAL_CODES:
        return _of_local_code(upper)
    return next((_of_class(name) for name in _CLASSES if name.lower() == text.lower()), None)


# --- the page

_HEAD: Final = """\
<!-- Written by `python -m dataproxy.config.render` from dataproxy/codes.py and dataproxy/errors.py. Do not edit. -->

# Errors

Every error that the package raises is a `dataproxy.DataProxyError`. It carries its facts as data, so that code
decides by attributes and never by the text:

| attribute | meaning |
|---|---|
| `code` | a word for what the client finds itself, the server's number for an answer of a proxy |
| `name` | the code as a word in both cases |
| `retriable` | the same call may succeed later |
| `fatal` | the object is of no more use; make a new one |
| `hint` | what to do, for people |
| `details` | the values involved, read-only |

A `DeliveryError` has these `details`: `attempts`, `cause` (the last answer's number, or `ACK_TIMEOUT`,
`CONNECTION_LOST`, ...), `maybe_delivered` (an attempt was written and never answered: the message may have arrived),
`last_code` and `last_reason` (what a proxy said of it last, whatever ended it; None and empty if none said anything),
`node`, `latency`, `sequence`, `position` and `id`.

Errors can be pickled and copied without loss, so they pass through process pools and Spark tasks.

`dataproxy explain 114`, `dataproxy explain BUFFER_FULL` or `dataproxy explain DeliveryExpired` prints what stands here.

## Classes

"""


def _tree(kind: type[errors.DataProxyError], lead: str, out: list[str]) -> None:
    children = [child for child in _CLASSES.values() if child.__bases__[0] is kind]
    for child in children:
        last = child is children[-1]
        also = ", ".join(base.__name__ for base in child.__bases__[1:])
        out.append(f"{lead}{'└─' if last else '├─'} {child.__name__}{f'  (also {also})' if also else ''}")
        _tree(child, lead + ("   " if last else "│  "), out)


def _class_part() -> Iterator[str]:
    tree = ["DataProxyError"]
    _tree(errors.DataProxyError, "", tree)
    yield "```\n" + "\n".join(tree) + "\n```\n\n"
    yield "| class | meaning | codes |\n|---|---|---|\n"
    for name in _CLASSES:
        told = _of_class(name)
        codes = [f"[`{code}`](#{code})" for code, entry in LOCAL_CODES.items() if entry.error == name]
        yield f'| <a id="{name}"></a>`{name}` | {told.meaning} | {", ".join(codes)} |\n'


def _local_part() -> Iterator[str]:
    yield "\n## Codes of the client\n\n"
    yield "| code | class | meaning | a retry | what to do |\n|---|---|---|---|---|\n"
    for code, entry in LOCAL_CODES.items():
        yield f'| <a id="{code}"></a>`{code}` | `{entry.error}` | {entry.text} | {entry.kind} | {entry.hint} |\n'


def _server_part() -> Iterator[str]:
    yield "\n## Codes of the proxies\n\nWhat the producer does with a frame that was answered so:\n\n"
    for kind, action in CLASS_TEXT.values():
        yield f"- **{kind}**: {action}\n"
    yield (
        "\nAll retries end with `delivery_timeout` and are bounded by `retry_budget`. Codes that are not in the table"
        f" are treated like {UNKNOWN_ERROR}.\n\n"
    )
    yield "| code | name | the proxy says | the producer | what to do |\n|---|---|---|---|---|\n"
    for code, entry in SERVER_CODES.items():
        kind = CLASS_TEXT[entry.retry][0]
        yield (
            f'| <a id="{code}"></a><a id="{entry.name}"></a>{code} | `{entry.name}` | {entry.text} | {kind} |'
            f" {entry.hint or '-'} |\n"
        )


def render_page() -> str:
    """Return the text of docs/errors.md."""
    return "".join([_HEAD, *_class_part(), *_local_part(), *_server_part()])
