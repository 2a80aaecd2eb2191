"""Nothing of the interpreter's is changed: no type that is ready, no method that exists, no object that was seen."""

import re
from pathlib import Path

import pytest

from tests.arch.untouched import RULES, TUPLE_FILLED, changes

ROOT = Path(__file__).parents[2]
CORE = "cython_ext/dataproxy/_core"


def test_nothing_of_the_interpreter_is_changed() -> None:
    assert changes(ROOT) == []


@pytest.mark.parametrize(
    ("name", "text", "rule"),
    [
        (f"{CORE}/x.pxd", "int status = PyDict_SetItemString(kind->tp_dict, name, value);", "type dictionary"),
        (f"{CORE}/x.pxd", "PyType_Modified(kind);", "type dictionary"),
        (f"{CORE}/x.pxd", "kind->tp_flags |= Py_TPFLAGS_HAVE_VECTORCALL;", "type slot"),
        (f"{CORE}/x.h", "kind->tp_as_async->am_send = slot;", "type slot"),
        (f"{CORE}/x.h", "type.tp_new = make;", "type slot"),
        (f"{CORE}/x.pyx", "    (<PyTypeObject*>Waiter).tp_new = NULL", "type slot"),
        (f"{CORE}/x.h", "((PyMethodDescrObject *)method)->vectorcall = quick;", "method descriptor"),
        (f"{CORE}/x.h", "*(char **)((char *)f + Py_TYPE(f)->tp_vectorcall_offset) = slot;", "foreign object"),
        (f"{CORE}/x.h", "Py_SET_TYPE(object, kind);", "type of an object"),
        (f"{CORE}/x.h", "return Py_REFCNT(thing) == 1;", "reference count"),
        (f"{CORE}/x.pyx", "PyTuple_SET_ITEM(out, 0, value)", "tuple"),
        (f"{CORE}/x.h", "_PyObject_GC_UNTRACK(thing);", "private name"),
        ("dataproxy/x.py", "sys.meta_path.append(Finder)", "import system"),
        ("dataproxy/x.py", "ctypes.pythonapi.PyType_Modified(kind)", "ctypes"),
        ("dataproxy/spark/x.py", "    pyspark.worker.main = ours", "module of others"),
        ("dataproxy/x.py", "threading.excepthook = told", "module of others"),
        ("dataproxy/x.py", 'setattr(socket, "socket", ours)', "module of others"),
        ("dataproxy/x.py", "function.__code__ = other", "class or code"),
    ],
)
def test_a_planted_change_is_found(tmp_path: Path, name: str, text: str, rule: str) -> None:
    path = tmp_path / name
    path.parent.mkdir(parents=True)
    path.write_text(f"{text}\n")
    assert any(rule in line for line in changes(tmp_path)), changes(tmp_path)


def test_what_only_reads_or_initialises_is_no_change(tmp_path: Path) -> None:
    path = tmp_path / CORE / "x.h"
    path.parent.mkdir(parents=True)
    lines = [
        "        .tp_new = make,",
        "        .am_send = dp_send};",
        "if (kind->tp_new == NULL) return kind->tp_name;",
    ]
    path.write_text("\n".join(lines))
    assert changes(tmp_path) == []


def test_each_rule_has_a_name_and_its_exceptions_exist() -> None:
    assert len({rule.name for rule in RULES}) == len(RULES)
    for rule in RULES:
        for name in rule.allowed:
            assert rule.pattern.search((ROOT / name).read_text()), (rule.name, name)


def test_a_tuple_is_filled_only_where_it_was_made() -> None:
    """Each function that fills one makes it first; nothing comes between that runs Python code."""
    text = (ROOT / TUPLE_FILLED).read_text()
    filling = [part for part in re.split(r"\n(?=cdef |def )", text) if "_put(" in part and "cdef inline" not in part]
    assert len(filling) == 2
    for part in filling:
        assert re.search(r"cdef object out = new_instance\(.*\n    _put\(out, 0,", part), part
        assert set(re.findall(r"_put\((\w+),", part)) == {"out"}
