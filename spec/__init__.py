"""The judge: the rules of a paged prefix-sharing KV-cache for hybrid models, as text that runs.

Read in this order:

1. `types`     the vocabulary: blocks, groups, configuration, identity.
2. `events`    the event language and what a target answers.
3. `digests`   what a prefix is called, and the tag of each position.
4. `lookup`    how long a hit may be, and which blocks may serve it.
5. `tables`    what a block table must look like after a grant, and what that takes from the pool.
6. `chunks`    where a prefill chunk may end.
7. `content`   what a block holds.
8. `clauses`   every rule by its id.
9. `marks`     rare states that a search has to reach.
10. `state`    everything the judge knows.
11. `admit`    which events the driver may send when.
12. `judge`    State x Event x Observation -> State | Violation (with `judge_grant`, `judge_step`,
               `judge_end` and `judge_snapshot` beside it, by kind of event).

Nothing in here chooses, stores on disk, or imports any other part of kvspec.
"""
