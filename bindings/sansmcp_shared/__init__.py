"""What the bindings are made of, whichever loop they are for.

Nothing in it knows a loop: where one is needed, it is whatever has the few methods of asyncio's that are
called here. Not public: names may change. What an application needs of it, the bindings give it.

`pump` drives a transport. `targets`, `client`, `verbs`, `events`, `changes`, `questions` and `login` make a
client, `handlers`, `listening`, `http_server` and `stream_server` a server. `awaiting_…` is what asyncio and
trio have in common and threads have not.
"""
