import type { Child } from 'hono/jsx';
import { html } from 'hono/html';
import type { Assets } from './assets';

/** One whole page. Without a script where there is none to load. */
export function document(input: {
  assets: Assets;
  lang: string;
  title: string;
  styles: readonly string[];
  scripts: readonly string[];
  /** Asks a browser without JavaScript to come again: seconds, and where if elsewhere. */
  refresh?: { seconds: number; url?: string; always?: boolean } | undefined;
  children: Child;
}) {
  const { assets, lang, title, styles, scripts, refresh, children } = input;
  const meta = refresh && (
    <meta
      http-equiv="refresh"
      content={refresh.url ? `${refresh.seconds};url=${refresh.url}` : `${refresh.seconds}`}
    />
  );
  return html`<!doctype html>${(
      <html lang={lang}>
        <head>
          <meta charset="utf-8" />
          <meta name="viewport" content="width=device-width, initial-scale=1" />
          <meta name="robots" content="noindex" />
          <meta name="color-scheme" content="light dark" />
          <title>{title}</title>
          {styles.map((name) => (
            <link rel="stylesheet" href={assets.url(name)} />
          ))}
          {scripts.map((name) => (
            <script type="module" src={assets.url(name)}></script>
          ))}
          {meta && (refresh.always ? meta : <noscript>{meta}</noscript>)}
          <link rel="icon" href="data:," />
        </head>
        <body>{children}</body>
      </html>
    )}`;
}
