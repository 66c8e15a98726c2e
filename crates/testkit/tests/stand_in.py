#!/usr/bin/env python3
"""Stands in for pgweir where the testkit itself is under test: listens, logs, obeys signals."""

import re
import signal
import socket
import sys

with open(sys.argv[1], encoding="utf-8") as config:
    text = config.read()
if "refuse" in text:
    sys.exit("refused: no such key")
port = int(re.search(r"^port = (\d+)$", text, re.MULTILINE).group(1))
listener = socket.create_server(("127.0.0.1", port))
print("listening", flush=True)
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
# A shell gives SIGQUIT to what it runs in the background as a signal to ignore.
signal.signal(signal.SIGQUIT, signal.SIG_DFL)
signal.signal(signal.SIGHUP, lambda *_: print("reloaded", flush=True))
while True:
    connection, _ = listener.accept()
    if connection.recv(5) == b"crash":
        sys.exit(3)
    connection.close()
