"""``python -m sansmcp_cli`` is the command ``sansmcp``."""

from .main import main

main()
