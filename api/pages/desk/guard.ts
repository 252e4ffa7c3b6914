/**
 * What stands between the desk and everybody else: the session's cookie, the check that a form was sent
 * by a page of ours, and the headers that keep other sites and scripts out.
 */
import { createHash, timingSafeEqual } from 'node:crypto';
import type { Context } from 'hono';
import { deleteCookie, getCookie, setCookie } from 'hono/cookie';
import { secureHeaders } from 'hono/secure-headers';
import { SESSION_S } from '../../../db/desk-sessions';
import { Problem } from '../../problems';

export const DESK = '/ops/ui';

const COOKIE = 'desk_session';
/** What openDeskSession gives; anything else is not looked up. */
const TOKEN = /^[A-Za-z0-9_-]{43}$/;

/** The desk has no scripts: whatever a page is made to hold, nothing of it runs. */
export const deskHeaders = secureHeaders({
  contentSecurityPolicy: {
    defaultSrc: ["'none'"],
    styleSrc: ["'self'"],
    imgSrc: ['data:'],
    formAction: ["'self'"],
    baseUri: ["'none'"],
    frameAncestors: ["'none'"],
  },
  xFrameOptions: 'DENY',
  // Without it browsers would send "Origin: null" with our own forms.
  referrerPolicy: 'same-origin',
});

/** The session's token that a browser sent, when it has the form of one. */
export function tokenOf(c: Context): string | undefined {
  const token = getCookie(c, COOKIE);
  return token !== undefined && TOKEN.test(token) ? token : undefined;
}

/** @param publicUrl where browsers reach us: over https the cookie never travels without it */
export function keepToken(c: Context, token: string, publicUrl: string): void {
  setCookie(c, COOKIE, token, { ...cookieRules(publicUrl), maxAge: SESSION_S });
}

export function forgetToken(c: Context, publicUrl: string): void {
  deleteCookie(c, COOKIE, cookieRules(publicUrl));
}

function cookieRules(publicUrl: string) {
  return {
    path: DESK,
    httpOnly: true,
    sameSite: 'Strict',
    secure: publicUrl.startsWith('https:'),
  } as const;
}

/**
 * A form that no page of ours sent is refused, whatever it holds: also the login's, or another site
 * could log a person in as somebody else. Browsers say where a form comes from in Sec-Fetch-Site, over
 * plain http in Origin; who says neither is no browser.
 * @throws Problem foreign_form
 */
export function requireOwnPage(c: Context, publicUrl: string): void {
  const site = c.req.header('sec-fetch-site');
  const origin = c.req.header('origin');
  const isOwnSite = site === undefined || site === 'same-origin';
  const isOwnOrigin = origin === undefined || isOurs(origin, c, publicUrl);
  const isSaid = site !== undefined || origin !== undefined;
  if (isSaid && isOwnSite && isOwnOrigin) return;
  throw new Problem('foreign_form', 'the form was not sent by a page of this desk: open the desk');
}

/** A proxy in front may speak https where we are asked over http: the host decides. */
function isOurs(origin: string, c: Context, publicUrl: string): boolean {
  if (!URL.canParse(origin)) return false;
  const { host } = new URL(origin);
  return host === c.req.header('host') || origin === new URL(publicUrl).origin;
}

/** @throws Problem foreign_form when the form does not carry its session's token */
export function requireCsrfToken(sent: string | undefined, expected: string): void {
  if (sent !== undefined && timingSafeEqual(digestOf(sent), digestOf(expected))) return;
  throw new Problem(
    'foreign_form',
    'the form is not of this session: you have logged in anew since it was opened. Open the page again',
  );
}

/** Equal length for the comparison that takes the same time whatever is sent. */
function digestOf(text: string): Buffer {
  return createHash('sha256').update(text, 'utf8').digest();
}

const PLACE = /^\/ops\/ui(?:\/[A-Za-z0-9_.~%-]+)*(?:\?[A-Za-z0-9_.~%&=+-]*)?$/;

/** Where to go after the login: a page of the desk, and nowhere else. */
export function placeAfterLogin(wanted: string | undefined): string {
  if (wanted === undefined || !PLACE.test(wanted)) return DESK;
  const { pathname, search } = new URL(wanted, 'http://desk.invalid');
  return pathname === DESK || pathname.startsWith(`${DESK}/`) ? pathname + search : DESK;
}
