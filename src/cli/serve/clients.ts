/** How to point the usual clients at the gateway, each in its own words. Text alone. */

/** `url` is the gateway's, without a path and without a slash at the end. */
export function clientHelp(url: string): string {
  return `Point a client here; its key stays its own.

  OpenAI SDK      OPENAI_BASE_URL=${url}/v1        (or baseURL / base_url; chat and responses)
  Anthropic SDK   ANTHROPIC_BASE_URL=${url}        (or baseURL / base_url)
  Claude Code     ANTHROPIC_BASE_URL=${url} ENABLE_TOOL_SEARCH=true claude
                  (without ENABLE_TOOL_SEARCH, some versions send all tool definitions in every request)
  Gemini SDK      httpOptions.baseUrl = ${url}     (Gemini CLI: GOOGLE_GEMINI_BASE_URL=${url})
  Codex           openai_base_url = "${url}/v1"    in ~/.codex/config.toml (the variable is ignored);
                  or as a provider of your own, [model_providers.NAME], with
                  base_url = "${url}/v1", env_key = "OPENAI_API_KEY", wire_api = "responses"
  curl            curl ${url}/v1/chat/completions -H "authorization: Bearer $OPENAI_API_KEY" \\
                    -H "content-type: application/json" \\
                    -d '{"model":"gpt-4o-mini","messages":[{"role":"user","content":"Hello"}]}'

  More on each client: docs/clients.md
  Receipts of all requests: ${url}/_leporello/receipts (from another machine: with the key of the request)
`;
}

/** The address to write into a client for an address that was listened on. */
export function urlFor(host: string, port: number): string {
  const reachable = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host;
  return `http://${reachable.includes(':') ? `[${reachable}]` : reachable}:${port}`;
}

export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127(?:\.\d{1,3}){3}$/.test(host);
}
