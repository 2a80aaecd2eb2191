"""Every error code that a source file names has its place in the table of codes."""

import re
from pathlib import Path

from dataproxy import codes

ROOT = Path(__file__).parents[2]


def test_every_code_that_the_sources_name_is_in_the_table():
    found = set()
    for folder in ("dataproxy", "cython_ext"):
        for path in (ROOT / folder).rglob("*.py*"):
            if path.suffix in (".py", ".pyx"):
                found.update(re.findall(r'\bcode="([A-Z_]+)"', path.read_text()))
    assert len(found) > 15
    assert found - set(codes.LOCAL_CODES) == set(), "give them a place in dataproxy/localcodes"
