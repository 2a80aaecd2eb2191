"""Write what protobuf needs to know of TubeMQ's messages: a descriptor, and the types of the message classes.

``python tools/protos.py`` runs the compiler of grpcio-tools over dataproxy/wire/tubemq/messages.proto; ``--check`` only
tells whether the files are current (exit status 1: they are not).  A descriptor, and not a module of Python: that
would be of use only with the versions of protobuf that follow the compiler's.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

__all__ = ["main", "rendered"]

ROOT = Path(__file__).resolve().parents[1]
FOLDER = Path("dataproxy", "wire", "tubemq")
SCHEMA, DESCRIPTOR, TYPES = "messages.proto", "messages.desc", "messages.pyi"
HEAD = '"""Types of TubeMQ\'s messages.  Written by `python tools/protos.py`. Do not edit."""\n\n'


def rendered(root: Path) -> dict[str, bytes]:
    """Return the files by their names, for the schema in the tree at ``root``.  Raises ValueError if it is wrong."""
    from grpc_tools import protoc

    with tempfile.TemporaryDirectory() as out:
        target = Path(out, DESCRIPTOR)
        status = protoc.main(
            ["protoc", f"-I{root / FOLDER}", f"--descriptor_set_out={target}", f"--pyi_out={out}", SCHEMA]
        )
        if status != 0:
            raise ValueError(f"{FOLDER / SCHEMA} is no schema: see the compiler's words above")
        types = Path(out, "messages_pb2.pyi").read_text()
        return {DESCRIPTOR: target.read_bytes(), TYPES: (HEAD + types).encode()}


def main(root: Path = ROOT) -> int:
    """Write the files, or with ``--check`` compare them; return the exit status."""
    status = 0
    for name, data in rendered(root).items():
        path = root / FOLDER / name
        if "--check" not in sys.argv[1:]:
            path.write_bytes(data)
        elif not path.is_file() or path.read_bytes() != data:
            sys.stderr.write(f"{FOLDER / name} is not current: python tools/protos.py\n")
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
