/** What `--help` prints. Text alone; what the options of the configuration are is told in docs/configuration.md. */
import type { CommandName } from './args.ts';

/** The help of one command, or of all of them. */
export function helpText(topic: CommandName | undefined): string {
  return topic === undefined ? general : commands[topic];
}

const general = `leporello - keeps an LLM agent inside its context window: folds old tool output away, keeps every
original, and hands it back when the model asks.

Usage
  leporello serve                 the gateway: point a client's base URL at it
  leporello compact FILE|-        fold request bodies or a JSONL of conversations, offline
  leporello recall ID             print what was folded away
  leporello replay FILE...        what folding would cost and save on recorded conversations
  leporello demo                  see it work, without any key
  leporello help [COMMAND]        also: leporello COMMAND --help
  leporello --version

Every command but help takes --json: its output as JSON.

Examples
  leporello serve --port 8787
  leporello compact body.json --window 32000 > smaller.json
  leporello recall mem_5h8v0c2k9qtz31ax --lines 10-40

Environment (all options: docs/configuration.md)
  LEPORELLO_CONFIG         configuration file, JSON
  LEPORELLO_DATA           data folder with originals and the secret; default ~/.leporello
  LEPORELLO_PORT           port of the gateway; default 8787
  LEPORELLO_HOST           address to listen on; default 127.0.0.1
  LEPORELLO_OPENAI_URL     upstream of the OpenAI formats; default https://api.openai.com/v1
  LEPORELLO_ANTHROPIC_URL  upstream of the Anthropic format; default https://api.anthropic.com
  LEPORELLO_ADMIN_TOKEN    credential that sees the receipts and memories of all
  LEPORELLO_LOG_LEVEL      debug, info, warn, error or silent; default info
  LEPORELLO_SECRET         what ids and encryption come from; default: made once, kept in the data folder
  Flags come before the environment, the environment before the file.

Exit codes
  0    done
  1    failed, or not everything could be done
  2    arguments or configuration not understood
  130  interrupted
`;

const serve = `leporello serve - the gateway. Clients keep their keys; only their base URL changes.

Usage
  leporello serve [flags]

Flags
  --port PORT            default 8787; 0 takes any free port
  --host HOST            default 127.0.0.1: this machine alone
  --data DIR             originals, folds and the secret; default ~/.leporello
  --config FILE          configuration, JSON
  --openai-url URL       default https://api.openai.com/v1
  --anthropic-url URL    default https://api.anthropic.com
  --log-level LEVEL      debug, info, warn, error or silent; default info
  --lossless             nothing is left out of a tool result when it comes
  --preset NAME          folds finished sub-goals: production (10:1), debugging (3:1), long-horizon (15:1, in
                         levels), cost (12:1); tasks of fewer than 20 calls are left alone
  --set KEY=VALUE        any option of docs/configuration.md; may be repeated
  --json                 tell where it listens as one line of JSON
  -h, --help

Logs go to standard error, as JSON unless a terminal reads them, and never hold content or keys.
Ctrl-C (or SIGTERM) lets requests under way finish; a second one cuts them off.
The gateway serves without a data folder, too: then originals last as long as the process.

Examples
  leporello serve
  leporello serve --port 0 --json
  leporello serve --openai-url http://127.0.0.1:11434/v1 --set triggers.tokenBudget.trigger=60000

Environment
  Each option is a variable as well: LEPORELLO_PORT, LEPORELLO_HOST, LEPORELLO_DATA, LEPORELLO_CONFIG,
  LEPORELLO_TRIGGERS_TOKEN_BUDGET_TRIGGER ... The list is in docs/configuration.md.

Exit codes
  0  stopped when asked
  1  failed
  2  arguments or configuration not understood, or the port cannot be had
`;

const compact = `leporello compact - folds request bodies offline, with the engine of the gateway.

Usage
  leporello compact FILE|- [flags]

FILE is one request body (JSON, on one or many lines) or one conversation a line (JSONL: bodies, or
records with an id and messages); gzip is unpacked; - is standard input. Bodies go to standard output,
one for each that came in; what is neither folded nor laid out smaller stays as it was, byte for byte.
A table of receipts goes to standard error.

Flags
  --format FORMAT      chat (Chat Completions), responses, anthropic (Messages), gemini (generateContent),
                       or auto (default): by what a body holds
  --model MODEL        count and take the window as for this model, also where a body names another;
                       bodies without a model count as gpt-4o (chat), gpt-5 (responses),
                       claude-sonnet-4-5 (anthropic) or gemini-2.5-pro (gemini)
  --window TOKENS      the window; default: the model's
  --threshold BYTES    smaller tool results are never folded; default 1000
  --lossless           nothing is left out of a result when it comes
  --preset NAME        folds finished sub-goals: production, debugging, long-horizon or cost
  --out FILE           write there, when all is done; gzipped when the name ends in .gz
  --data DIR           where originals are kept for leporello recall; default ~/.leporello
  --config FILE        configuration, JSON
  --set KEY=VALUE      any option of docs/configuration.md; may be repeated
  --json               receipts as JSON lines instead of the table
  -h, --help

The tool read_memory is not added: nobody would answer it here. A run depends on nothing that ran before.

Examples
  leporello compact body.json --window 32000 > smaller.json
  leporello compact runs.jsonl.gz --window 8000 --out folded.jsonl --json 2> receipts.jsonl
  cat body.json | leporello compact - --set triggers.tokenBudget=false

Environment
  LEPORELLO_DATA, LEPORELLO_CONFIG and the other variables of docs/configuration.md.

Exit codes
  0    all done
  1    a line could not be read (it is passed on as it is), a body does not fit, or writing failed
  2    arguments or configuration not understood
  130  interrupted; what --out names was not written
`;

const recall = `leporello recall - prints what was folded away.

Usage
  leporello recall ID [flags]

ID stands in the stub that was left in place: mem_ and 16 characters.

Flags
  --query WORDS        only the passages that answer this
  --lines RANGE        only these lines: 10-40, 100-, -20 (the last 20); c1-500 for characters
  --path PATH          only this value of a JSON original: $.items[0].name
  --max-tokens TOKENS  at most so much (o200k_base), with the way to the rest; default: no cap
  --raw                the exact JSON bytes that were taken out
  --data DIR           where to look; default ~/.leporello
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
  1  not there
  2  arguments or configuration not understood
`;

const replay = `leporello replay - recorded conversations through the engine, beside other ways to keep them small.

Usage
  leporello replay FILE... [flags]

FILE holds bodies of requests, one a line (JSONL) or one in all; gzip is unpacked; - is standard input.
Each is taken as a whole conversation and played again from its first reply on; of a log of all requests
of a conversation only the last is. A line in the form of Chat Completions without a model is a recorded
conversation: it gets tools of 15,000 tokens, since recordings rarely hold theirs.
The table tells what each way costs relative to the full context, with prices of three kinds, how large
requests get, and what becomes of the values that the recorded calls used: docs/replay.md.

Flags
  --format FORMAT      auto (default), chat, responses, anthropic or gemini
  --window TOKENS      the window; default 200000
  --prefix TOKENS      in front of recorded conversations; default 15000
  --source NAME        only those whose source begins so (a field of recorded conversations, else the file)
  --limit NUMBER       only so many of each source
  --engine NAME=JSON   one more engine, with a configuration of its own in place of yours; may be repeated
  --html FILE          write a report with charts there
  --threshold BYTES    smaller tool results are never folded; default 1000
  --lossless           nothing is left out of a result when it comes
  --preset NAME        folds finished sub-goals: production, debugging, long-horizon or cost
  --config FILE        configuration, JSON
  --set KEY=VALUE      any option of docs/configuration.md; may be repeated
  --json               the figures as JSON
  -h, --help

Nothing is sent anywhere and nothing is kept. Tokens are those of o200k_base, whatever the model.

Examples
  leporello replay requests.jsonl --html report.html
  leporello replay runs.jsonl.gz --engine 'early={"triggers":{"tokenBudget":{"trigger":60000,"target":9000}}}'

Environment
  LEPORELLO_CONFIG and the other variables of docs/configuration.md.

Exit codes
  0    done
  1    a line could not be read, or writing failed
  2    arguments or configuration not understood
  130  interrupted
`;

const demo = `leporello demo - a coding agent's conversation through the gateway, without any key.

Usage
  leporello demo [--json]

Starts a scripted model and the gateway on this machine, plays a sample conversation turn by turn, and
shows what went out, what was folded, and a recall that the model makes in a live stream. Takes a few
seconds and leaves nothing behind.

Environment
  None.

Exit codes
  0    played
  1    failed
  2    arguments not understood
  130  interrupted
`;

const commands: Readonly<Record<CommandName, string>> = { serve, compact, recall, replay, demo };
