"""Shortens the conversations of bench/defects.ts with a Python package, and counts what is wrong with the result.

Usage: python defects.py PACKAGE. Reads JSON with the conversations from stdin, and writes JSON with the counts. Each part imports only its package.
"""

import asyncio
import json
import sys


def without_call(messages):
    """Returns True if a result stands there without the call that it answers."""
    called = set()
    for message in messages:
        called.update(call["id"] for call in message.get("tool_calls") or [])
        if message["role"] == "tool" and message["tool_call_id"] not in called:
            return True
    return False


def langchain(conversations):
    from langchain.agents.middleware import SummarizationMiddleware
    from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
    from langchain_core.messages import convert_to_messages, convert_to_openai_messages, trim_messages

    class Refused(GenericFakeChatModel):
        def _generate(self, *args, **kwargs):
            raise RuntimeError("429: too many requests")

    messages = convert_to_messages(conversations["questions"])
    cut = 0
    for limit in range(1, len(messages) + 1):
        window = trim_messages(messages, max_tokens=limit, token_counter=len, strategy="last")
        cut += without_call(convert_to_openai_messages(window))
    summarizing = SummarizationMiddleware(
        model=Refused(messages=iter([])), trigger=("messages", 10), keep=("messages", 4)
    )
    try:
        summarizing.before_model({"messages": messages}, None)
        refused = ""
    except Exception as error:
        refused = f"{type(error).__name__}: {error}"
    return {"cut": cut, "limits": len(messages), "refused": refused}


def litellm(conversations):
    from litellm.utils import token_counter, trim_messages

    messages = conversations["questions"]
    whole = token_counter(model="gpt-4o", messages=messages)
    cut = 0
    for limit in range(1, len(messages) + 1):
        copy = json.loads(json.dumps(messages))
        cut += without_call(trim_messages(copy, model="gpt-4o", max_tokens=whole * limit // len(messages)))
    return {"cut": cut, "limits": len(messages)}


def openai_agents(conversations):
    from agents import SQLiteSession

    async def count():
        session = SQLiteSession("one")
        await session.add_items(conversations["reasoned"])
        limits = len(conversations["reasoned"]) - 1
        first = [(await session.get_items(limit=limit))[0].get("type") for limit in range(1, limits + 1)]
        return {
            "limits": limits,
            "without_call": first.count("function_call_output"),
            "without_reasoning": first.count("function_call"),
        }

    return asyncio.run(count())


def headroom(conversations):
    from headroom import compress

    messages = conversations["edits"]
    before, changed, requests = None, 0, 0
    for end in range(4, len(messages) + 1, 2):
        sent = [json.dumps(one, sort_keys=True) for one in compress(messages[:end], model="gpt-4o").messages]
        requests += 1
        changed += before is not None and sent[: len(before)] != before
        before = sent
    return {"requests": requests, "changed": changed}


parts = {"langchain": langchain, "litellm": litellm, "openai-agents": openai_agents, "headroom-ai": headroom}
print(json.dumps(parts[sys.argv[1]](json.load(sys.stdin))))
