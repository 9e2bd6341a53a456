"""Facts about the official schemas: see `make`."""
