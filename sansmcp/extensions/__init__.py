"""Extensions: what two sides agree on besides the protocol itself.

`extension.py` is the one door, for yours as for those that are here: tasks, skills, apps. Each is
imported by its own name, and only by those who use it.
"""

from __future__ import annotations

from .extension import ClientDoor, ClientPart, Extension, ExtensionMethod

__all__ = ["ClientDoor", "ClientPart", "Extension", "ExtensionMethod"]
