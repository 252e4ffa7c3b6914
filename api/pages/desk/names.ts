import type { Context } from 'hono';
import { getCookie, setCookie } from 'hono/cookie';
import { DESK } from './guard';

const COOKIE = 'desk_name';
const NAME_MAX = 64;
const KEPT_S = 30 * 24 * 60 * 60;

/** Who acted last in this browser: a suggestion for the next form, and nothing else. */
export function nameOf(c: Context): string | undefined {
  return getCookie(c, COOKIE)?.slice(0, NAME_MAX);
}

export function keepName(c: Context, name: string | undefined, publicUrl: string): void {
  if (name === undefined) return;
  setCookie(c, COOKIE, name.slice(0, NAME_MAX), {
    path: DESK,
    httpOnly: true,
    sameSite: 'Strict',
    secure: publicUrl.startsWith('https:'),
    maxAge: KEPT_S,
  });
}
