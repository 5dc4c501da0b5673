/**
 * An extension of pi, which `leporello wrap pi` loads for one run: it sets the base URLs of pi's built-in providers to the gateway. pi has no
 * variable for them, and Leporello writes no settings file. It runs inside pi, so it imports nothing.
 */

/** The part of pi's interface for extensions that is used here. */
type PiExtensions = {
  registerProvider(name: string, settings: { readonly baseUrl: string }): void;
};

export default function connectToGateway(pi: PiExtensions): void {
  const url = process.env['PI_LEPORELLO_URL'];
  if (!url) return;
  pi.registerProvider('anthropic', { baseUrl: url });
  pi.registerProvider('openai', { baseUrl: `${url}/v1` });
  pi.registerProvider('google', { baseUrl: `${url}/v1beta` });
}
