"""Programs that speak kvspec/1 wrongly, one way each: `python bad_child.py WAY`."""

import json
import os
import signal
import sys
import time

way = sys.argv[1]
GROUPS = 1
events = 0


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def result(**fields: object) -> None:
    say(json.dumps({"result": fields}))


def start() -> None:
    if way == "no start":
        say(json.dumps({"error": "what is start?"}))
    elif way == "banner":
        say("Engine 1.0 ready")
    elif way == "other protocol":
        result(protocol="kvspec/2", name="x", language="python")
    elif way == "misspelt":
        result(protocol="kvspec/1", nmae="x", language="python")
    else:
        extra = {"colour": "red"} if way == "unknown field" else {}
        result(protocol="kvspec/1", name="bad", language="python", **extra)


def submit() -> None:
    if way == "hang":
        time.sleep(60)
    elif way == "die":
        sys.stderr.write("assertion failed: refs[3] == 1\nin free()\n")
        sys.stderr.flush()
        os.kill(os.getpid(), signal.SIGABRT)
    elif way == "exit":
        sys.exit(0)
    elif way == "close":
        os.close(1)
        time.sleep(60)
    elif way == "flood":
        while True:
            os.write(1, b"x" * 65536)
    elif way == "flood errors":
        for _ in range(400):
            os.write(2, b"noise " * 10000)
        os.write(2, b"the last words")
        sys.exit(4)
    elif way == "garbage":
        say("free list: [1, 2, 3]")
    elif way == "binary":
        os.write(1, b"\xff\xfe\x00\n")
    elif way == "unfinished":
        os.write(1, b'{"result":')
        time.sleep(60)
    elif way == "twice":
        say('{"result":{}}\n{"result":{}}')
    elif way == "number":
        say("7")
    elif way == "two fields":
        say('{"result":{},"error":"x"}')
    elif way == "wrong type":
        say('{"error":7}')
    elif way == "late":
        say('{"result":{}}')
        time.sleep(0.05)
        say("DEBUG: submitted")
    elif way == "unsupported":
        say('{"unsupported":"no requests here"}')
    elif way == "error":
        say('{"error":"free list lost block 3"}')
    else:
        result()


for line in sys.stdin:
    name = json.loads(line)["event"]
    if name == "start":
        start()
    elif name == "configure":
        events = 0
        if way == "deaf":
            result()
            time.sleep(60)
        if way == "declines":
            say('{"unsupported":"no caches on Wednesdays"}')
        else:
            result()
    elif name == "submit":
        submit()
    elif name == "stop":
        result()
        if way == "stays":
            time.sleep(60)
        sys.exit(3 if way == "bad end" else 0)
    else:
        result()
