"""Authorization: how a client comes by the tokens that a server wants to see. Flows over exchanges."""
