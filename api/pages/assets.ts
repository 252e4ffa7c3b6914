import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { Hono } from 'hono';
import { compress } from 'hono/compress';

const TYPES: Record<string, string> = {
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
};
const FOLDER = path.join(__dirname, 'assets');
const YEAR_S = 31_536_000;

/** The files that pages load, each under an address that changes with its content. */
export class Assets {
  readonly #files = new Map<string, { body: string; type: string; url: string }>();

  /** @throws Error when a file is missing: a page would come without it */
  constructor(names: readonly string[]) {
    for (const name of names) {
      const body = readFileSync(path.join(FOLDER, name), 'utf8');
      const hash = createHash('sha256').update(body).digest('base64url').slice(0, 12);
      const type = TYPES[path.extname(name)];
      if (!type) throw new Error(`${name} is of no type that is served`);
      this.#files.set(name, { body, type, url: `/assets/${hash}/${name}` });
    }
  }

  /** The file's address. */
  url(name: string): string {
    const file = this.#files.get(name);
    if (!file) throw new Error(`there is no file ${name} to load`);
    return file.url;
  }

  /** Serves them for good; an address of another content gets today's, which is not kept. */
  app(): Hono {
    const app = new Hono();
    app.use(compress());
    app.get('/:hash/:name', (c) => {
      const file = this.#files.get(c.req.param('name'));
      if (!file) return c.notFound();
      const isCurrent = file.url === c.req.path;
      return c.body(file.body, 200, {
        'content-type': file.type,
        'x-content-type-options': 'nosniff',
        'cache-control': isCurrent ? `public, max-age=${YEAR_S}, immutable` : 'no-store',
      });
    });
    return app;
  }
}
