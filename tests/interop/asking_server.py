"""A server whose handlers ask their client, for clients that others wrote."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

if __name__ == "__main__":  # what starts it knows nothing of where it stands
    sys.path.insert(0, str(Path(__file__).parents[2]))

import sansmcp_asyncio
from tests.questions_support import asking_app

if __name__ == "__main__":
    asyncio.run(sansmcp_asyncio.serve_stdio(asking_app()))
