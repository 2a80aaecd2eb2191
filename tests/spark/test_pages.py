"""The code blocks of the pages that use Spark."""

import pytest

from tests.docs.pages import blocks, execute, places_here

BLOCKS = [block for block in blocks("python") if block.needs_spark]


@pytest.mark.parametrize("block", BLOCKS, ids=str)
def test_block(block, spark, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    df = spark.createDataFrame([("UA", "de", 1), ("AA", "fr", 2)], "carrier string, country string, n int")
    with places_here(tmp_path) as places:
        execute(block, places, {"__name__": "page", "spark": spark, "df": df})
