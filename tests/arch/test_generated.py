"""Generated files are current: those of the option tables, and the numbers of the core; an outdated one is noticed."""

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
NUMBERS = Path("dataproxy", "numbers.py")
SCHEMA = Path("dataproxy", "wire", "tubemq", "messages.proto")


def check(root: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "dataproxy.config.render", "--check", "--root", str(root)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_generated_files_are_current():
    done = check(ROOT)
    assert done.returncode == 0, done.stdout + done.stderr


def test_an_outdated_file_is_noticed(tmp_path):
    shutil.copytree(ROOT / "conf", tmp_path / "conf")
    (tmp_path / "CONFIGURATION.md").write_text("old\n")
    done = check(tmp_path)
    assert done.returncode != 0
    assert "CONFIGURATION.md" in done.stdout + done.stderr


def test_an_outdated_table_in_a_page_is_noticed(tmp_path):
    page = tmp_path / "docs" / "migration.md"
    page.parent.mkdir()
    page.write_text((ROOT / "docs" / "migration.md").read_text().replace("| `pack_size` |", "| `packsize` |"))
    assert "docs/migration.md is not current" in check(tmp_path).stderr


def numbers(root: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(root / "tools" / "numbers.py"), "--check"]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)


def test_the_numbers_that_python_shares_with_the_core_are_current():
    done = numbers(ROOT)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_changed_number_is_noticed(tmp_path):
    for folder in ("tools", "cython_ext"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("*.c", "*.so", "*.pyx"))
    (tmp_path / "dataproxy").mkdir()
    shutil.copy(ROOT / NUMBERS, tmp_path / NUMBERS)
    assert numbers(tmp_path).returncode == 0
    header = tmp_path / "cython_ext" / "dataproxy" / "_core" / "pack" / "pack.pxd"
    changed = header.read_text().replace("OUT_EXPIRED = 3", "OUT_EXPIRED = 30")
    assert changed != header.read_text()
    header.write_text(changed)
    assert numbers(tmp_path).returncode == 1


def protos(root: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(root / "tools" / "protos.py"), "--check"]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)


def test_what_protobuf_knows_of_tubemq_is_current(tmp_path):
    assert protos(ROOT).returncode == 0
    for folder in ("tools", SCHEMA.parent):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    schema = tmp_path / SCHEMA
    schema.write_text(schema.read_text().replace("optional int64 traceId = 2;", "optional int64 traceId = 5;"))
    done = protos(tmp_path)
    assert done.returncode == 1
    assert "messages.desc is not current" in done.stderr
    schema.write_text("nothing")
    assert protos(tmp_path).returncode == 1
