"""Sizes, documentation, names and words of every file in the repository; each rule is shown to bite."""

from pathlib import Path

import pytest

from tests.arch.style import (
    declared_names_missing,
    forbidden_constructs,
    forbidden_words,
    long_files,
    long_functions,
    stray_files,
    undocumented,
)

ROOT = Path(__file__).parents[2]
CORE = "cython_ext/dataproxy/_core"
RULES = [
    declared_names_missing, forbidden_constructs, forbidden_words, long_files, long_functions, stray_files,
    undocumented,
]  # fmt: skip


@pytest.mark.parametrize("rule", RULES)
def test_the_repository_keeps_the_rule(rule):
    assert rule(ROOT) == []


DOC = '"""Docs."""\n'
LONG_PYX = DOC + 'cdef int f(int a,\n           int b) noexcept nogil:\n    """Add."""\n' + "    a += 1\n" * 60
BARE = 'cdef int f() noexcept nogil:\n    """Say one."""\n    return 1\n'
SAYS_LOCKS = '"""Docs.\n\nLocks: none.\n"""\n'
SAYS_THREAD = '"""Docs.\n\nLocality: executor.\n"""\n'
SAYS_BOTH = '"""Docs.\n\nLocality: executor.  Locks: none.\n"""\n'
METHOD = DOC + 'cdef class A:\n    """Hold."""\n\n    def f(self):\n        return 1\n'
PLANTED = [
    (long_files, "tests/unit/test_x.py", "a = 1\n" * 801),
    (long_files, f"{CORE}/conn/x.pyx", "\n" * 801),
    (long_files, "benchmarks/floor.c", "\n" * 801),
    (long_functions, "dataproxy/x.py", "def f():\n" + "    a = 1\n" * 60),
    (long_functions, "dataproxy/y.py", "class A:\n    async def f(self):\n" + "        a = 1\n" * 60),
    (long_functions, f"{CORE}/conn/x.pyx", LONG_PYX),
    (long_functions, f"{CORE}/conn/y.pyx", DOC + "cpdef f():\n" + "    a = 1\n\n" * 31),
    (forbidden_constructs, f"{CORE}/conn/x.pyx", 'include "y.pyx"\n'),
    (forbidden_constructs, f"{CORE}/conn/x.pyx", "DEF SIZE = 4\n"),
    (forbidden_constructs, f"{CORE}/conn/x.pxd", "IF UNAME_SYSNAME == 'Linux':\n    pass\n"),
    (forbidden_constructs, f"{CORE}/conn/x.pyx", 'cdef extern from "unistd.h":\n    int getpid()\n'),
    (forbidden_words, "docs/x.md", "see /home/" + "me/x\n"),
    (forbidden_words, "tools/x.sh", "cd /home/" + "x\n"),
    (forbidden_words, "dataproxy/x.py", "# TO" + "DO later\n"),
    (forbidden_words, "dataproxy/x.py", "raise NotImplemented" + "Error\n"),
    (forbidden_words, "README.md", "as issue " + "12 says\n"),
    (stray_files, f"{CORE}/conn/x.c", "int a;\n"),
    (stray_files, "dataproxy/x.so", ""),
    (stray_files, "dataproxy/utils.py", ""),
    (undocumented, "dataproxy/x.py", "a = 1\n"),
    (undocumented, "dataproxy/x.py", DOC + "def f():\n    pass\n"),
    (undocumented, "dataproxy/x.py", DOC + "class A:\n    pass\n"),
    (undocumented, "dataproxy/x.py", DOC + 'class A:\n    """Hold."""\n\n    def f(self):\n        pass\n'),
    (undocumented, f"{CORE}/conn/x.pyx", "cdef int a\n"),
    (undocumented, f"{CORE}/base/x.pyx", DOC + "cdef int f() noexcept nogil:\n    return 1\n"),
    (undocumented, f"{CORE}/base/x.pyx", DOC + "cdef class A:\n    cdef int a\n"),
    (undocumented, f"{CORE}/base/x.pyx", METHOD),
    (undocumented, f"{CORE}/conn/x.pyx", DOC + 'cdef int f() noexcept nogil:\n    """Say one."""\n    return 1\n'),
    (undocumented, f"{CORE}/conn/x.pyx", SAYS_LOCKS + BARE),
    (undocumented, f"{CORE}/producer/x.pxd", SAYS_LOCKS + BARE),
    (undocumented, f"{CORE}/server/x.pyx", SAYS_THREAD + BARE),
    (undocumented, f"{CORE}/server/x.pyx", SAYS_THREAD + BARE.replace("Say one.", "Say one.  Locality: any thread.")),
    (undocumented, f"{CORE}/conn/x.pyx", SAYS_BOTH + BARE.replace('    """Say one."""\n', "")),
    (undocumented, f"{CORE}/plat/x.pxd", DOC + "cdef inline int f() noexcept nogil:\n    return 1\n"),
    (declared_names_missing, "dataproxy/x.py", DOC),
    (declared_names_missing, "dataproxy/x.py", DOC + '__all__ = ["absent"]\n'),
]


@pytest.mark.parametrize(("rule", "name", "text"), PLANTED)
def test_a_planted_violation_is_found(tmp_path, rule, name, text):
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    assert len(rule(tmp_path)) == 1


ACCEPTED = {
    "dataproxy/x.py": DOC
    + '__all__ = ["f"]\n\n\ndef f():\n    """Say one."""\n    return 1\n\n\ndef _g():\n    pass\n',
    f"{CORE}/conn/x.pxd": DOC + "cdef int f(int a,\n           int b) noexcept nogil\n",
    f"{CORE}/conn/x.pyx": DOC
    + 'cdef int f(int a,\n           int b) noexcept nogil:\n    """Add.\n\n    Locality: any thread.\n'
    + '    Locks: none.\n    """\n    return a + b\n\n\ncdef inline int _g() noexcept nogil:\n    return 1\n',
    f"{CORE}/conn/y.pyx": SAYS_BOTH + BARE,
    f"{CORE}/conn/z.pyx": SAYS_LOCKS + BARE.replace("Say one.", "Say one.  Locality: executor."),
    f"{CORE}/plat/x.pxd": DOC + 'cdef extern from "x.h" nogil:\n    int g(int a) noexcept\n',
}


@pytest.mark.parametrize("rule", RULES)
def test_an_orderly_tree_is_accepted(tmp_path, rule):
    for name, text in ACCEPTED.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert rule(tmp_path) == []
