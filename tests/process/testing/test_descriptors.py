"""A fault proxy in a process without descriptors: it leaves connections waiting and goes on when there are some."""

import subprocess
import sys

CODE = """
import os, resource, socket, time
from dataproxy.testing import FaultProxy

server = socket.create_server(("127.0.0.1", 0))
proxy = FaultProxy("127.0.0.1:%d" % server.getsockname()[1])
def connect():
    return socket.create_connection((proxy.host, proxy.port), timeout=30)
first = connect()
other, _ = server.accept()
late = socket.socket()
_, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
for room in (0, 1):             # none for the connection, and one for it but none for its other half
    late = socket.socket()
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
    taken = []
    try:
        while True:
            taken.append(os.dup(0))
    except OSError:
        pass
    for fd in taken[:room]:
        os.close(fd)
    began = time.process_time()
    late.connect((proxy.host, proxy.port))
    first.sendall(b"ping")      # the connection that is there goes on
    assert other.recv(4) == b"ping"
    deadline = time.monotonic() + 1
    while time.monotonic() < deadline:
        time.sleep(0.05)
    busy = time.process_time() - began
    assert busy < 0.7, busy     # it does not spin
    for fd in taken[room:]:
        os.close(fd)
    late.close()
    again = connect()
    again.sendall(b"x")
    while True:
        their, _ = server.accept()
        if their.recv(1):       # one that was given up by its client comes first, perhaps
            break
    again.close()
proxy.close()
print("done")
"""


def test_a_proxy_without_descriptors_goes_on_when_there_are_some():
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
