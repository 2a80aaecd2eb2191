"""Type checks: mypy --strict on the package, on the examples and on what a user writes, stubtest on the stubs."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
WRITTEN = ("examples", "tests/typing")  # as users write it


def modules_with_stubs() -> list[str]:
    """Return the dotted names of the compiled modules that have a ``.pyi``."""
    stubs = sorted((ROOT / "dataproxy" / "_core").rglob("*.pyi"))
    return [".".join(stub.relative_to(ROOT).with_suffix("").parts) for stub in stubs]


def main() -> None:
    """Run all checks, and fail at the end if one of them failed."""
    # The same options as for the package, or all that the files import would be checked once more.
    written = sorted(str(path.relative_to(ROOT)) for folder in WRITTEN for path in (ROOT / folder).glob("*.py"))
    commands = [["mypy"], ["mypy", *written]]
    facades = modules_with_stubs()
    if facades:
        allowed = "tests/typing/stubtest.allow"
        options = ["--ignore-missing-stub", "--ignore-unused-allowlist", "--allowlist", allowed]
        commands.append(["mypy.stubtest", *options, *facades])
    failed = 0
    for command in commands:
        print("$ python -m", *command[:6], "..." if len(command) > 6 else "", flush=True)
        failed += subprocess.run([sys.executable, "-m", *command], cwd=ROOT, check=False).returncode != 0
    sys.exit(min(failed, 1))


if __name__ == "__main__":
    main()
