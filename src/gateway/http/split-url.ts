/** Origin and the rest of an absolute URL, cut by hand: parsing would rewrite the path, and a gateway passes it on as it came. */
export function splitUrl(url: string): { readonly origin: string; readonly target: string } {
  const slash = url.indexOf('/', url.indexOf('://') + 3);
  return slash < 0 ? { origin: url, target: '/' } : { origin: url.slice(0, slash), target: url.slice(slash) };
}
