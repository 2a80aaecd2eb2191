"""Files made from the option tables are current, and an outdated one is noticed."""

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


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
