"""The server of the scenarios as a child process: ``scenario_server.py [stubborn|deaf|mute]``."""

import asyncio
import os
import signal
import sys
import time

if __name__ == "__main__":
    kind = sys.argv[1] if len(sys.argv) > 1 else ""
    if kind in ("deaf", "mute"):
        if kind == "mute":
            while os.read(0, 65536):
                pass
        time.sleep(120)
        raise SystemExit
    import sansmcp_asyncio
    from sansmcp.testing.scenarios import scenario_app

    if kind == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    asyncio.run(sansmcp_asyncio.serve_stdio(scenario_app(asyncio.sleep)))
    if kind == "stubborn":
        time.sleep(120)
