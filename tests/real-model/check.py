"""Checks a transcript on standard input: `exec` really ran `echo hi`, and an answer came, which is in the file named."""

import json
import sys

messages = json.load(sys.stdin)["messages"]
with open(sys.argv[1], encoding="utf-8") as text:
    answer = text.read().strip()

calls = [call for message in messages for call in message.get("tool_calls", [])]
results = [message for message in messages if message["role"] == "tool"]
ran = [call["name"] for call in calls] == ["exec"] and "echo hi" in calls[0]["arguments"].get("command", "")
printed = len(results) == 1 and results[0].get("ok") is True and "hi" in results[0]["content"]
last = messages[-1]
answered = last["role"] == "assistant" and answer and last["content"].strip() == answer

if not (ran and printed and answered):
    print(json.dumps(messages, indent=1), file=sys.stderr)
    sys.exit(f"real-model: ran {ran}, printed {printed}, answered {bool(answered)}: {answer!r}")
print(f"real-model: exec ran `echo hi` and the model answered: {answer}")
