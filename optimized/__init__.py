"""The fast manager: integers in flat lists where the plain one has objects.

`manager` answers the events. Under it: `pool` (`free_list` and `index`), `lookup`, `grants` with
`registration`, `step_lists`, `fences`, `requests` with `digest_chain`, and `chunk_rule`. Block ids
are bare ints inside and get their type back where an observation is made.
"""
