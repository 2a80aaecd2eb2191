"""What Spark finds by itself: one module for each format, and nothing else is loaded with it."""

import json
import subprocess
import sys
from pathlib import Path

import pyspark_dataproxy

PACKAGES = Path(pyspark_dataproxy.__file__).parents[1]

#: Does what Spark's look-up does, and tells what it found and what was loaded.
LOOK_UP = """
import importlib, json, pkgutil, sys
sys.path.insert(0, sys.argv[1])
found = [one.name for one in pkgutil.iter_modules([sys.argv[1]]) if one.name.startswith("pyspark_")]
names = {importlib.import_module(name).DefaultSource.name(): name for name in found}
print(json.dumps([names, sorted(name for name in sys.modules if name.split(".")[0] in ("dataproxy", "google"))]))
"""


def test_both_formats_are_found_and_load_nothing():
    done = subprocess.run(
        [sys.executable, "-c", LOOK_UP, str(PACKAGES)], capture_output=True, text=True, check=True, timeout=120
    )
    names, loaded = json.loads(done.stdout)
    assert names == {"dataproxy": "pyspark_dataproxy", "tubemq": "pyspark_tubemq"}
    assert loaded == []
