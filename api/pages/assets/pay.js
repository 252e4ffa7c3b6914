// @ts-check
/*
 * The payer's page, made quick: without this file it works by plain form posts.
 *
 * Every way to pay goes through `pay`, which holds one lock: in this tab, and among tabs. What was
 * sent is kept until its outcome is known, so that a reload or a repeat sends the same number. It is
 * an accelerator, never a boundary: the server decides, whatever is sent from here.
 */

/**
 * @typedef {{state: string, version: number, isOver: boolean, html: string, go: string | null,
 *   retryAfterMs: number | null, because: 'switching' | 'unknown' | 'refused' | null}} Said
 */

const path = location.pathname;
const KEY = `pay:${path.split('/').pop()}`;
/** @type {Record<'sending' | 'otherTab' | 'unreachable' | 'switching' | 'refused' | 'stillNothing', string>} */
const words = JSON.parse(document.getElementById('words')?.dataset['words'] ?? '{}');
const tabs = 'BroadcastChannel' in window ? new BroadcastChannel(KEY) : undefined;

/** Sends of one press before the payer is asked to press again, under the same number. */
const SENDS_MAX = 30;
const SEND_TIMEOUT_MS = 20_000;
const RETRY_MS = 1_000;
const RETRY_MAX_MS = 5_000;
const POLL_MS = 2_000;
const STREAM_AGAIN_MS = 30_000;

let busy = false;
/** Counts presses: one that the browser froze must not unlock a later one. */
let turn = 0;
let message = '';
/** @type {EventSource | undefined} */
let stream;
/** @type {ReturnType<typeof setTimeout> | undefined} */
let polling;
let shownAt = performance.now();

const main = () => /** @type {HTMLElement} */ (document.getElementById('pay'));
/** @param {number} ms */
const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// ---------------------------------------------------------------------------------------------
// Paying

document.addEventListener('submit', (event) => {
  const form = event.target;
  if (!(form instanceof HTMLFormElement) || !form.matches('[data-pay]')) return;
  event.preventDefault();
  const choice = new FormData(form).get('choice');
  if (typeof choice === 'string') void pay(choice);
});

/** @param {string} choice the request number and the channel */
async function pay(choice) {
  if (busy) return;
  busy = true;
  const own = ++turn;
  lock(true, words.sending);
  try {
    await alone(choice, send);
  } finally {
    if (own === turn) {
      busy = false;
      lock(false, message);
    }
  }
}

/**
 * Runs while no other tab of this order does; if one does, waits for its end and shows the outcome.
 * @param {string} choice
 * @param {(choice: string) => Promise<void>} run
 */
async function alone(choice, run) {
  if (!navigator.locks) return run(choice);
  await navigator.locks.request(KEY, { ifAvailable: true }, async (mine) => {
    if (!mine) return afterOtherTab();
    tabs?.postMessage('sending');
    try {
      await run(choice);
    } finally {
      tabs?.postMessage('sent');
    }
  });
}

async function afterOtherTab() {
  lock(true, words.otherTab);
  // However that tab ends, its lock ends with it.
  await navigator.locks.request(KEY, { mode: 'shared' }, () => undefined);
  message = '';
  await look();
}

/** @param {string} wanted */
async function send(wanted) {
  let choice = keep(wanted);
  for (let sends = 1; sends <= SENDS_MAX; sends++) {
    const said = await post(choice);
    if (said === 'gone') return location.reload();
    if (said && said.because !== 'switching' && said.because !== 'unknown') {
      forget();
      message = said.because === 'refused' && !said.isOver ? words.refused : '';
      show(said, true);
      // What was kept had ended long ago: now for what was pressed.
      if (choice !== wanted && main().querySelector('[data-pay]') && !said.go) {
        choice = keep(wanted);
        continue;
      }
      if (said.go) {
        tabs?.postMessage('sent');
        location.assign(said.go);
        // Until the browser has left: nothing is to be pressed here any more.
        await wait(SEND_TIMEOUT_MS);
      }
      return;
    }
    message = said?.because === 'switching' ? words.switching : words.unreachable;
    if (said) show(said);
    lock(true, message);
    await wait(said?.retryAfterMs ?? Math.min(RETRY_MS * sends, RETRY_MAX_MS));
  }
  message = words.stillNothing;
}

/**
 * @param {string} choice
 * @returns {Promise<Said | 'gone' | undefined>} undefined: nobody knows whether it arrived; `gone`: the
 *   page itself is outdated
 */
async function post(choice) {
  try {
    const response = await fetch(path + location.search, {
      method: 'POST',
      headers: { accept: 'application/json' },
      body: new URLSearchParams({ choice }),
      signal: AbortSignal.timeout(SEND_TIMEOUT_MS),
    });
    if (response.ok) return await response.json();
    return response.status >= 400 && response.status < 500 ? 'gone' : undefined;
  } catch {
    return undefined;
  }
}

/**
 * What was sent and has no known outcome is sent again, under its number, until it has one.
 * @param {string} choice
 */
function keep(choice) {
  const channelOf = (/** @type {string} */ text) => text.split(' ')[1];
  try {
    const kept = localStorage.getItem(KEY);
    if (kept && channelOf(kept) === channelOf(choice)) return kept;
    localStorage.setItem(KEY, choice);
  } catch {
    // No storage: the number follows from the order all the same.
  }
  return choice;
}

function forget() {
  try {
    localStorage.removeItem(KEY);
  } catch {
    // As above.
  }
}

tabs?.addEventListener('message', ({ data }) => {
  if (busy) return;
  if (data !== 'sending') {
    lock(false, '');
    void look();
  } else if (navigator.locks) void afterOtherTab().then(() => lock(busy, busy ? message : ''));
  else lock(true, words.otherTab);
});

/**
 * @param {boolean} locked
 * @param {string} text
 */
function lock(locked, text) {
  message = text;
  for (const button of main().querySelectorAll('[data-pay] button')) {
    button.setAttribute('aria-disabled', String(locked));
  }
  const said = document.getElementById('said');
  if (said && said.textContent !== text) said.textContent = text;
}

// ---------------------------------------------------------------------------------------------
// Showing how it stands

/**
 * @param {Said} said
 * @param {boolean} [anew] also when nothing has moved: what is offered may be another thing
 */
function show(said, anew = false) {
  const before = main();
  const shown = Number(before.dataset['version']);
  if (said.version < shown) return;
  const moved = said.state !== before.dataset['state'];
  if (!anew && !moved && said.version === shown) return;
  const template = document.createElement('template');
  template.innerHTML = said.html;
  const next = template.content.querySelector('main');
  if (!next) return;
  const wasOpen = !moved && before.querySelector('details')?.open;
  const focused = placeOfFocus(before);
  before.replaceWith(next);
  if (wasOpen) next.querySelector('details')?.setAttribute('open', '');
  shownAt = performance.now();
  lock(busy, message);
  tick();
  const heading = document.getElementById('heading');
  if (moved && heading) {
    document.title = heading.textContent ?? document.title;
    heading.focus({ preventScroll: true });
  } else if (focused) {
    (next.querySelectorAll(focused.tag)[focused.index] ?? heading)?.focus({ preventScroll: true });
  }
  if (said.isOver) {
    forget();
    stopFollowing();
  }
}

/**
 * Where the keyboard is, for the same place in what is shown next: focus goes with its element.
 * @param {HTMLElement} shown
 */
function placeOfFocus(shown) {
  const element = document.activeElement;
  if (!element || !shown.contains(element)) return undefined;
  const tag = /** @type {keyof HTMLElementTagNameMap} */ (element.localName);
  return { tag, index: [...shown.querySelectorAll(tag)].findIndex((one) => one === element) };
}

/** Asks how it stands now. */
async function look() {
  try {
    const response = await fetch(`${path}/state${location.search}`, {
      signal: AbortSignal.timeout(SEND_TIMEOUT_MS),
    });
    if (response.ok) show(await response.json());
  } catch {
    // The next look tells.
  }
}

/** Told by the server as it changes; asked for where the stream does not come through. */
function follow() {
  if (main().dataset['over'] === 'true' || stream) return;
  stream = new EventSource(`${path}/events${location.search}`);
  stream.addEventListener('state', (event) => {
    clearTimeout(polling);
    polling = undefined;
    show(JSON.parse(event.data));
  });
  stream.addEventListener('error', () => {
    poll();
    if (stream?.readyState !== EventSource.CLOSED) return;
    stream = undefined;
    setTimeout(follow, STREAM_AGAIN_MS);
  });
}

function poll() {
  if (polling !== undefined || main().dataset['over'] === 'true') return;
  polling = setTimeout(async () => {
    polling = undefined;
    await look();
    if (stream?.readyState !== EventSource.OPEN) poll();
  }, POLL_MS);
}

function stopFollowing() {
  stream?.close();
  stream = undefined;
  clearTimeout(polling);
  polling = undefined;
}

/** The time left, by the server's clock: the payer's own may be wrong. */
function tick() {
  const { deadline, now } = main().dataset;
  const place = document.getElementById('countdown');
  if (!deadline || !place) return;
  const left = Number(deadline) - (Number(now) + performance.now() - shownAt);
  const seconds = Math.max(0, Math.ceil(left / 1000));
  const two = (/** @type {number} */ value) => String(value).padStart(2, '0');
  const [h, m, s] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60];
  place.textContent = h > 0 ? `${h}:${two(m)}:${two(s)}` : `${two(m)}:${two(s)}`;
  // Once, when it is over: the page then says so.
  if (seconds === 0 && !main().dataset['asked']) {
    main().dataset['asked'] = 'true';
    setTimeout(look, 500);
  }
}

// A page that the browser kept while the payer was away may be outdated.
window.addEventListener('pageshow', ({ persisted }) => {
  if (!persisted) return;
  turn += 1;
  busy = false;
  lock(false, '');
  void look();
  follow();
});
window.addEventListener('pagehide', stopFollowing);
document.addEventListener('visibilitychange', () => {
  if (document.visibilityState === 'visible') void look();
});

setInterval(tick, 500);
tick();
follow();
