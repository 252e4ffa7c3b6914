import { readFileSync } from 'node:fs';
import { Hono } from 'hono';
import { compress } from 'hono/compress';
import { html } from 'hono/html';
import { secureHeaders } from 'hono/secure-headers';

/** What Swagger UI consists of, by the type it is served as. */
const FILES = {
  'swagger-ui-bundle.js': 'text/javascript; charset=utf-8',
  'swagger-ui.css': 'text/css; charset=utf-8',
} as const;

const START = `window.ui = SwaggerUIBundle({ url: '/openapi.json', dom_id: '#docs' });`;

/**
 * The API's documentation for people. All of it comes from here: a script of another host would run
 * beside the operators' desk, and could do there whatever an operator can.
 */
export function createDocs(): Hono {
  const docs = new Hono();
  docs.use(
    secureHeaders({
      contentSecurityPolicy: {
        defaultSrc: ["'none'"],
        scriptSrc: ["'self'"],
        // Swagger UI styles its elements one by one.
        styleSrc: ["'self'", "'unsafe-inline'"],
        imgSrc: ["'self'", 'data:'],
        connectSrc: ["'self'"],
        baseUri: ["'none'"],
        frameAncestors: ["'none'"],
      },
    }),
    compress(),
  );
  docs.get('/', (c) =>
    c.html(
      html`<!doctype html>
        <html lang="en">
          <head>
            <meta charset="utf-8" />
            <meta name="viewport" content="width=device-width, initial-scale=1" />
            <title>Payment API</title>
            <link rel="stylesheet" href="/docs/swagger-ui.css" />
            <link rel="icon" href="data:," />
          </head>
          <body>
            <div id="docs"></div>
            <script src="/docs/swagger-ui-bundle.js"></script>
            <script src="/docs/start.js"></script>
          </body>
        </html>`,
    ),
  );
  docs.get('/start.js', (c) => c.body(START, 200, { 'content-type': 'text/javascript' }));
  for (const [name, type] of Object.entries(FILES)) {
    let text: string | undefined;
    docs.get(`/${name}`, (c) => {
      text ??= readFileSync(require.resolve(`swagger-ui-dist/${name}`), 'utf8');
      return c.body(text, 200, { 'content-type': type, 'cache-control': 'public, max-age=86400' });
    });
  }
  return docs;
}
