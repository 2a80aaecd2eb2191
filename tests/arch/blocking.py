"""Where calls wait: every wait of the package has an end that somebody set."""

from __future__ import annotations

import ast
import re
from pathlib import Path

__all__ = ["endless_waits", "native_waits"]

#: Methods that wait for ever when they are called without a timeout.
WAITS = frozenset(
    {
        "join",
        "wait",
        "wait_for",
        "acquire",
        "get",
        "result",
        "recv",
        "accept",
        "communicate",
        "shutdown",
        "select",
        "poll",
    }
)
#: Calls that look like waits, or that wait for what is bounded elsewhere: (file, function) -> reason.
ALLOWED = {
    ("dataproxy/cli/hub/command.py", "_serve"): "the command runs until a signal ends it",
    ("dataproxy/cli/ending.py", "_watched"): "select.poll() makes an object",
    ("dataproxy/consumer/consumer.py", "__iter__"): "it returns at the end, and looks for signals in between",
    ("dataproxy/consumer/state.py", "call_back"): "the driver's end is the last thing in the queue",
    ("dataproxy/hub/web/manager.py", "close"): "four reading threads, whose transactions are short",
    ("dataproxy/rocketmq/pull.py", "__iter__"): "it goes on for ever, and a signal interrupts it",
    ("dataproxy/rocketmq/push.py", "_listen"): "the end is put into the queue once for each thread",
    ("dataproxy/rocketmq/transactions.py", "_run_checks"): "the end is put into the queue",
    ("dataproxy/testing/proxy.py", "_accept"): "the listener does not block",
    ("dataproxy/spark/foreach.py", "*"): "TaskContext.get() returns at once",
    ("dataproxy/spark/sink.py", "*"): "TaskContext.get() returns at once",
    ("dataproxy/spark/stream.py", "*"): "TaskContext.get() returns at once",
}
#: Modules whose threads sleep until they are woken; no public call runs this code with a wait of its own.
SLEEPERS = {
    "server/core.pyx": "a change of faults waits until the server loops follow it or end",
    "server/store/env.pyx": "the committer's thread",
    "server/tubemq/core.pyx": "the hub's thread of TubeMQ waits for the committer, which gives every entry back",
}


class _Finder(ast.NodeVisitor):
    """Collect (function, line, call) of waits without a timeout."""

    def __init__(self) -> None:
        self.stack: list[str] = []
        self.found: list[tuple[str, int, str]] = []

    def _enter(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self.stack.append(node.name)
        self.generic_visit(node)
        self.stack.pop()

    visit_FunctionDef = _enter
    visit_AsyncFunctionDef = _enter

    def visit_Await(self, node: ast.Await) -> None:
        """Skip what an event loop waits for: it blocks no thread."""
        if isinstance(node.value, ast.Call):
            for part in (*node.value.args, *node.value.keywords):
                self.visit(part)

    def visit_Call(self, node: ast.Call) -> None:
        """Look at one call."""
        if isinstance(node.func, ast.Attribute) and node.func.attr in WAITS:
            bounded = node.args or any(word.arg == "timeout" for word in node.keywords)
            if not bounded:
                where = self.stack[-1] if self.stack else "*"
                self.found.append((where, node.lineno, ast.unparse(node)))
        self.generic_visit(node)


def endless_waits(root: Path) -> list[str]:
    """Return the waits without a timeout in the package's Python code that nothing allows."""
    found = []
    for path in sorted((root / "dataproxy").rglob("*.py")):
        name = str(path.relative_to(root))
        finder = _Finder()
        finder.visit(ast.parse(path.read_text()))
        for function, line, call in finder.found:
            if (name, function) not in ALLOWED and (name, "*") not in ALLOWED:
                found.append(f"{name}:{line}: {call} has no timeout")
    return found


def native_waits(root: Path) -> list[str]:
    """Return the native waits without a deadline outside of the modules that may sleep."""
    core = root / "cython_ext" / "dataproxy" / "_core"
    found = []
    for path in sorted(core.rglob("*.pyx")):
        name = str(path.relative_to(core))
        calls = re.findall(r"\b(pthread_cond_wait|pthread_join|sem_wait)\(", path.read_text())
        if calls and name not in SLEEPERS:
            found.append(f"{name}: {calls[0]} has no deadline")
    return found
