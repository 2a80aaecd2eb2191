"""Assertions of debug builds: one function writes the state of a pack; only profiles that look for mistakes assert."""

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CORE = ROOT / "cython_ext" / "dataproxy" / "_core"


def test_one_function_writes_the_state_of_a_pack():
    """Packs are called ``p``, ``pack`` or ``young``; connections, sockets and holds have states of their own."""
    writers = [
        f"{path.relative_to(CORE)}:{number}"
        for path in sorted(CORE.rglob("*.p[yx]*"))
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if re.search(r"\bstate = (PK_|state$)", line) and not re.search(r"\b(conn|h)\.state", line)
    ]
    assert len(writers) == 1
    assert writers[0].startswith("pack/pack.pxd:")


@pytest.fixture(scope="module")
def profiles():
    """The profiles of ``setup.py``, which is not run."""
    spec = importlib.util.spec_from_file_location("setup_script", ROOT / "setup.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.PROFILES


def test_the_profiles_that_look_for_mistakes_assert(profiles):
    asserting = {name for name, profile in profiles.items() if ("DATAPROXY_DEBUG", "1") in profile.get("macros", [])}
    assert asserting == {"debug", "coverage", "asan", "tsan"}


def modules() -> list[Path]:
    return sorted((ROOT / "dataproxy" / "_core").rglob("*.so"))


def test_the_modules_of_this_build_assert_where_their_profile_says_so(profiles):
    """A release holds neither the texts nor the function; a checkout without ``build/inplace`` is a release."""
    stamp = ROOT / "build" / "inplace"
    name = stamp.read_text() if stamp.exists() else "release"
    found = {path.name for path in modules() if b"assertion failed" in path.read_bytes()}
    asserting = ("DATAPROXY_DEBUG", "1") in profiles[name].get("macros", [])
    assert bool(found) == asserting
    assert not asserting or any(path.startswith("pack.") for path in found)
    if not asserting:
        traces = (b"dp_assert", b"a pack goes from", b"the change of state is legal")
        assert not [path.name for path in modules() if any(trace in path.read_bytes() for trace in traces)]
