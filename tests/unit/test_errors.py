"""Errors carry facts, survive pickling, and every code has a class, a text and a page."""

import copy
import pickle
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from dataproxy import codes, errors

CLASSES = [getattr(errors, name) for name in errors.__all__]
ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "errors.md"


def make(kind: type[errors.DataProxyError]) -> errors.DataProxyError:
    facts = {"code": "X", "retriable": True, "fatal": True, "hint": "do that", "details": {"size": 7}}
    if kind is errors.UndeliveredError:
        return kind({"failed": 1}, "it failed", **facts)
    return kind("it failed", **facts)


@pytest.mark.parametrize("kind", CLASSES)
@pytest.mark.parametrize("again", [lambda e: pickle.loads(pickle.dumps(e)), copy.copy, copy.deepcopy])
def test_round_trip(kind, again):
    error = make(kind)
    twin = again(error)
    assert type(twin) is kind
    assert vars(twin) == vars(error)
    assert str(twin) == str(error) == "it failed; do that [X]"
    assert dict(twin.details) == {"size": 7}


@pytest.mark.parametrize("kind", CLASSES)
def test_default_code_is_in_the_table(kind):
    assert codes.LOCAL_CODES[kind._default_code].error == kind.__name__


def test_builtin_bases():
    assert issubclass(errors.ConfigError, ValueError)
    assert issubclass(errors.InvalidMessageError, ValueError)
    assert issubclass(errors.DeliveryPending, TimeoutError)
    assert issubclass(errors.StoreError, errors.HubError)
    assert all(issubclass(kind, errors.DataProxyError) for kind in CLASSES)


def test_details_are_read_only():
    with pytest.raises(TypeError):
        errors.DataProxyError("x", details={"a": 1}).details["a"] = 2


def test_report_survives_pickling():
    error = pickle.loads(pickle.dumps(errors.FlushTimeout("late", report={"pending": 3})))
    assert error.report == {"pending": 3}


def test_undelivered_speaks_of_the_counts():
    report = SimpleNamespace(accepted=10, delivered=7, failed=2, expired=1, dropped=0, pending=0, errors={115: 2})
    assert str(errors.UndeliveredError(report)) == (
        "3 of 10 accepted messages were not delivered: 2 failed, 1 expired, by code {115: 2} [UNDELIVERED]"
    )
    assert str(errors.UndeliveredError(None)) == "messages were not delivered: unknown [UNDELIVERED]"


@pytest.mark.parametrize(
    ("code", "text", "expected", "retriable"),
    [
        (
            114,
            "",
            (
                "the proxy refused the message with code 114 (Put event to Channels failure);"
                " the proxy's queue is full; wait [114 PUT_EVENT_TO_CHANNEL_FAILURE]"
            ),
            True,
        ),
        (
            115,
            "Topic not configured for groupId=(g)",
            (
                "the proxy refused the message with code 115 (Topic is null): 'Topic not configured for groupId=(g)';"
                " check that group and stream are approved in the Manager;"
                " a new stream reaches the proxies within a minute"
                " [115 TOPIC_IS_BLANK]"
            ),
            True,
        ),
        (4711, "", "the proxy refused the message with code 4711 [4711 CODE_4711]", True),
        (
            105,
            "",
            (
                "the proxy refused the message with code 105 (Body length is 0);"
                " send a body that is not empty [105 BODY_LENGTH_ZERO]"
            ),
            False,
        ),
    ],
)
def test_from_code(code, text, expected, retriable):
    error = errors.DeliveryFailed.from_code(code, text, {"node": "n"})
    assert str(error) == expected
    assert (error.code, error.retriable, error.fatal) == (code, retriable, False)
    assert error.details["node"] == "n"
    assert error.name == codes.code_name(code)


def test_repr_is_short():
    assert repr(errors.ClosedError("closed")) == "ClosedError('closed', code='CLOSED', retriable=False)"


# Classification of the protocol's specification, written out a second time on purpose.
NODE = {1, 3, 500, 502, 503, 504}
DRAINED = {2}
BACK = {114, 116, 117, 118, 119, 408, 429}
FEW = {codes.UNKNOWN_ERROR, 200, 301, 302, 307, 308, 401, 403, 404, 407}
LATE = {113, 115, 121}
OK = {0, 120}
FRAMING = {94}
SPLIT = {104, 123}
NO = {10, *range(31, 37), 95, 96, *range(100, 104), *range(105, 113), 122, 150, 151, 400, 413}


def test_retry_classes():
    want = {
        **dict.fromkeys(OK, 0),
        **dict.fromkeys(NODE, 1),
        **dict.fromkeys(BACK, 2),
        **dict.fromkeys(LATE, 3),
        **dict.fromkeys(NO, 4),
        **dict.fromkeys(DRAINED, 5),
        **dict.fromkeys(FEW, 6),
        **dict.fromkeys(FRAMING, 7),
        **dict.fromkeys(SPLIT, 8),
    }
    want |= {1400: 4, 1401: 4, 1403: 6, 1415: 6, 1419: 2, 1500: 1, 1501: 1, 1503: 5, 1510: 1, 1599: 6}  # of TubeMQ
    assert want == codes.RETRY_CLASS
    assert {int(member): member.name for member in codes.RetryClass} == dict(
        enumerate(["OK", "NODE", "BACKOFF", "LATE", "NO", "DRAINED", "FEW", "FRAMING", "SPLIT"])
    )
    assert codes.retry_class(77777) is codes.RetryClass.FEW


def test_descriptions():
    for code, entry in codes.SERVER_CODES.items():
        assert entry.code == code
        assert codes.describe(code)[0]
        assert bool(codes.describe(code)[1]) == (code != 0)
    assert codes.describe("EXPIRED")[1]
    assert codes.describe("NEVER") == codes.describe(9999) == ("", "")


def test_every_code_is_on_the_page():
    page = PAGE.read_text()
    for code, entry in codes.SERVER_CODES.items():
        assert f'<a id="{code}"></a><a id="{entry.name}"></a>{code} | `{entry.name}` |' in page
    for code, local in codes.LOCAL_CODES.items():
        assert f'| <a id="{code}"></a>`{code}` | `{local.error}` |' in page
    for kind in CLASSES:
        assert f'<a id="{kind.__name__}"></a>`{kind.__name__}`' in page


def test_every_class_in_the_table_exists_and_every_local_code_has_a_hint():
    names = {kind.__name__ for kind in CLASSES}
    for entry in codes.LOCAL_CODES.values():
        assert entry.error in names
        assert entry.text
        assert entry.hint


def test_retriable_is_what_the_page_says():
    rows = re.findall(r"</a>`([A-Z_]+)` \| `(\w+)` \| [^|]+ \| (permanent|retry later) \|", PAGE.read_text())
    assert {code for code, _, _ in rows} == set(codes.LOCAL_CODES)
    for code, name, word in rows:
        kind = getattr(errors, name)
        error = kind({"failed": 1} if kind is errors.UndeliveredError else "x", code=code)
        assert error.retriable == (word == "retry later"), code
