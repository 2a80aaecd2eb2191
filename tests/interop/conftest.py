"""InLong's classes as callables: jars fetched once, the drivers compiled once."""

import base64
import json
import os
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent
HOME = Path(os.environ.get("INTEROP_HOME", HERE.parents[1] / ".interop"))
SECONDS = 240


def run(*command: object) -> str:
    """Run a command and return its output; its errors fail the test with what it said."""
    words = [str(word) for word in command]
    done = subprocess.run(words, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 0, f"{words[0]} failed:\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="session")
def inlong_classes():
    """Return the class path of the compiled drivers and InLong's jars."""
    jars = HOME / "lib"
    if not (jars / ".complete").exists():
        run("mvn", "-q", "-B", "-f", HERE / "pom.xml", "package", f"-Dlib={jars}")
        (jars / ".complete").touch()
    classes = HOME / "classes"
    classes.mkdir(parents=True, exist_ok=True)
    run("javac", "-cp", f"{jars}/*", "-d", classes, HERE / "BodyDriver.java", HERE / "NameDriver.java")
    return f"{classes}:{jars}/*"


@pytest.fixture(scope="session")
def body_driver(inlong_classes):
    """Return a function that runs the driver and gives its JSON lines, bodies as bytes."""

    def drive(*words: object) -> list[dict]:
        lines = []
        for text in run("java", "-cp", inlong_classes, "BodyDriver", *words).splitlines():
            line = json.loads(text)
            if "body" in line:
                line["body"] = base64.b64decode(line["body"])
            lines.append(line)
        return lines

    return drive


@pytest.fixture(scope="session")
def name_driver(inlong_classes):
    """Return a function that runs the driver of names and gives pairs of a name and what it stands for."""

    def drive(*words: object) -> list[tuple[str, object]]:
        command = ("java", "-Dfile.encoding=UTF-8", "-Dsun.jnu.encoding=UTF-8", "-cp", inlong_classes, "NameDriver")
        lines = [json.loads(text) for text in run(*command, *words).splitlines()]
        return [(line["name"], line["value"]) for line in lines]

    return drive
