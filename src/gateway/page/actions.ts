/**
 * Carries out what a reader decides on a page: pin a tool, undo the folds of a conversation, forget an original. A request that changes
 * something must come from these pages themselves. Decisions apply from the next request on.
 */
import { pageRoot } from '../../page/frame.ts';
import { withFolds, withPin, withUndone, withoutPin } from '../../store/controls.ts';
import { readBody } from '../http/body.ts';
import { type GatewayRequest, type GatewayResponse, headerOf, jsonResponse } from '../http/http.ts';
import { LeporelloError } from '../../errors.ts';
import { type PageData, type Viewer, decisionsOf, findReceipt } from './data.ts';

/** Bytes of a form at most. */
const maxFormBytes = 16_384;

/** Carries out a decision, and sends the reader back to the page. */
export async function decide(
  sources: PageData,
  viewer: Viewer,
  request: GatewayRequest,
  path: string,
): Promise<GatewayResponse> {
  const action = actions[path.slice(pageRoot.length)];
  if (!action) return jsonResponse(405, { error: `${path} answers only GET and HEAD, not POST.` });
  if (!isSameOrigin(request))
    return jsonResponse(403, { error: 'Only the pages of this gateway may change something.' });
  let form: URLSearchParams;
  try {
    form = new URLSearchParams(new TextDecoder().decode(await readBody(request.body, maxFormBytes)));
  } catch (error) {
    if (!LeporelloError.isInstance(error) || error.code !== 'body-too-large') throw error;
    return jsonResponse(413, { error: error.message });
  }
  const to = await action(sources, viewer, form);
  return to === undefined
    ? jsonResponse(404, {
        error: 'What the form names does not exist any more. Go back and reload the page.',
      })
    : { status: 303, headers: [['location', to]], body: undefined };
}

/**
 * True when a browser says that the request comes from a page of this very host and port. Allowed hosts are not enough: another program on
 * this machine may serve pages on another port.
 */
function isSameOrigin({ headers }: GatewayRequest): boolean {
  const origin = headerOf(headers, 'origin');
  const host = headerOf(headers, 'host');
  const site = headerOf(headers, 'sec-fetch-site');
  if (site !== undefined && site !== 'same-origin') return false;
  return host !== undefined && (origin === `http://${host}` || origin === `https://${host}`);
}

/** Returns the path to go to; undefined when what the form names does not exist. */
type PageAction = (sources: PageData, viewer: Viewer, form: URLSearchParams) => Promise<string | undefined>;

const pinOrNot =
  (change: typeof withPin): PageAction =>
  async (sources, viewer, form) => {
    const tool = form.get('tool') ?? '';
    const receipt = form.get('receipt');
    if (tool === '' || tool.length > 200) return undefined;
    if (receipt !== null) {
      const found = await findReceipt(sources, viewer, receipt);
      if (!found) return undefined;
      await sources.controls.change(found.tenant, (controls) => change(controls, tool));
      // The same replacement stays in sight.
      const edit = form.get('edit') ?? '';
      const shown = /^\d{1,6}$/.test(edit) ? `?edit=${edit}#fold` : '';
      return `${pageRoot}requests/${encodeURIComponent(receipt)}${shown}`;
    }
    for (const { tenant, pinnedTools } of await decisionsOf(sources, viewer))
      if (pinnedTools.includes(tool))
        await sources.controls.change(tenant, (controls) => change(controls, tool));
    return `${pageRoot}setup`;
  };

const undoOrRedo =
  (change: typeof withUndone): PageAction =>
  async (sources, viewer, form) => {
    const receipt = form.get('receipt') ?? '';
    const found = await findReceipt(sources, viewer, receipt);
    const beginning = found?.kept.conversation;
    if (!found || beginning === undefined) return undefined;
    await sources.controls.change(found.tenant, (controls) => change(controls, beginning, Date.now()));
    return `${pageRoot}requests/${encodeURIComponent(receipt)}`;
  };

const actions: Readonly<Record<string, PageAction>> = {
  pin: pinOrNot(withPin),
  unpin: pinOrNot(withoutPin),
  undo: undoOrRedo(withUndone),
  redo: undoOrRedo(withFolds),
  async forget({ encryptedStore }, { tenant }, form) {
    const id = form.get('id') ?? '';
    await (tenant === undefined
      ? encryptedStore.forgetAny(id)
      : encryptedStore.forget(tenant, { original: id }));
    return `${pageRoot}originals`;
  },
};
