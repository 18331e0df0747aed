"""The wire protocol kvspec/1: an engine in another process, one JSON object a line.

`messages` says what the lines are, `child` keeps the process, `engine` is the target that talks to
it, `serve` the other end for targets in Python, `smoke` the first check. See docs/protocol.md.
"""
