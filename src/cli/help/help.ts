/** Contains the texts of `--help`. docs/configuration.md describes the options of the configuration. */
import type { CommandName } from '../command-args.ts';
import { benchAb, compact, experiment, inspect, recall, replay, savings } from './offline.ts';

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
  leporello experiment            show what folding costs and changes, as measured on live traffic
  leporello mcp                   let an MCP client read and search what was folded
  leporello replay FILE...        compute what folding would cost and save on recorded conversations
  leporello savings               what your agents' sessions cost, and would have cost with Leporello
  leporello doctor                check the set-up, and say how to fix what is wrong
  leporello hook claude           shrink tool results inside a client, without a proxy
  leporello off                   remove every trace from the settings of your agents
  leporello bench-ab TASKS -- COMMAND  run your own benchmark with and without folding, and compare
  leporello demo                  show how it works, without any key
  leporello help [COMMAND]        print help; also: leporello COMMAND --help
  leporello --version

All commands but help accept --json to print JSON: wrap and hook only with --print, mcp only with --port.

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
  LEPORELLO_GEMINI_URL     upstream of the Gemini format; default https://generativelanguage.googleapis.com
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
  --gemini-url URL       default https://generativelanguage.googleapis.com
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
  codex     -c openai_base_url=..., with an API key or a ChatGPT login
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

const mcp = `leporello mcp - lets an MCP client, such as a chat client, read and search what was folded.

Usage
  leporello mcp [flags]

Serves three tools over standard input and output: read_memory (an original by its id, or a part of it),
search_memory and list_folds. The gateway may run at the same time, or start later.

Flags
  --port PORT          serve over HTTP at http://127.0.0.1:PORT/mcp instead; 0 uses any free port
  --tenant LABEL       whose memory is read, listed and searched; default local
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
  1    the store cannot be read
  2    invalid arguments or configuration
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

const hook = `leporello hook - makes tool results smaller inside an agent CLI, on machines that allow no proxy.

Usage
  leporello hook claude|codex|cursor|gemini --print      print the entry for the client's settings
  leporello hook claude|codex|cursor|gemini              run by the client after each tool call

The client gives the result of a tool call on standard input. The original is stored and read back before
a smaller text replaces it, which names the command that prints the original. Files that were read, results of
searches, failures, images and small results stay as they are. If anything goes wrong, the client
keeps the result that it has: the exit code is 0 or 1, which no client takes for a refusal. docs/hooks.md
says what each client lets a hook do.

Flags
  --print          print the entry and the file that it belongs in; nothing is written
  --data DIR       folder for originals and the secret; default ~/.leporello
  --config FILE    configuration, JSON
  --json           with --print: {"file", "entry"} on one line
  -h, --help

Examples
  leporello hook claude --print
  leporello hook codex --print

Environment
  LEPORELLO_DATA, LEPORELLO_CONFIG, LEPORELLO_SECRET and the other variables of docs/configuration.md.

Exit codes
  0  the reply was printed
  1  failed, or invalid arguments; the result stays as it is
`;

const off = `leporello off - removes what connects your agents to Leporello: hooks, base URLs and MCP servers in their
settings files, and Leporello's cache folder.

Usage
  leporello off [flags]

Reads the settings files of Claude Code, Codex, Gemini CLI, Cursor, opencode, pi and Qwen Code in the home
folder and in this folder. Only entries that run Leporello, or that name the gateway's address, are removed;
all others stay. It says what was removed from which file, and what is left for you to do.

Flags
  --dry-run        only list what would be removed
  --originals      also delete the store and the secret in the data folder; no original can be restored then
  --port PORT      port of the gateway; default 8787
  --data DIR       data folder; default ~/.leporello
  --config FILE    configuration, JSON
  --json           {"removed", "left"} on one line
  -h, --help

Environment
  LEPORELLO_PORT, LEPORELLO_DATA, LEPORELLO_CONFIG

Exit codes
  0  nothing is left
  1  something is left for you to do
  2  invalid arguments or configuration
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
  experiment,
  mcp,
  replay,
  savings,
  doctor,
  hook,
  off,
  'bench-ab': benchAb,
  demo,
};
