"""Tables of inputs and what must come of them, apart from the tests that run them."""
