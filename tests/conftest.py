"""Rules for the whole suite: no stale extension is tested, and in CI no test is skipped in silence."""

import contextlib
import gc
import logging
import os
import signal
import sys
import tomllib
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest
from hypothesis import settings

# No assertion depends on how fast the machine is; a sanitizer's run is shorter, since each example costs more.
settings.register_profile("suite", deadline=None, print_blob=True)
settings.register_profile("short", deadline=None, print_blob=True, max_examples=20)
settings.load_profile(os.environ.get("DATAPROXY_HYPOTHESIS", "suite"))

ROOT = Path(__file__).parents[1]
SOURCES = ROOT / "cython_ext"
ALLOWED_SKIPS = Path(__file__).with_name("allowed_skips.toml")
INTEROP = Path(__file__).with_name("interop")
PLANTED = Path(__file__).with_name("sanitizer")
NATIVE = Path(__file__).with_name("native")
SANITIZER = os.environ.get("DATAPROXY_SANITIZER")
# Polars ends by a signal when it is imported under ThreadSanitizer; test_send_rows_types sends tables there.
# pytest heeds this only for files that it finds in a folder: the Makefile's lists leave them out by name.
collect_ignore = (
    ["loopback/producer/test_send_rows.py", "loopback/producer/test_send_rows_refused.py"]
    if SANITIZER == "tsan"
    else []
)
# The suite starts thousands of short processes.  Java's would compile thoroughly and collect with threads, for nothing;
# Python's would compile the package each time where the environment forbids them to keep the result.
os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
if not SANITIZER:
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
IN_CI = os.environ.get("CI", "").lower() in {"1", "true"}


def stale_modules(sources: Path, package_root: Path, *, only: tuple[str, ...] = (), missing: bool = False) -> list[str]:
    """Return the compiled modules that are older than their source (with ``missing``, also those never built)."""
    stale = []
    for source in sorted(sources.rglob("*.pyx")):
        below = source.relative_to(sources)
        if only and (len(below.parts) < 3 or below.parts[2] not in only):
            continue
        built = package_root / below.with_suffix(EXTENSION_SUFFIXES[0])
        if not built.exists():
            if missing:
                stale.append(f"{below} (never built)")
            continue
        header = source.with_suffix(".pxd")
        newest = max(path.stat().st_mtime for path in (source, header) if path.exists())
        if newest > built.stat().st_mtime:
            stale.append(str(below))
    return stale


def allowed_skips() -> dict[str, str]:
    """Return the skips that CI accepts: start of a test's id -> the reason it must give."""
    with ALLOWED_SKIPS.open("rb") as file:
        return {entry["test"]: entry["reason"] for entry in tomllib.load(file).get("skip", [])}


def refusal(nodeid: str, reason: str) -> str | None:
    """Return why CI does not accept this skip, None where the table lists it."""
    for start, wanted in allowed_skips().items():
        if nodeid.startswith(start) and wanted in reason:
            return None
    return f"skipped in CI ({reason}), and tests/{ALLOWED_SKIPS.name} does not list it"


def pytest_configure(config: pytest.Config) -> None:
    """Hear Ctrl-C as a terminal's program does: a shell lets what it starts in the background ignore it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGQUIT) is signal.SIG_IGN:
        signal.signal(signal.SIGQUIT, signal.SIG_DFL)
    if IN_CI and not getattr(config.option, "reruns", 1):
        config.option.reruns = 1
        config.option.reportchars += "R"  # a fault to be mended, not one that stops everybody


def pytest_sessionstart(session: pytest.Session) -> None:
    """Refuse to test modules that are older than their sources."""
    if not SOURCES.is_dir():
        return  # the installed wheel is under test
    only = tuple(part for part in os.environ.get("DATAPROXY_ONLY", "").split(",") if part)
    stale = stale_modules(SOURCES, ROOT, only=only, missing=IN_CI)
    stale += stale_modules(NATIVE, NATIVE, only=only, missing=IN_CI)
    if stale:
        shown = ", ".join(stale[:5]) + (f" and {len(stale) - 5} more" if len(stale) > 5 else "")
        pytest.exit(
            f"compiled modules are older than their sources: {shown}\n"
            f"build first:  make build   (or: {sys.executable} setup.py build_ext --inplace)",
            returncode=4,
        )


def pytest_collection_finish() -> None:
    """Leave the tests out of every later collection of garbage: there are so many that it took most of a second."""
    gc.collect()
    gc.freeze()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave tests that need something of their own to the runs that have it (Java classes, a sanitizer)."""
    if collection_path == PLANTED and not SANITIZER:
        return True
    if collection_path != INTEROP:
        return None
    named = any(Path(config.invocation_params.dir, arg.split("::")[0]).is_relative_to(INTEROP) for arg in config.args)
    return None if named else True


def _refuse_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    if not IN_CI or report.outcome != "skipped" or hasattr(report, "wasxfail"):
        return
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    refused = refusal(report.nodeid, reason)
    if refused is not None:
        report.outcome = "failed"
        report.longrepr = f"{report.nodeid}: {refused}"


def _close_what_a_failure_left() -> None:
    """Close the producers of a failed test: its traceback keeps them alive, and tests after it would meet them."""
    lifecycle = sys.modules.get("dataproxy.producer.lifecycle")
    with contextlib.suppress(RuntimeError):  # one that begins meanwhile
        for producer in list(lifecycle._live) if lifecycle else ():
            with contextlib.suppress(Exception, SystemExit):  # an error here would end the whole run
                producer.close(0)


@pytest.fixture(autouse=True)
def _logging_as_before():
    """Take back what a command or a test did to the package's log: a handler left behind writes to a closed stream."""
    logger = logging.getLogger("dataproxy")
    level, propagate, handlers = logger.level, logger.propagate, list(logger.handlers)
    yield
    logger.propagate, logger.handlers[:] = propagate, handlers
    if logger.level != level:
        logger.setLevel(level)  # which also forgets what loggers below remember of it


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]):
    """Turn a skip that nobody has listed into a failure."""
    report = yield
    _refuse_skip(report)
    if report.when == "call" and report.failed:
        _close_what_a_failure_left()
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector):
    """Turn a skipped module that nobody has listed into a failure."""
    report = yield
    _refuse_skip(report)
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Show why a test had to be tried again: what it printed the second time may not say it."""
    for report in terminalreporter.getreports("rerun"):
        terminalreporter.section(f"first try of {report.nodeid}", sep="_")
        terminalreporter.write_line(report.longreprtext)
