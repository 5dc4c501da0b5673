/**
 * The script of the pages. It shows new requests as they come, times in the zone of the reader, and copies texts. The pages work without it.
 */

/** The most rows of the table of requests. */
const maxRows = 50;

/** @param {ParentNode} root */
function showLocalTimes(root) {
  const today = new Date().toDateString();
  for (const tag of root.querySelectorAll('time')) {
    const at = new Date(tag.dateTime);
    tag.title = tag.dateTime;
    tag.textContent = at.toDateString() === today ? at.toLocaleTimeString() : at.toLocaleString();
  }
}

/** @param {string} text */
async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}

/** @param {HTMLElement} button */
async function copyFor(button) {
  const source = document.getElementById(button.dataset.copy ?? '');
  if (!source) return;
  const isCopied = await copy(source.textContent ?? '');
  if (!isCopied) getSelection()?.selectAllChildren(source);
  const status = button.parentElement?.querySelector('[data-copied]');
  if (status) status.textContent = isCopied ? 'Copied.' : 'Selected: copy it with the keyboard.';
}

/** @param {HTMLTableSectionElement} list */
function follow(list) {
  const state = document.getElementById('state');
  const events = new EventSource('/_leporello/live');
  /** @param {string} text @param {boolean} isLive */
  const show = (text, isLive) => {
    if (!state) return;
    state.textContent = text;
    state.classList.toggle('on', isLive);
  };
  events.addEventListener('open', () => show('live', true));
  events.addEventListener('error', () => show('not connected: trying again', false));
  events.addEventListener('requests', (event) => {
    /** @type {{ rows: string, totals: string }} */
    const { rows, totals } = JSON.parse(event.data);
    const template = document.createElement('template');
    // The gateway has escaped every value in these rows, as in the page itself.
    template.innerHTML = `<table><tbody>${rows}</tbody></table>`;
    showLocalTimes(template.content);
    const fresh = [...template.content.querySelectorAll('tr')].filter(
      (row) => !list.querySelector(`[data-id="${CSS.escape(row.dataset.id ?? '')}"]`),
    );
    for (const row of fresh) row.classList.add('new');
    list.prepend(...fresh);
    while (list.rows.length > maxRows) list.rows[list.rows.length - 1]?.remove();
    document.getElementById('empty')?.remove();
    const sums = document.getElementById('totals');
    if (sums) sums.innerHTML = totals;
  });
}

function start() {
  showLocalTimes(document);
  for (const button of document.querySelectorAll('[data-copy]'))
    if (button instanceof HTMLElement) button.addEventListener('click', () => void copyFor(button));
  const list = document.getElementById('requests');
  if (list instanceof HTMLTableSectionElement) follow(list);
}

// The first paint comes before the next task after a frame. A page in the background gets no frames.
if (document.hidden) start();
else requestAnimationFrame(() => setTimeout(start));
