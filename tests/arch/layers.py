"""Which layer may see which: the table behind the direction of every import and cimport."""

from __future__ import annotations

from pathlib import Path

from tests.arch.sources import Import, cython_imports, python_imports

__all__ = ["compiled_violations", "python_violations"]

CORE = "dataproxy._core"

# Compiled layers, from the bottom: what else a module may cimport below dataproxy._core, as prefixes.
BASE = ("base", "plat")
WIRE = ("base", "wire.api", "plat.endian", "plat.bits")  # sans-io: no sockets, clocks, threads, atomics
PACK = ("pack", *BASE)
CONN = ("conn", "wire.api", *PACK)
NET = ("net", *CONN)
COMPILED = {
    "plat": ("plat",),
    "base": BASE,
    "wire.api": WIRE,
    "wire.inlongv1": (*WIRE, "wire.inlongv1", "wire.inlong"),  # V1 shares its connections, its codes and its containers
    "wire.tubemq": (*WIRE, "wire.tubemq", "wire.inlong.container"),  # the hub stores messages in containers
    "wire.rocketmq": (*WIRE, "wire.rocketmq", "wire.inlong.container"),  # as TubeMQ
    "wire.registry": (
        *WIRE,
        "wire.inlong.codec",
        "wire.inlong.const",
        "wire.inlong.http.codec",
        "wire.inlongv1.codec",
        "wire.inlongv1.const",
        "wire.tubemq.codec",
        "wire.tubemq.const",
    ),
    "pack": PACK,
    "conn": CONN,
    "net": NET,
    "encode": ("encode", *BASE),
    "producer": ("producer", "encode", *NET),
    "server": ("server", "net", "wire.api", *BASE),
    "server.tubemq": ("server", "net", "wire.api", "wire.tubemq", *BASE),  # the hub's broker: its calls have fields
    # The hub's broker for RocketMQ also reads what TubeMQ's producers have stored.
    "server.rocketmq": ("server", "net", "wire.api", "wire.rocketmq", "wire.tubemq.stored", *BASE),
    "consumer": ("consumer", "net", "wire.tubemq", *BASE),
    # Packs of what hubs push in RocketMQ's protocol, made of the messages that its clients read.
    "consumer.pushedpack": ("consumer", "remoting.messages", "wire.rocketmq", *BASE),
    "perf": ("perf", "producer", *NET),
    "remoting": ("remoting", "wire.rocketmq", *BASE),  # RocketMQ's clients, whose thread of input is Python
}
# Facades raise the package's errors and return its plain types; everything below them returns a status.
PLAIN = {f"dataproxy.{name}" for name in ("errors", "escapes", "outcomes", "problems", "types")}
RAISE_ERRORS = ("producer", "consumer", "server", "perf", "wire", "remoting")
# Python layers: the parts of the package that each part may import at module level or inside functions.
BOTTOM = {
    "_version",
    "codes",
    "errors",
    "escapes",
    "explain",
    "lasterror",
    "localcodes",
    "logs",
    "messagetypes",
    "numbers",
    "outcomes",
    "problems",
    "shown",
    "process",
    "types",
    "unmade",
}
PRODUCER = {*BOTTOM, "config", "rows", "trust", "producer", "_core"}
API = {*PRODUCER, ""}  # "" is the package itself, dataproxy/__init__.py
PYTHON = {
    **dict.fromkeys(BOTTOM, BOTTOM),
    "config": {*BOTTOM, "config"},
    "rows": {*BOTTOM, "rows", "_core"},
    "trust": {*BOTTOM, "config", "_core", "trust"},
    "wire": {*BOTTOM, "wire"},
    "masters": {*BOTTOM, "wire", "masters"},
    "consumer": {*BOTTOM, "config", "trust", "wire", "masters", "rocketmq", "consumer", "_core"},
    "producer": {*PRODUCER, "wire", "masters"},
    "rocketmq": {*BOTTOM, "_core", "config", "trust", "wire", "rocketmq"},  # `config` for secrets
    "": {*PRODUCER, "consumer", "hub"},
    "_core": {"_core", *BOTTOM},
    "stored": {*BOTTOM, "_core", "stored"},
    "hub": {*API, "hub", "stored", "wire", "masters"},  # `hub/tubemq` speaks TubeMQ
    "observe": {*API, "observe"},
    "integrations": {*API, "integrations"},
    "perf": {*API, "perf"},
    "spark": {*API, "spark", "stored", "consumer", "masters"},  # `spark/tubemq` reads ranges of topics
    "doctor": {*API, "doctor", "wire"},
    "cli": {*API, "cli", "doctor", "perf", "wire"},
    "testing": {*API, "hub", "testing"},
    "__main__": {"cli"},
    "pyspark_dataproxy": {*BOTTOM, "config", "spark"},
    "pyspark_tubemq": {*BOTTOM, "config", "spark", "pyspark_dataproxy"},
    "inlong_dataproxy": API,
}
# Seen only from inside a function: `dataproxy hub`, `tail` and `stats` are commands that start or read a hub, `consume`
# and `topics` need the package protobuf, and a plain `import dataproxy` must not load any of them.
LAZY = {("cli", "consumer"), ("cli", "hub"), ("", "hub"), ("pyspark_dataproxy", "spark"), ("pyspark_tubemq", "spark")}


def compiled_violations(root: Path) -> list[str]:
    """Return every cimport below ``root/cython_ext`` that points up or sideways."""
    core = root / "cython_ext" / "dataproxy" / "_core"
    found = []
    for path in sorted([*core.rglob("*.pyx"), *core.rglob("*.pxd")]):
        own = ".".join(path.relative_to(core).with_suffix("").parts)
        for used in cython_imports(path):
            wrong = _compiled_wrong(own, used)
            if wrong:
                found.append(f"{path.relative_to(root)}:{used.line}: {own} {wrong}")
    return found


def _compiled_wrong(own: str, used: Import) -> str | None:
    if used.module.startswith("."):
        return f"uses the relative name {used.module}; write the whole one"
    if used.module.startswith("tests"):
        return f"may not see {used.module}: no wheel has it"
    if not used.module.startswith("dataproxy"):
        return None
    if used.module in PLAIN and own.split(".")[0] in RAISE_ERRORS:
        return None
    if not used.module.startswith(CORE + "."):
        return f"may not see the Python module {used.module}"
    target = used.module.removeprefix(CORE + ".")
    layer = next((name for name in sorted(COMPILED, reverse=True) if _below(own, name)), None)
    if layer is None:
        part = ".".join(own.split(".")[:2])
        allowed: tuple[str, ...] = (*WIRE, part) if own.startswith("wire.") else ()
    else:
        allowed = COMPILED[layer]
    if layer in ("producer", "server") and target == "wire.registry":
        return None  # the one place where a wire's table of functions is picked
    if any(_below(target, name) for name in allowed):
        return None
    return f"may not see {target}"


def _below(module: str, prefix: str) -> bool:
    return not prefix or module == prefix or module.startswith(prefix + ".")


def python_violations(root: Path) -> list[str]:
    """Return every import of the Python packages below ``root`` that points up or sideways."""
    found = []
    for package in ("dataproxy", "inlong_dataproxy", "pyspark_dataproxy", "pyspark_tubemq"):
        for path in sorted((root / package).rglob("*.py*")):
            if path.suffix not in (".py", ".pyi"):
                continue
            own = _part(path.relative_to(root))
            for used in python_imports(path):
                wrong = _python_wrong(root, own, used)
                if wrong:
                    found.append(f"{path.relative_to(root)}:{used.line}: {wrong}")
    return found


def _part(path: Path) -> str:
    if path.parts[0] != "dataproxy":
        return path.parts[0]
    name = Path(path.parts[1]).stem
    return "" if name == "__init__" else name


def _python_wrong(root: Path, own: str, used: Import) -> str | None:
    if used.module.startswith("."):
        return f"uses the relative name {used.module}; write the whole one"
    parts = used.module.split(".")
    if parts[0] == "inlong_dataproxy" and own != parts[0]:
        return f"may not see {used.module}: it is a distribution of its own, made of this one"
    if parts[0] != "dataproxy":
        return None
    known = len(parts) > 1 and ((root / "dataproxy" / parts[1]).is_dir() or parts[1] in PYTHON)
    known = known or (len(parts) > 1 and (root / "dataproxy" / f"{parts[1]}.py").is_file())
    target = parts[1] if known else ""
    if (own, target) in LAZY:
        return None if used.lazy else f"may import dataproxy.{target} only inside a function"
    if own not in PYTHON:
        return f"dataproxy.{own} has no place in the table of layers"
    if target != own and target not in PYTHON[own]:
        return f"dataproxy.{own or '__init__'} may not see {used.module}"
    if target == "_core" and own != "_core":
        return _facade_wrong(root, parts)
    return None


def _facade_wrong(root: Path, parts: list[str]) -> str | None:
    """Only the modules of the core that have a stub are open to Python code."""
    names = parts[2:]
    if not names or names[0] in ("build_info", "explain_missing", "explained"):
        return None
    core = root / "dataproxy" / "_core"
    stubs = [core.joinpath(*names[:n]).with_suffix(".pyi") for n in range(1, len(names) + 1)]
    return None if any(stub.is_file() for stub in stubs) else f"{'.'.join(parts)} is no facade (it has no .pyi)"
