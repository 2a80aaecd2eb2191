"""No module of the Python packages imports another one that imports it, not even inside a function."""

from pathlib import Path

import pytest

from tests.arch.cycles import import_cycles

ROOT = Path(__file__).parents[2]


def test_no_module_imports_one_that_imports_it():
    assert import_cycles(ROOT) == []


def plant(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = root / "dataproxy" / name
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
