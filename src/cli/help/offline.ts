/** Contains the help of the commands that need no running gateway: on bodies, originals, receipts, recorded conversations and experiments. */

export const compact = `leporello compact - folds request bodies offline, with the same engine as the gateway.

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

export const recall = `leporello recall - prints an original that was folded away.

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

export const inspect = `leporello inspect - shows what became of a request: why it was folded, what each message was before and
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

export const replay = `leporello replay - replays recorded conversations with the engine, and with other ways to shorten them.

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

export const savings = `leporello savings - reads the session files of your agents: what they cost, and would have cost.

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

export const experiment = `leporello experiment - shows what folding costs or saves, measured on live traffic with a control group
that is not folded (experiment.holdout), and whether it changes what the model does next, with requests that
are sent again (experiment.shadow). The gateway need not run.

Usage
  leporello experiment [flags]

docs/experiments.md says how to turn an experiment on, and how to read its results.

Flags
  --tenant LABEL   whose conversations; default: the tenant that all requests belong to (local)
  --data DIR       data folder; default ~/.leporello
  --config FILE    configuration, JSON
  --json           the results as JSON
  -h, --help

Environment
  LEPORELLO_DATA, LEPORELLO_CONFIG, LEPORELLO_SECRET

Exit codes
  0  printed
  1  there is no memory yet
  2  invalid arguments or configuration
`;

export const benchAb = `leporello bench-ab - runs your own command on each task with and without folding, and compares.

Usage
  leporello bench-ab TASKS [flags] -- COMMAND [ARGUMENTS]

TASKS is a file with one task on each line. For each task, the command runs twice, in an order drawn from a
seed: through Leporello, and through the same gateway with every request unchanged. {task} in an argument is
replaced by the task. The base URLs of the providers and the task are in its environment, too; the key is
your own. Exit code 0 of the command means solved. Prints cost, steps, re-fetches, failed edits and solved
tasks of both arms, with intervals of 95 %. See docs/bench-ab.md, also for the rules that refuse a pair.

Flags
  --seed N             draws the order of the arms; default 1
  --max-usd USD        a run that costs more counts as this much; default 5. Smaller narrows the intervals
  --max-steps N        a run of more steps counts as this many; default 200
  --timeout-seconds N  a run that takes longer is ended, and not solved; default 3600
  --no-namespace       put no name before the prompts; your command puts {namespace} there
  --openai-url URL, --anthropic-url URL  upstreams, as in leporello serve
  --lossless, --preset NAME  options of folding, as in leporello serve
  --config FILE        configuration, JSON
  --set KEY=VALUE      any option of docs/configuration.md; may be repeated
  --json               {"tasks", "solved", "usd", ..., "runs"} on one line
  -h, --help

Examples
  leporello bench-ab tasks.txt --max-usd 2 -- ./solve.sh {task}

Environment
  LEPORELLO_CONFIG and the other variables of docs/configuration.md.

Exit codes
  0    compared
  1    no pair could be compared
  2    invalid arguments or configuration
  130  interrupted
`;
