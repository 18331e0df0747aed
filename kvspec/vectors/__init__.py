"""Conformance vectors: cases in JSON that can be replayed without kvspec (docs/vectors.md).

`model` has the form of a case, `matching` what its patterns mean, `expected` and `books` work the
patterns out from the judge's state, `record` makes cases of events, `sources` says of which events,
`folder` writes and reads them, `play` holds a target to one, `command` to all.
"""
