"""What the tests start instead of Python: it hands a module to the server of ``warm_processes``, and ends as that does.

It loads next to nothing, and gets the server's address, ``-m`` and the module.
"""

import os
import signal
import socket
import sys

PIECE = 64 * 1024  # holds a whole order: a module, a folder, and an environment


def main(address: str, module: str) -> None:
    variables = [f"{name}={value}" for name, value in os.environ.items()]
    with socket.socket(socket.AF_UNIX) as server:
        server.connect(address)
        socket.send_fds(server, ["\0".join([module, os.getcwd(), *variables]).encode()], [0, 1, 2])
        os.close(0)  # who asks sees the end of these when the module's process ends
        os.close(1)
        code = int(server.recv(16) or b"1")
    if code < 0:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[3])
