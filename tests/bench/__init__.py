"""The bench: ours beside the official SDK and the floor of the runtime, in one run. See README.md."""
