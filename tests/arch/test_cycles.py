"""No module imports another one that imports it, be it Python (not even inside a function) or compiled."""

from pathlib import Path

import pytest

from tests.arch.cycles import cimport_cycles, import_cycles

ROOT = Path(__file__).parents[2]


def test_no_module_imports_one_that_imports_it():
    assert import_cycles(ROOT) == []


def test_no_compiled_module_cimports_one_that_cimports_it():
    assert cimport_cycles(ROOT) == []


def test_a_cycle_of_headers_is_found(tmp_path):
    start = "from dataproxy._core.pack."
    files = {"a.pxd": f"{start}b cimport B", "b.pyx": f"{start}c cimport (\n    C,\n)", "c.pxd": f"{start}a cimport A"}
    plant(tmp_path, {f"_core/pack/{name}": text for name, text in files.items()}, "cython_ext/dataproxy")
    names = [f"dataproxy._core.pack.{name}" for name in "abca"]
    assert cimport_cycles(tmp_path) == [" -> ".join(names)]


def plant(root: Path, files: dict[str, str], package: str = "dataproxy") -> None:
    for name, text in files.items():
        path = root / package / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.mark.parametrize(
    ("files", "cycle"),
    [
        (
            {"hub/a.py": "from dataproxy.hub.b import x", "hub/b.py": "from dataproxy.hub.a import y"},
            "dataproxy.hub.a -> dataproxy.hub.b -> dataproxy.hub.a",
        ),
        (
            {"hub/a.py": "def f():\n    import dataproxy.hub.b", "hub/b.py": "from dataproxy.hub import a"},
            "dataproxy.hub.a -> dataproxy.hub.b -> dataproxy.hub.a",
        ),
        (
            {
                "hub/a.py": "import dataproxy.hub.b",
                "hub/b.py": "def f():\n    from dataproxy.hub.c import x",
                "hub/c.py": "class C:\n    def f(self):\n        from dataproxy.hub.a import x",
            },
            "dataproxy.hub.a -> dataproxy.hub.b -> dataproxy.hub.c -> dataproxy.hub.a",
        ),
        (
            {"hub/__init__.py": "from dataproxy.cli import x", "hub/a.py": "", "cli.py": "import dataproxy.hub.a"},
            "dataproxy.cli -> dataproxy.hub -> dataproxy.cli",
        ),
    ],
)
def test_a_cycle_is_found(tmp_path, files, cycle):
    plant(tmp_path, files)
    assert import_cycles(tmp_path) == [cycle]


@pytest.mark.parametrize(
    "files",
    [
        {"hub/a.py": "from dataproxy.hub.b import x", "hub/b.py": "if TYPE_CHECKING:\n    import dataproxy.hub.a"},
        {
            "hub/__init__.py": "from dataproxy.hub.a import x",
            "hub/a.py": "from dataproxy.hub.b import x",
            "hub/b.py": "",
        },
        {"hub/a.py": "import dataproxy.hub.c", "hub/b.py": "import dataproxy.hub.c", "hub/c.py": "import json"},
    ],
)
def test_what_is_no_cycle_is_accepted(tmp_path, files):
    plant(tmp_path, files)
    assert import_cycles(tmp_path) == []
