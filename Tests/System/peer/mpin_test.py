# SPDX-License-Identifier: GPL-3.0-or-later
"""mpin_test.py BIN WORK: badged as an M-Pin client of other servers. MILAGRO is their folder.

Its run.sh takes --port and --work, and prints a line with "ready" when it listens.
"""
import os
import subprocess
import sys

binaries, work = sys.argv[1:]
port = 18000
with subprocess.Popen(
        [os.path.join(os.environ["MILAGRO"], "run.sh"), "--port", str(port), "--work", os.path.join(work, "milagro")],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as servers:
    try:
        while "ready" not in (line := servers.stdout.readline()):
            if not line:
                sys.exit("the servers have ended")
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../mpin.py")
        code = subprocess.run([sys.executable, script, f"{binaries}/badged", work, f"http://127.0.0.1:{port}"]).returncode
    finally:
        servers.kill()
sys.exit(code)
