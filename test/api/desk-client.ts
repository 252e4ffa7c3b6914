import type { Answer, ApiHarness } from './api-harness';

/** What a browser says of a form that a page of ours sent. */
export const OWN = { origin: 'https://pay.example', 'sec-fetch-site': 'same-origin' };

/** Somebody at the desk without a browser: what a page holds, and what its forms send. */
export class DeskClient {
  cookie: string | undefined;
  csrf = '';

  constructor(private readonly api: ApiHarness) {}

  static async loggedIn(api: ApiHarness, key: string): Promise<DeskClient> {
    const client = new DeskClient(api);
    const answer = await client.login(key);
    if (answer.status !== 303) throw new Error(`no login: ${answer.status} ${answer.body}`);
    await client.get('');
    return client;
  }

  async login(key: string, more: Record<string, string> = {}, headers: object = OWN) {
    const answer = await this.send('/login', { api_key: key, ...more }, headers);
    this.keep(answer);
    return answer;
  }

  async get(path: string, headers: object = {}): Promise<Answer> {
    const answer = await this.api.ask('GET', `/ops/ui${path}`, {
      key: null,
      headers: { ...this.cookies(), ...headers },
    });
    this.csrf = /name="csrf" value="([^"]+)"/.exec(answer.body)?.[1] ?? this.csrf;
    return answer;
  }

  /** A form of a page of ours, with its token. */
  post(path: string, fields: Record<string, string> = {}, headers: object = OWN) {
    return this.send(path, { csrf: this.csrf, ...fields }, headers);
  }

  send(path: string, fields: Record<string, string>, headers: object): Promise<Answer> {
    return this.api.ask('POST', `/ops/ui${path}`, {
      key: null,
      raw: new URLSearchParams(fields).toString(),
      headers: {
        'content-type': 'application/x-www-form-urlencoded',
        ...this.cookies(),
        ...headers,
      },
    });
  }

  private keep({ headers }: Answer): void {
    this.cookie = /desk_session=([^;]+)/.exec(headers.get('set-cookie') ?? '')?.[0] ?? this.cookie;
  }

  private cookies(): Record<string, string> {
    return this.cookie === undefined ? {} : { cookie: this.cookie };
  }
}

/** The value of a form's hidden field, of the form that acts so. */
export function hiddenOf(page: string, form: string, name: string): string {
  const start = page.indexOf(`<details class="act" id="${form}"`);
  const found = new RegExp(`name="${name}" value="([^"]*)"`).exec(page.slice(start));
  if (start < 0 || !found) throw new Error(`${form} has no ${name}`);
  return found[1]!;
}

/** Every hidden field of that form, as a browser would send it. */
export function formOf(page: string, form: string): Record<string, string> {
  const start = page.indexOf(`<details class="act" id="${form}"`);
  if (start < 0) throw new Error(`the page has no form ${form}`);
  const html = page.slice(start, page.indexOf('</form>', start));
  return Object.fromEntries(
    [...html.matchAll(/<input type="hidden" name="([^"]+)" value="([^"]*)"/g)].map((found) => [
      found[1]!,
      found[2]!,
    ]),
  );
}

/** The order's page at the desk. */
export function pageOf(api: ApiHarness, orderId: string): string {
  return `/orders/${api.merchantId}/${orderId}`;
}

/** The order's acts, the oldest first. */
export async function actsOf(api: ApiHarness, orderId: string) {
  const { rows } = await api.pool.query<{ kind: string; status: string; amount_minor: number }>(
    'select kind, status, amount_minor from operator_acts where order_id = $1 order by act_id',
    [orderId],
  );
  return rows;
}
