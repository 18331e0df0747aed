#!/usr/bin/env python3
"""Play a folder of vectors against an engine behind kvspec/1, without kvspec.

    python vector_runner.py DIR PROGRAM ARGS...

An example to port: it follows docs/vectors.md and docs/protocol.md and needs Python alone.
Exit status: 0 no case failed, 1 one did, 2 the folder or the engine cannot be used.
"""

import hashlib
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

FORMAT, PROTOCOL = "kvspec-vectors/1", "kvspec/1"
BOOKS = {"refcounts", "free_list", "keys", "pins", "tables"}
DEFAULTS = {"copies": [], "diverged": False, "shared_prefix_boundary": 0}


class Unusable(Exception):
    """The folder or the engine."""


class Ends(Exception):
    """The case ends here: `passed`, with a reason."""


class Skips(Exception):
    """The engine cannot do what the case needs."""


class Differs(Exception):
    """Not what is allowed; with the clause, where a predicate has one of its own."""


class Engine:
    """A child process that answers one line for each line it reads."""

    def __init__(self, command):
        pipe = subprocess.PIPE
        self.child = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)
        self.can = self.ask({"event": "start", "protocol": PROTOCOL})["result"]["capabilities"]

    def ask(self, event):
        self.child.stdin.write(json.dumps(event) + "\n")
        self.child.stdin.flush()
        line = self.child.stdout.readline()
        if not line:
            raise Unusable(f"the engine ended at {event['event']}")
        return json.loads(line)


class Player:
    """One case: what its names stand for, and the books that were shown last."""

    def __init__(self, engine, case, clauses):
        self.engine, self.clauses, self.shown = engine, clauses, {}
        self.blocks, self.digests = {}, {}
        config = case["configuration"]
        self.pool = range(1, config["num_blocks"])
        lacks = set(engine.can.get("lacks", ()))
        if missing := [need for need in case["needs"] if need in lacks]:
            raise Skips(f"the engine lacks {', '.join(missing)}")
        answer = engine.ask({"event": "configure", **config})
        if "unsupported" in answer:
            raise Skips(answer["unsupported"])
        here = {**engine.can, **answer["result"]}
        self.lacks = set(here.get("lacks", ()))
        self.accounts = set(here.get("shows", ())) >= BOOKS
        if missing := [need for need in case["needs"] if need in self.lacks]:
            raise Skips(f"the engine lacks {', '.join(missing)}")

    def take(self, step):
        """Play a step: send the event, hold the answer and the books to what is allowed."""
        event, refused = dict(step["event"]), step.get("refused")
        if step.get("may_skip") and event["event"] in self.lacks:
            return
        if event["event"] == "evict":
            event["blocks"] = [self.blocks[name] for name in event["blocks"]]
        answer = self.engine.ask(event)
        if "unsupported" in answer:
            raise Skips(answer["unsupported"])
        if ("rejected" if refused else "result") not in answer:
            raise AssertionError(
                refused or "LIVE.ANSWER", answer, "refused" if refused else "taken"
            )
        if not refused:
            self.hold_all(step.get("allowed", ()), answer["result"])
        if self.accounts:
            books = self.engine.ask({"event": "snapshot"})["result"]
            self.hold_all(step.get("books", ()), books)
            self.shown = books
        for name in step.get("forget", ()):
            self.blocks.pop(name, None)

    def hold_all(self, checks, answer):
        for check in checks:
            field, clause = check["field"], check["clause"]
            self.field = field
            seen = answer.get(field, DEFAULTS.get(field))
            if seen is None:
                raise Unusable(f"an answer of the engine has no field {field}")
            if "of" in check:
                seen = seen.get(str(self.blocks[check["of"]]), [] if field == "keys" else 0)
            try:
                self.match(check["is"], seen)
            except Differs as differs:
                clause = next(filter(None, differs.args), clause)
                if not self.accounts and self.clauses[clause]["profile"] == "accounting":
                    raise Ends(f"{field} is open ({clause})") from None
                raise AssertionError(clause, {field: seen}, check["is"]) from None

    def value(self, pattern):
        """A pattern of values and names, the names replaced; lists as tuples, to be counted."""
        if isinstance(pattern, list):
            return tuple(map(self.value, pattern))
        return self.blocks[pattern] if isinstance(pattern, str) else pattern

    def match(self, pattern, seen):
        if isinstance(pattern, dict):
            ((name, content),) = [(n, c) for n, c in pattern.items() if n != "clause"]
            try:
                holds = getattr(self, f"is_{name}")(content, seen)
            except Differs as differs:
                raise Differs(*differs.args, pattern.get("clause")) from None
            if holds is False:
                raise Differs(pattern.get("clause"))
        elif isinstance(pattern, list):
            if not isinstance(seen, list) or len(seen) != len(pattern):
                raise Differs
            for one, value in zip(pattern, seen, strict=True):
                self.match(one, value)
        elif (type(seen), seen) != (type(self.value(pattern)), self.value(pattern)):
            raise Differs

    # --- the predicates: False, or Differs from within, where the value is not allowed

    def is_one_of(self, patterns, seen):
        for number, pattern in enumerate(patterns):
            try:
                self.match(pattern, seen)
            except Differs:
                continue
            if number:
                raise Ends(f"{self.field} was chosen otherwise")
            return True
        return False

    def is_fresh(self, name, seen):
        if seen not in self.pool or seen in self.blocks.values():
            return False
        self.blocks[name] = seen

    def is_bags(self, bags, seen):
        parts, start = [], 0
        for bag in bags:
            parts.append(seen[start : start + len(bag)])
            start += len(bag)
        return start == len(seen) and all(map(self.same_bag, bags, parts))

    def is_blocks(self, names, seen):
        return self.same_bag(names, [block for block in seen if block])

    def same_bag(self, pattern, seen):
        tuples = (tuple(v) if isinstance(v, list) else v for v in seen)
        return Counter(self.value(pattern)) == Counter(tuples)

    def is_places(self, places, seen):
        return all(i < len(seen) and seen[i] == self.blocks[name] for i, name in places)

    def is_copies(self, copies, seen):
        found = dict(seen)
        if not len(found) == len(seen) == len(copies):
            return False
        for source, pattern in copies:
            self.match(pattern, found.get(self.blocks[source]))

    def is_bounds(self, bounds, seen):
        least, most = (self.value(bounds.get(end, [])) for end in ("least", "most"))
        return set(least) <= set(seen) and ("most" not in bounds or set(seen) <= set(most))

    def is_number(self, number, seen):
        return number["least"] <= seen <= number.get("most", seen)

    def is_shape(self, shape, seen):
        return [[block != 0 for block in table] for table in seen] == shape

    def is_map(self, entries, seen):
        expected = {str(self.blocks.get(key, key)): pattern for key, pattern in entries}
        left = {key: value for key, value in seen.items() if not self.is_empty(value)}
        if left.keys() != expected.keys():
            return False
        for key, pattern in expected.items():
            self.match(pattern, left[key])

    def is_empty(self, value):
        if not isinstance(value, list):
            return value == 0
        return all(isinstance(one, list) and self.is_empty(one) for one in value)

    def is_key(self, key, seen):
        group, text = seen
        known = self.digests.setdefault(group, {})
        taken = key[1] not in known and text in known.values()
        return group == key[0] and not taken and known.setdefault(key[1], text) == text

    def is_pool_without(self, held, seen):
        return set(seen) == set(self.pool) - set(self.value(held))

    def is_order(self, names, seen):
        wanted = list(self.value(names))
        return [block for block in seen if block in wanted] == wanted

    def is_distinct(self, _, seen):
        return len(set(seen)) == len(seen)

    def is_unchanged(self, _, seen):
        return seen == self.shown[self.field]


def read(path, text=None):
    data = json.loads(path.read_text("utf-8") if text is None else text)
    if data["format"] != FORMAT:
        raise Unusable(f"{path}: format {data['format']}, this runner knows {FORMAT}")
    return data


def cases(folder):
    """Each case, its bytes those that the manifest has, and why it is passed over if it is."""
    manifest = read(folder / "manifest.json")
    invalid = read(folder / "invalidated.json")["invalidated"]
    why = {one["id"]: f"invalidated: {one['why']}" for one in invalid}
    for listed in manifest["cases"]:
        data = (folder / listed["path"]).read_bytes()
        if hashlib.sha256(data).hexdigest() != listed["sha256"]:
            raise Unusable(f"{listed['path']}: not as the manifest has it")
        yield read(folder / listed["path"], data), why.get(listed["id"]), manifest["clauses"]


def play(engine, case, invalid, clauses):
    """What came of a case, and why."""
    played = 0
    try:
        if invalid:
            raise Skips(invalid)
        player = Player(engine, case, clauses)
        for step in case["steps"]:
            player.take(step)
            played += 1
    except Skips as why:
        return "passed over", str(why)
    except Ends as why:
        return "passed early", str(why)
    except AssertionError as failed:
        clause, observed, allowed = failed.args
        step = f"step {played + 1}, {case['steps'][played]['event']['event']}"
        return "failed", f"{step}: {clause}: observed {observed}, allowed {json.dumps(allowed)}"
    return "passed", ""


def main(arguments):
    if len(arguments) < 2:
        print("usage: vector_runner.py DIR PROGRAM ARGS...", file=sys.stderr)
        return 2
    results = Counter()
    try:
        engine = Engine(arguments[1:])
        for case, invalid, clauses in cases(Path(arguments[0])):
            result, why = play(engine, case, invalid, clauses)
            results[result] += 1
            if result == "failed":
                print(f"{case['id']}: {why}")
        engine.ask({"event": "stop"})
    except (Unusable, OSError, ValueError, KeyError) as error:
        print(f"vector_runner: {type(error).__name__}: {error}", file=sys.stderr)
        return 2
    print(", ".join(f"{number} {result}" for result, number in sorted(results.items())))
    return 1 if results["failed"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
