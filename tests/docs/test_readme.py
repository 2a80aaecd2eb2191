"""The first thing that people try: the README's first block, as it stands, in a process of its own."""

import os
import re
import subprocess
import sys

from tests.docs.pages import ROOT, blocks


def test_the_first_block_runs_as_it_stands(tmp_path):
    page = ROOT / "README.md"
    if not page.exists():
        return  # a wheel's tests have the pages of docs alone
    first = next(block for block in blocks("python") if block.page == "README.md")
    assert "Hub()" in first.text
    env = {name: value for name, value in os.environ.items() if not name.startswith("DATAPROXY_")}
    env["PYTHONPATH"] = str(ROOT)
    done = subprocess.run(
        [sys.executable, "-c", first.text],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=tmp_path,
        env=env,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    result, report, *records = done.stdout.splitlines()
    assert re.match(r"Delivered\(node='127\.0\.0\.1:\d+', attempts=1, ", result)
    assert report.startswith("Report(accepted=4, delivered=4, failed=0, ")
    assert sorted(records) == [
        "b'u1|click|/home' web",
        "b'u2|click|/cart' None",
        "b'u3|click|/' None",
        "b'u4|click|/' None",
    ]
