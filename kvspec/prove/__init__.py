"""`kvspec prove`: every event sequence of a tiny cache, each answer judged.

`worlds` says how small, `menu` which events a state offers, `naming` and `books` what of a state
matters, `canon` when two states are the same, `node` takes one event, `search` all of them in
breadth, `paths` picks the few that cover the graph, `proof` runs it all for the command line.
"""
