"""Mutation of `optimized/` and of `spec/`'s pure functions by machine, and the hunt that follows.

`mutants` makes them, `stages` says what is run against one, `hunt` runs it in a process of its own,
`report` holds what survived against `explained.toml`; `python -m tests.mutation` is the command.
"""
