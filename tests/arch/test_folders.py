"""A folder of Python modules fits on a page, says what lives in it, and sees its neighbours one way."""

from pathlib import Path

import pytest

from tests.arch.folders import crowded_folders, folder_cycles, headless_folders, unnamed_modules

ROOT = Path(__file__).parents[2]
HEAD = '"""Serve.\n\nWhat lives here.  `a`: all.\n\nThreads.  Any.\n\nWhat it may use.  Nothing.\n"""\n'


@pytest.mark.parametrize("rule", [crowded_folders, folder_cycles, headless_folders, unnamed_modules])
def test_the_packages_keep_the_rule(rule):
    assert rule(ROOT) == []


def plant(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = root / "dataproxy" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.mark.parametrize(("count", "found"), [(14, []), (15, ["dataproxy/hub: 15 modules"])])
def test_a_crowded_folder_is_found(tmp_path, count, found):
    plant(tmp_path, {"hub/__init__.py": "", **{f"hub/m{number}.py": "" for number in range(count)}})
    assert crowded_folders(tmp_path) == found


@pytest.mark.parametrize(
    ("head", "missing"),
    [
        (HEAD, []),
        (HEAD.replace("`a`", "It"), ["'a'"]),
        (HEAD.replace("Threads.", ""), ["'Threads.'"]),
        (HEAD.replace("What it may use.", ""), ["'What it may use.'"]),
        ("", ["'What lives here.'", "'Threads.'", "'What it may use.'", "'a'"]),
    ],
)
def test_what_a_head_does_not_say_is_found(tmp_path, head, missing):
    plant(tmp_path, {"hub/__init__.py": "", "hub/web/__init__.py": head, "hub/web/a.py": ""})
    assert headless_folders(tmp_path) == [f"dataproxy/hub/web: its head says nothing of {words}" for words in missing]


CORE_FILES = {
    "docs/internals.md": "`codes`",
    "dataproxy/__init__.py": "",
    "dataproxy/codes.py": "",
    "dataproxy/cli/__init__.py": '"""`tail`"""',
    "dataproxy/cli/tail.py": "",
    "cython_ext/dataproxy/_core/plat/epoll.pxd": "",
    "cython_ext/dataproxy/_core/net/__init__.pxd": '"""``poller``"""',
    "cython_ext/dataproxy/_core/net/poller.pyx": "",
    "cython_ext/dataproxy/_core/server/README.md": "`loop`",
    "cython_ext/dataproxy/_core/server/loop.pyx": "",
    "cython_ext/dataproxy/_core/wire/__init__.pxd": '"""``api``, ``decode``"""',
    "cython_ext/dataproxy/_core/wire/api.pxd": "",
    "cython_ext/dataproxy/_core/wire/inlong/decode.pyx": "",
}


@pytest.mark.parametrize(
    "added",
    [
        None,
        "dataproxy/shown.py",
        "dataproxy/cli/hexdump.py",
        "cython_ext/dataproxy/_core/net/recvbuf.pxd",
        "cython_ext/dataproxy/_core/server/session.pyx",
        "cython_ext/dataproxy/_core/wire/inlong/encode.pyx",
    ],
)
def test_a_module_that_no_page_names_is_found(tmp_path, added):
    for name, text in {**CORE_FILES, **({added: ""} if added else {})}.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    parts = Path(added) if added else None
    expected = [f"{parts.parent}: its page does not name {parts.stem!r}"] if parts else []
    assert unnamed_modules(tmp_path) == expected


def test_folders_that_import_one_another_are_found(tmp_path):
    files = {
        "hub/web/a.py": "from dataproxy.hub.faults.b import x",
        "hub/web/c.py": "",
        "hub/faults/b.py": "def f():\n    from dataproxy.hub.web.c import x",
    }
    plant(
        tmp_path, {**{f"{path.rpartition('/')[0]}/__init__.py": "" for path in files}, "hub/__init__.py": "", **files}
    )
    assert folder_cycles(tmp_path) == ["dataproxy.hub.faults -> dataproxy.hub.web -> dataproxy.hub.faults"]


def test_folders_may_use_what_lies_beside_them(tmp_path):
    files = {
        "hub/server.py": "import dataproxy.hub.web.a",
        "hub/web/a.py": "from dataproxy.hub.faults.b import x\nfrom dataproxy.hub.names import x",
        "hub/faults/b.py": "if TYPE_CHECKING:\n    from dataproxy.hub.web.a import x",
        "hub/names.py": "",
    }
    plant(tmp_path, {"hub/__init__.py": "", "hub/web/__init__.py": "", "hub/faults/__init__.py": "", **files})
    assert folder_cycles(tmp_path) == []
