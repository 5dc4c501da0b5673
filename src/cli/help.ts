/** Contains the texts of `--help`. docs/configuration.md describes the options of the configuration. */
import type { CommandName } from './args.ts';

/** Returns the help of a command, or the general help. */
export function helpText(topic: CommandName | undefined): string {
  return topic === undefined ? general : commands[topic];
}

const general = `leporello - keeps an LLM agent inside its context window: folds old tool output away, keeps every
original, and restores it when the model asks for it.

Usage
  leporello serve                 run the gateway: set it as the base URL of a client
  leporello wrap claude           start an agent CLI connected to the gateway, for one run; also: codex,
                                  gemini, opencode, pi, qwen
  leporello compact FILE|-        fold request bodies, or a JSONL file of conversations, offline
  leporello recall ID             print an original that was folded away
  leporello inspect [RECEIPT]     show what was folded in a request, and why
  leporello mcp                   let an MCP client read and search what was folded
  leporello replay FILE...        compute what folding would cost and save on recorded conversations
  leporello savings               what your agents' sessions cost, and would have cost with Leporello
  leporello doctor                check the set-up, and say how to fix what is wrong
  leporello demo                  show how it works, without any key
  leporello help [COMMAND]        print help; also: leporello COMMAND --help
  leporello --version

All commands but help accept --json to print JSON: wrap only with --print, mcp only with --port.

Examples
  leporello wrap claude -- --continue
  leporello serve --port 8787
  leporello compact body.json --window-tokens 32000 > smaller.json
  leporello recall mem_5h8v0c2k9qtz31ax --lines 10-40

Environment (all options: docs/configuration.md)
  LEPORELLO_CONFIG         configuration file, JSON
  LEPORELLO_DATA           data folder with originals and the secret; default ~/.leporello
  LEPORELLO_PORT           port of the gateway; default 8787
  LEPORELLO_HOST           address to listen on; default 127.0.0.1
  LEPORELLO_OPENAI_URL     upstream of the OpenAI formats; default https://api.openai.com/v1
  LEPORELLO_ANTHROPIC_URL  upstream of the Anthropic format; default https://api.anthropic.com
  LEPORELLO_ADMIN_TOKEN    credential that shows the receipts and originals of all tenants
  LEPORELLO_LOG_LEVEL      debug, info, warn, error or silent; default info
  LEPORELLO_SECRET         secret for ids and encryption; default: created once, kept in the data folder
  Flags override the environment, and the environment overrides the file.

Exit codes
  0    done
  1    failed, completely or in part
  2    invalid arguments or configuration
  130  interrupted
`;

const serve = `leporello serve - runs the gateway. Clients keep their keys; only their base URL changes.

Usage
  leporello serve [flags]

Flags
  --port PORT            default 8787; 0 uses any free port
  --host HOST            default 127.0.0.1: only this machine
  --data DIR             folder for originals, folds and the secret; default ~/.leporello
  --config FILE          configuration, JSON
  --openai-url URL       default https://api.openai.com/v1
  --anthropic-url URL    default https://api.anthropic.com
  --log-level LEVEL      debug, info, warn, error or silent; default info
  --lossless             leave nothing out of new tool results
  --preset NAME          settings for a kind of work; the first keeps least, the last keeps most:
    cost         when the price counts more than details; folds early and far, sub-goals at 12:1
    long-horizon for runs of hundreds of actions; an outline of all stays, sub-goals at 15:1 with phases
    production   for agents at work; the default triggers, and finished sub-goals become records at 10:1
    summaries    for talk, support and research, where the thread counts; old messages become one summary
    debugging    when exact values are needed again and again; folds late and little, sub-goals at 3:1
  --set KEY=VALUE        any option of docs/configuration.md; may be repeated
  --for-wraps            end with the last leporello wrap that uses the gateway
  --json                 print the address as one line of JSON
  -h, --help

Logs go to standard error, as JSON unless it is a terminal. They never contain content or keys.
Ctrl-C (or SIGTERM) lets requests in progress finish; a second one cuts them off.
If the data folder cannot be used, the gateway keeps originals in memory until the process ends.

Examples
  leporello serve
  leporello serve --port 0 --json
  leporello serve --openai-url http://127.0.0.1:11434/v1 --set triggers.tokenBudget.triggerTokens=60000

Environment
  Each option is also a variable: LEPORELLO_PORT, LEPORELLO_HOST, LEPORELLO_DATA, LEPORELLO_CONFIG,
  LEPORELLO_TRIGGERS_TOKEN_BUDGET_TRIGGER_TOKENS ... See docs/configuration.md for all of them.

Exit codes
  0  stopped by a signal
  1  failed
  2  invalid arguments or configuration, or the port is not available
`;

const wrap = `leporello wrap - starts an agent CLI whose requests go through the gateway, for one run.

Usage
  leporello wrap claude|codex|gemini|opencode|pi|qwen [flags] [-- ARGUMENTS OF THE CLIENT]

Uses the gateway that runs on the port, or starts one, which several wraps share and which ends with the
last of them. Sets the environment and the arguments of the client's process, and changes none of your
files. Ends with the client's exit code, and one line on standard error: its requests, tokens and savings.

  claude    ANTHROPIC_BASE_URL, ENABLE_TOOL_SEARCH=true
  codex     -c openai_base_url=...; with a ChatGPT login it starts unchanged, and nothing is folded
  gemini    GOOGLE_GEMINI_BASE_URL; with a Google login it starts unchanged
  opencode  OPENCODE_CONFIG_CONTENT, for the providers that you have a key of
  pi        --extension, with the base URLs of Anthropic, OpenAI and Google
  qwen      OPENAI_BASE_URL, and DASHSCOPE_PROXY_BASE_URL if its upstream is DashScope

A base URL that you have set for the client becomes the gateway's upstream, for this run.

Flags
  --print           print the command line instead of starting it, for editors and scripts
  --port PORT       port of the gateway; default 8787, or a free one if another program has that
  --data DIR        folder for originals, folds and the secret; default ~/.leporello
  --config FILE     configuration of a gateway that is started, JSON
  --lossless, --preset NAME, --set KEY=VALUE  options of a gateway that is started, as in leporello serve
  --json            with --print: {"command", "env", "args"} on one line
  -h, --help

Examples
  leporello wrap claude
  leporello wrap codex -- exec "run the tests"
  leporello wrap gemini --print

Environment
  LEPORELLO_PORT, LEPORELLO_DATA, LEPORELLO_CONFIG and the other variables of docs/configuration.md.

Exit codes
  That of the client; 128 and the number of the signal that ended it.
  2  invalid arguments or configuration, the client is not installed, or no gateway can be started
`;

const compact = `leporello compact - folds request bodies offline, with the same engine as the gateway.

Usage
  leporello compact FILE|- [flags]

FILE contains one request body (JSON, on one or several lines) or one conversation per line (JSONL: bodies,
or records with an id and messages). Gzip is decompressed; - is standard input. Bodies go to standard
output, one for each input. A body that is neither folded nor compacted stays identical, byte for byte.
A table of receipts goes to standard error.

Flags
  --format FORMAT      chat (Chat Completions), responses, anthropic (Messages), gemini (generateContent),
                       or auto (default): detected from the body
  --model MODEL        model whose tokenizer and window are used, also if a body names another one;
                       bodies without a model use gpt-4o (chat), gpt-5 (responses),
                       claude-sonnet-4-5 (anthropic) or gemini-2.5-pro (gemini)
  --window-tokens N    the window; default: the model's
  --min-result-bytes N  never fold tool results of fewer bytes; default 1000
  --lossless           leave nothing out of tool results that are compacted on arrival
  --preset NAME        settings for a kind of work: cost, long-horizon, production, summaries or debugging
  --out FILE           write to this file, when everything is done; gzip if the name ends in .gz
  --data DIR           folder for originals, for leporello recall; default ~/.leporello
  --config FILE        configuration, JSON
  --set KEY=VALUE      any option of docs/configuration.md; may be repeated
  --json               print receipts as JSON lines instead of the table
  -h, --help

The tool read_memory is not added, because nothing would answer it. A run does not depend on earlier runs.

Examples
  leporello compact body.json --window-tokens 32000 > smaller.json
  leporello compact runs.jsonl.gz --window-tokens 8000 --out folded.jsonl --json 2> receipts.jsonl
  cat body.json | leporello compact - --set triggers.tokenBudget=false

Environment
  LEPORELLO_DATA, LEPORELLO_CONFIG and the other variables of docs/configuration.md.

Exit codes
  0    done
  1    a line could not be read (it is copied unchanged), a body does not fit, or writing failed
  2    invalid arguments or configuration
  130  interrupted; the file of --out was not written
`;

const recall = `leporello recall - prints an original that was folded away.

Usage
  leporello recall ID [flags]

ID is in the stub that replaced the original: mem_ and 16 characters.

Flags
  --query WORDS        only the passages that match these words
  --lines RANGE        only these lines: 10-40, 100-, -20 (the last 20); c1-500 for characters
  --path PATH          only this value of a JSON original: $.items[0].name
  --max-tokens TOKENS  at most this many tokens (o200k_base), with a hint how to read the rest; default: all
  --raw                the exact JSON bytes of the original
  --data DIR           data folder; default ~/.leporello
  --config FILE        configuration, JSON
  --json               {"id", "text"} on one line
  -h, --help

Examples
  leporello recall mem_5h8v0c2k9qtz31ax
  leporello recall mem_5h8v0c2k9qtz31ax --query "connection reset"

Environment
  LEPORELLO_DATA, LEPORELLO_CONFIG, LEPORELLO_SECRET

Exit codes
  0  printed
  1  not found
  2  invalid arguments or configuration
`;

const inspect = `leporello inspect - shows what became of a request: why it was folded, what each message was before and
after, why the others were not folded, and what it cost.

Usage
  leporello inspect [RECEIPT | --last N] [flags]

RECEIPT is the id of a receipt, as in the response header x-leporello-receipt. Without it, the newest request
is shown. The gateway need not run: receipts are in its store for 30 days, the newest 2,000 of each tenant.

Flags
  --last N         the newest N requests; default 1
  --tenant LABEL   whose receipts; default: the tenant that all requests belong to (local)
  --data DIR       data folder; default ~/.leporello
  --config FILE    configuration, JSON
  --json           one receipt with its edits per line
  -h, --help

Examples
  leporello inspect
  leporello inspect --last 5
  leporello inspect 6f2c1d0e-8a57-4e0b-9a53-0d5f3c0f7a11 --json

Environment
  LEPORELLO_DATA, LEPORELLO_CONFIG, LEPORELLO_SECRET

Exit codes
  0  printed
  1  not found
  2  invalid arguments or configuration
`;

const replay = `leporello replay - replays recorded conversations with the engine, and with other ways to shorten them.

Usage
  leporello replay FILE... [flags]

FILE contains request bodies, one per line (JSONL) or a single one. Gzip is decompressed; - is standard
input. Each body is a whole conversation, which is replayed from its first reply on; of a log with all
requests of a conversation only the last request is used. A line in the format of Chat Completions without a
model is a recorded conversation: it gets tools of 15,000 tokens, because recordings rarely contain theirs.
The table shows the cost of each way relative to the full context, with three kinds of prices, the size
of requests, and what becomes of the values that the recorded calls used: see docs/replay.md.

Flags
  --format FORMAT      auto (default), chat, responses, anthropic or gemini
  --window-tokens N    the window; default 200000
  --prefix-tokens N    tokens of the prefix of recorded conversations; default 15000
  --source NAME        only sources that begin with NAME (a field of recorded conversations, or the file name)
  --limit NUMBER       maximum number of conversations of each source
  --engine NAME=JSON   one more engine, with its own configuration instead of yours; may be repeated
  --html FILE          write a report with charts to this file
  --min-result-bytes N  never fold tool results of fewer bytes; default 1000
  --lossless           leave nothing out of tool results that are compacted on arrival
  --preset NAME        settings for a kind of work: cost, long-horizon, production, summaries or debugging
  --config FILE        configuration, JSON
  --set KEY=VALUE      any option of docs/configuration.md; may be repeated
  --json               print the figures as JSON
  -h, --help

Nothing is sent over the network, and nothing is stored. Tokens are counted with o200k_base for all models.

Examples
  leporello replay requests.jsonl --html report.html
  leporello replay runs.jsonl.gz --engine 'early={"triggers":{"tokenBudget":{"triggerTokens":60000}}}'

Environment
  LEPORELLO_CONFIG and the other variables of docs/configuration.md.

Exit codes
  0    done
  1    a line could not be read, or writing failed
  2    invalid arguments or configuration
  130  interrupted
`;

const mcp = `leporello mcp - lets an MCP client, such as a chat client, read and search what was folded.

Usage
  leporello mcp [flags]

Serves three tools over standard input and output: read_memory (an original by its id, or a part of it),
search_memory and list_folds. The gateway may run at the same time.

Flags
  --port PORT          serve over HTTP at http://127.0.0.1:PORT/mcp instead; 0 uses any free port
  --tenant LABEL       whose folds are listed and searched; default local
  --data DIR           folder with originals and the secret; default ~/.leporello
  --config FILE        configuration, JSON
  --json               with --port: print the URL as JSON

Examples
  claude mcp add leporello -- leporello mcp
  leporello mcp --port 8788

Environment
  LEPORELLO_DATA, LEPORELLO_CONFIG, LEPORELLO_SECRET and the options of memory (docs/configuration.md).

Exit codes
  0    the client has ended, or the process was stopped
  1    there is no memory yet
  2    invalid arguments or configuration
`;

const savings = `leporello savings - reads the session files of your agents: what they cost, and would have cost.

Usage
  leporello savings [flags]

Reads the files that Claude Code, Codex, Gemini CLI, opencode, pi and Qwen Code leave in the home folder;
those of one client are enough. Adds up the usage in them at list prices, and replays the conversations with
the engine, the most expensive first, for about ten seconds. Conversations that were not replayed count
unchanged. Nothing is written, sent or stored. See docs/replay.md for what a replay can say.

Flags
  --days N         sessions of the last N days; default 7
  --all            replay all conversations, however long it takes
  --config FILE    configuration of the engine, JSON
  --set KEY=VALUE  any option of docs/configuration.md; may be repeated
  --json           {"days", "clients", "total"} on one line
  -h, --help

Environment
  HOME, and CLAUDE_CONFIG_DIR, CODEX_HOME, GEMINI_CLI_HOME, OPENCODE_DATA_DIR, PI_CODING_AGENT_DIR if set.

Exit codes
  0  done
  1  no sessions were found
  2  invalid arguments or configuration
`;

const doctor = `leporello doctor - checks the set-up, and says how to fix what is wrong. It changes nothing.

Usage
  leporello doctor [flags]

Checks Node, the configuration, the data folder, the secret, Redis, whether the upstreams can be reached (DNS,
TLS), the program on the port, the base URLs in this shell and in the settings files of Claude Code, Codex,
Gemini CLI, opencode, pi and Qwen Code, traps of these clients (tool search, cache marks, logins), proxies,
and in the running gateway the last request, the last fold, failures, and models that the catalog lacks.

Flags
  --port PORT      port of the gateway; default 8787
  --data DIR       data folder; default ~/.leporello
  --config FILE    configuration, JSON
  --set KEY=VALUE  any option of docs/configuration.md; may be repeated
  --json           {"result", "findings": [{"check", "level", "says", "fix"}]} on one line
  -h, --help

Environment
  LEPORELLO_DATA, LEPORELLO_CONFIG and the other variables of docs/configuration.md.

Exit codes
  0  all is well
  1  warnings
  2  failures, or invalid arguments
`;

const demo = `leporello demo - plays a coding agent's conversation through the gateway, without any key.

Usage
  leporello demo [--json]

Starts a scripted model and the gateway on this machine, plays a sample conversation turn by turn, and
shows what was sent, what was folded, and a recall that the model makes inside a stream. It takes a few
seconds and leaves nothing behind.

Environment
  None.

Exit codes
  0    played
  1    failed
  2    invalid arguments
  130  interrupted
`;

const commands: Readonly<Record<CommandName, string>> = {
  serve,
  wrap,
  compact,
  recall,
  inspect,
  mcp,
  replay,
  savings,
  doctor,
  demo,
};
