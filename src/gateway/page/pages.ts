/**
 * Serves the pages under `/_leporello/`, their stream of new requests, and the decisions that are made on them. Only a reader on this
 * machine (tenant `local`) or the holder of the admin token is answered. The module is loaded with the first page.
 */
import { foldRepeatedBy, requestReceipt } from '../../receipts/detail.ts';
import { documentOf, icon, messagePageOf, pageRoot, type PageContent } from '../../page/frame.ts';
import type { Html } from '../../page/html.ts';
import { originalPage, originalsPage, recallsPage } from '../../page/memory.ts';
import { overviewPage } from '../../page/overview.ts';
import { requestPage } from '../../page/request.ts';
import { sessionPage } from '../../page/session.ts';
import { type PageClients, setupPage } from '../../page/setup.ts';
import { readOriginal } from '../../recall/read-original.ts';
import { LeporelloError } from '../../errors.ts';
import { toBase64 } from '../../store/platform.ts';
import { type GatewayRequest, type GatewayResponse, type HeaderList, headerOf } from '../http/http.ts';
import type { GatewayExperiment } from '../options.ts';
import { type TenantRule, hasCredential } from '../routing/tenant.ts';
import { decide } from './actions.ts';
import {
  type OwnedReceipt,
  type PageData,
  type Viewer,
  decisionsOf,
  findReceipt,
  maxSearched,
  newestReceipts,
  originalBytes,
  originalText,
  originalsIn,
  recallCounts,
  recallsIn,
  searchOriginals,
} from './data.ts';
import { liveStream } from './live.ts';

export type PageDeps = PageData & {
  readonly tenants: TenantRule;
  readonly adminToken: string | undefined;
  readonly pageClients: PageClients | undefined;
  readonly experiment: GatewayExperiment | undefined;
};

type PageRoute = { readonly path: string; readonly query: URLSearchParams };

/** Requests that the first page shows. */
const maxListed = 50;

/** The receipts of one tenant that are looked through: as many as are kept. Those of all tenants together would take seconds. */
const maxKept = 2_000;

/** Originals that the list shows. */
const maxOriginalsListed = 200;

/** Characters of an original beside its replacement, and on its own page. */
const maxBeside = 20_000;
const maxAlone = 2_000_000;

/** Answers a request for a page. */
export async function answerPage(
  deps: PageDeps,
  request: GatewayRequest,
  route: PageRoute,
): Promise<GatewayResponse> {
  const response = await answerTo(deps, request, route);
  // A site that opened the page loses its handle to it. The browser starts another process for that, which takes 70 ms and more.
  const site = headerOf(request.headers, 'sec-fetch-site');
  if (site === 'none' || site === 'same-origin') return response;
  return { ...response, headers: [...response.headers, ['cross-origin-opener-policy', 'same-origin']] };
}

async function answerTo(deps: PageDeps, request: GatewayRequest, route: PageRoute): Promise<GatewayResponse> {
  const viewer = viewerOf(deps, request);
  if (viewer === undefined) return refused(deps);
  try {
    if (request.method === 'POST') return await decide(deps, viewer, request, route.path);
    const asset = assets[route.path];
    if (asset) return guardedResponse(200, [['content-type', asset.type]], await asset.read());
    if (route.path === `${pageRoot}live`) return liveStream(deps, viewer);
    const content = await contentOf(deps, viewer, request, route);
    return await (content ? pageResponse(200, content) : pageResponse(404, notFound));
  } catch (error) {
    if (!LeporelloError.isInstance(error)) throw error;
    return pageResponse(
      503,
      messagePageOf('The store cannot be read', 'Try again in a moment. Requests are served all the same.'),
    );
  }
}

const notFound = messagePageOf(
  'There is nothing here',
  'The link may be old: receipts are kept for 30 days, the newest 2,000 of each tenant.',
);

/** Returns whose data is shown; undefined for a request from elsewhere. */
function viewerOf({ tenants, adminToken }: PageDeps, request: GatewayRequest): Viewer | undefined {
  if (adminToken !== undefined && hasCredential(request, adminToken)) return { tenant: undefined };
  const tenant = tenants.tenantOf(request);
  return tenant.label === 'local' && tenant.isVerified ? { tenant: tenant.label } : undefined;
}

async function refused({ adminToken }: PageDeps): Promise<GatewayResponse> {
  const sentence =
    adminToken === undefined
      ? 'Open it on the machine of the gateway, with a gateway that listens on 127.0.0.1, or set an adminToken.'
      : 'Send the adminToken as the password; any user name will do.';
  const response = await pageResponse(
    adminToken === undefined ? 403 : 401,
    messagePageOf('This page is for the operator', sentence),
  );
  const ask: HeaderList = adminToken === undefined ? [] : [['www-authenticate', 'Basic realm="Leporello"']];
  return { ...response, headers: [...response.headers, ...ask] };
}

async function contentOf(
  deps: PageDeps,
  viewer: Viewer,
  request: GatewayRequest,
  { path, query }: PageRoute,
): Promise<PageContent | undefined> {
  const [, kind = '', rest] = /^\/_leporello\/([^/]*)(?:\/(.+))?$/.exec(path) ?? [];
  if (rest === undefined) {
    if (kind === '') return overview(deps, viewer, Number(query.get('newer')) || 0);
    if (kind === 'recalls') return recallLog(deps, viewer, query);
    if (kind === 'originals') return originalList(deps, viewer, query.get('query') ?? '');
    return kind === 'setup' ? setup(deps, viewer, request) : undefined;
  }
  if (kind === 'sessions') return session(deps, viewer, decoded(rest));
  if (kind === 'requests') return requestView(deps, viewer, rest, Number(query.get('edit') ?? 0) || 0);
  return kind === 'originals' ? original(deps, viewer, rest) : undefined;
}

async function overview(deps: PageDeps, viewer: Viewer, skipped: number): Promise<PageContent> {
  const last = (viewer.tenant === undefined ? maxSearched : maxKept) - maxListed;
  const newer = Math.min(Math.max(0, Math.floor(skipped)), last);
  const receipts = await newestReceipts(deps, viewer, newer + maxListed + 1);
  return overviewPage({
    totals: deps.totals.total(viewer.tenant),
    sessions: deps.totals.sessions(viewer.tenant),
    receipts: receipts.slice(newer, newer + maxListed).map(({ kept }) => kept),
    newer,
    older: receipts.length <= newer + maxListed ? 'none' : newer < last ? 'listed' : 'not listed',
    experiments: await experimentsOf(deps, viewer),
    startedAt: deps.archive.startedAt(),
  });
}

/** Returns the results of experiments as text; none without an experiment, and none while the store cannot be read. */
async function experimentsOf({ experiment }: PageDeps, { tenant }: Viewer): Promise<readonly string[]> {
  if (!experiment || tenant === undefined) return [];
  const { spellResults } = await import('../../experiment/spell.ts');
  return experiment.report(tenant).then(spellResults, () => []);
}

async function session(deps: PageDeps, viewer: Viewer, name: string): Promise<PageContent> {
  const tenant = viewer.tenant ?? deps.totals.sessions(undefined).find((row) => row.name === name)?.tenant;
  const receipts = await newestReceipts(deps, { tenant }, tenant === undefined ? maxSearched : maxKept);
  const own = receipts.flatMap(({ kept }) => (kept.receipt.session?.toWellFormed() === name ? [kept] : []));
  return sessionPage(name, own);
}

async function requestView(
  deps: PageDeps,
  viewer: Viewer,
  id: string,
  shown: number,
): Promise<PageContent | undefined> {
  const found = await findReceipt(deps, viewer, id);
  if (!found) return undefined;
  const { tenant, kept } = found;
  const others = await newestReceipts(deps, { tenant }, maxSearched);
  const fold = foldRepeatedBy(
    kept,
    others.map((other) => other.kept),
  );
  const edits = (kept.detail && kept.detail.edits.length > 0 ? kept : fold)?.detail?.edits ?? [];
  const at = Math.max(0, Math.min(Math.trunc(shown), edits.length - 1));
  const { pinnedTools, undone } = await deps.controls.find(tenant);
  return requestPage({
    kept,
    fold,
    shown: at,
    original: await originalText(deps, { tenant }, edits[at]?.memory, maxBeside),
    recalls: recallCounts(recallsIn(others)),
    pinnedTools,
    isUndone: undone.some(({ beginning }) => beginning === kept.conversation),
  });
}

async function recallLog(deps: PageDeps, viewer: Viewer, query: URLSearchParams): Promise<PageContent> {
  const receipts = await newestReceipts(deps, viewer, maxSearched);
  const originals = originalsIn(receipts);
  return recallsPage({
    recalls: recallsIn(receipts),
    onlyMisses: query.get('misses') === '1',
    originals: originals.length,
    recalled: originals.filter(({ recalls }) => recalls > 0).length,
  });
}

async function originalList(deps: PageDeps, viewer: Viewer, query: string): Promise<PageContent> {
  const all = originalsIn(await newestReceipts(deps, viewer, maxSearched));
  const found = query === '' ? all : await searchOriginals(deps, all, query);
  return originalsPage({ query, originals: found.slice(0, maxOriginalsListed), total: all.length });
}

async function original(deps: PageDeps, viewer: Viewer, id: string): Promise<PageContent | undefined> {
  const bytes = await originalBytes(deps, viewer, id);
  if (!bytes) return undefined;
  const { text } = readOriginal(new TextDecoder().decode(bytes));
  return originalPage({ id, text: text.slice(0, maxAlone), bytes: bytes.length });
}

async function setup(deps: PageDeps, viewer: Viewer, { headers }: GatewayRequest): Promise<PageContent> {
  const decisions = await decisionsOf(deps, viewer);
  const receipts: readonly OwnedReceipt[] = decisions.some(({ undone }) => undone.length > 0)
    ? await newestReceipts(deps, viewer, maxSearched)
    : [];
  const newestOf = (beginning: string) =>
    receipts.find(({ kept }) => requestReceipt(kept) && kept.conversation === beginning)?.kept.id;
  const undone = decisions.flatMap((one) =>
    one.undone.map(({ beginning, at }) => ({ at, receipt: newestOf(beginning) })),
  );
  const url = `http://${headerOf(headers, 'host') ?? '127.0.0.1'}`;
  return setupPage({
    url,
    snippets: deps.pageClients?.snippets(url) ?? [],
    pinnedTools: [...new Set(decisions.flatMap(({ pinnedTools }) => pinnedTools))],
    undone,
    findings: deps.pageClients?.findings?.(),
  });
}

function decoded(name: string): string {
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}

// Responses. Nothing from elsewhere may load, no page may frame these, and no cache may keep them.

const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join('; ');

const guards: HeaderList = [
  ['x-content-type-options', 'nosniff'],
  ['referrer-policy', 'same-origin'],
  ['cross-origin-resource-policy', 'same-origin'],
  ['cache-control', 'no-store'],
];

async function pageResponse(status: number, content: PageContent): Promise<GatewayResponse> {
  const { style, digest } = await styles();
  const [beginning, ending] = documentOf(content, style);
  const headers: HeaderList = [
    ['content-type', 'text/html; charset=utf-8'],
    ['content-security-policy', `${policy}; style-src 'sha256-${digest}'`],
  ];
  if (!content.later) return guardedResponse(status, headers, encoder.encode(beginning + ending));
  return guardedResponse(status, headers, inTwo(beginning, content.later, ending));
}

type StyleSheet = { readonly style: string; readonly digest: string };

let styleSheet: Promise<StyleSheet> | undefined;

/** Reads the style sheet once; again after a failure. */
function styles(): Promise<StyleSheet> {
  styleSheet ??= readStyleSheet();
  styleSheet.catch(() => (styleSheet = undefined));
  return styleSheet;
}

/** Reads the style sheet. It is in every page, so that the browser need not ask for it before it can paint; the policy allows its digest. */
async function readStyleSheet(): Promise<StyleSheet> {
  const files = await Promise.all(['page.css', 'views.css'].map(assetFile));
  const style = files.map((bytes) => new TextDecoder().decode(bytes)).join('');
  const digest = await crypto.subtle.digest('SHA-256', encoder.encode(style));
  return { style, digest: toBase64(new Uint8Array(digest)) };
}

const encoder = new TextEncoder();

/** Sends the beginning at once. */
async function* inTwo(beginning: string, later: Promise<Html>, ending: string): AsyncGenerator<Uint8Array> {
  yield encoder.encode(beginning);
  yield encoder.encode((await later).markup + ending);
}

type Asset = { readonly type: string; readonly read: () => Promise<Uint8Array> };

const assets: Readonly<Record<string, Asset>> = {
  [`${pageRoot}page.js`]: { type: 'text/javascript; charset=utf-8', read: () => assetFile('page.js') },
  [`${pageRoot}icon.svg`]: { type: 'image/svg+xml', read: async () => new TextEncoder().encode(icon) },
};

/**
 * Reads a file of the folder `page`, which lies beside this one in the sources and in the package. The module is not imported, because
 * `leporello/fetch` is bundled for runtimes without it.
 */
function assetFile(name: string): Promise<Uint8Array> {
  return process
    .getBuiltinModule('node:fs/promises')
    .readFile(new URL(`../../page/${name}`, import.meta.url));
}

function guardedResponse(
  status: number,
  headers: HeaderList,
  body: NonNullable<GatewayResponse['body']>,
): GatewayResponse {
  return { status, headers: [...headers, ...guards], body };
}
