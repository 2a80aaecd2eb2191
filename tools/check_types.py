"""Type checks: mypy --strict on the package and on what a user writes, mypy on the examples, stubtest on the stubs."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def modules_with_stubs() -> list[str]:
    """Return the dotted names of the compiled modules that have a ``.pyi``."""
    stubs = sorted((ROOT / "dataproxy" / "_core").rglob("*.pyi"))
    return [".".join(stub.relative_to(ROOT).with_suffix("").parts) for stub in stubs]


def main() -> None:
    """Run all checks, and fail at the end if one of them failed."""
    commands = [["mypy"]]
    examples = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "examples").glob("*.py"))
    if examples:
        commands.append(["mypy", "--no-strict-optional", *examples])
    commands.append(
        ["mypy", "--strict", *sorted(str(p.relative_to(ROOT)) for p in (ROOT / "tests/typing").glob("*.py"))]
    )
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
