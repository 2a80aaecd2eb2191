"""Errors for attribute values that cannot travel name the option that helps, where one does."""

import pytest

import dataproxy


def test_errors_name_the_way_out():
    with dataproxy.Producer("tcp://127.0.0.1:1", group_id="g") as producer:
        for value in ("a&b", "größe", "a "):
            with pytest.raises(dataproxy.InvalidMessageError, match="attribute_escape='percent' sends any text"):
                producer.send("s", b"x", attrs={"k": value})
        with pytest.raises(dataproxy.InvalidMessageError) as caught:
            producer.send("s", b"x", attrs={"k&": "v"})
        assert "attribute_escape" not in str(caught.value)


@pytest.mark.parametrize("escape", ["none", "percent"])
@pytest.mark.parametrize("message_type", [5, 7])
def test_half_a_surrogate_pair_is_not_answered_by_an_option_that_does_not_help(escape, message_type):
    options = {"message_type": message_type, "attribute_escape": escape}
    with dataproxy.Producer("tcp://127.0.0.1:1", group_id="g", **options) as producer:
        for value in ("\ud800", "a&\udc00"):
            with pytest.raises(dataproxy.InvalidMessageError) as caught:
                producer.send("s", b"x", attrs={"k": value})
            assert "its value holds half of a surrogate pair; give valid text" in str(caught.value)
            assert "attribute_escape" not in str(caught.value)
            assert "message_type" not in str(caught.value)
