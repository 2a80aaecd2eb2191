"""Codes and classes explained: all of them, by every name they have."""

import pytest

from dataproxy import errors
from dataproxy.codes import LOCAL_CODES, SERVER_CODES
from dataproxy.explain import every_topic, explain, render_page


def test_everything_has_an_explanation_a_class_a_hint_and_a_page() -> None:
    topics = list(every_topic())
    assert len(topics) == len(SERVER_CODES) + len(LOCAL_CODES) + len(errors.__all__)
    page = render_page()
    for told in topics:
        assert told.meaning
        assert told.kind
        assert told.hint or told.topic == 0
        anchor = told.page.removeprefix("docs/errors.md#")
        assert f'<a id="{anchor}"></a>' in page
        assert explain(str(told.topic)) == told


@pytest.mark.parametrize("word", ["114", 114, "PUT_EVENT_TO_CHANNEL_FAILURE", "put-event-to-channel-failure", "[114]"])
def test_a_server_code_by_number_and_name(word: object) -> None:
    told = explain(word)  # type: ignore[arg-type]
    assert told is not None
    assert (told.topic, told.kind, told.error) == (114, "retry later", "DeliveryFailed")


@pytest.mark.parametrize(
    ("word", "kind"),
    [
        ("0", "success"),
        ("1", "retry elsewhere"),
        ("2", "node drained"),
        ("115", "retry slowly"),
        ("110", "permanent"),
        ("2147483647", "retry a few times"),
        ("9999", "retry a few times"),
        ("deliveryexpired", "retry later"),
        ("DeliveryFailed", "by its code"),
        ("closed", "permanent"),
    ],
)
def test_classes(word: str, kind: str) -> None:
    told = explain(word)
    assert told is not None
    assert told.kind == kind


@pytest.mark.parametrize("word", ["", "NO_SUCH", "-1", "12x"])
def test_unknown(word: str) -> None:
    assert explain(word) is None
