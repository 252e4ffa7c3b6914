import { closeDeskSession, openDeskSession } from '../../../db/desk-sessions';
import { readCaller } from '../../../db/merchants';
import { requireScope } from '../../auth';
import { Problem } from '../../problems';
import type { Desk, DeskApp, DeskContext } from './frame';
import { DESK, forgetToken, keepToken, placeAfterLogin, tokenOf } from './guard';
import { Field, ProblemNote } from './parts';

const API_KEY = /^[A-Za-z0-9._~+/=-]{1,256}$/;

/** The only page without a session. */
export function addLogin(app: DeskApp, desk: Desk): void {
  const { deps } = desk;

  app.get('/login', (c) => show(c, placeAfterLogin(c.req.query('next'))));

  app.post('/login', async (c) => {
    const { api_key: apiKey, next } = c.get('form');
    const place = placeAfterLogin(next);
    try {
      const { keyId } = await operatorBehind(apiKey);
      const before = tokenOf(c);
      if (before !== undefined) await closeDeskSession(deps.pool, before);
      keepToken(c, await openDeskSession(deps.pool, keyId), deps.publicUrl());
      return c.redirect(place, 303);
    } catch (error) {
      return show(c, place, desk.refusalOf(error));
    }
  });

  /** @throws Problem unauthenticated, insufficient_scope */
  async function operatorBehind(apiKey: string | undefined) {
    const typed = apiKey?.trim() ?? '';
    const caller = API_KEY.test(typed) ? await readCaller(deps.pool, typed) : undefined;
    if (!caller) throw new Problem('unauthenticated', 'no such key is valid now: check it');
    requireScope(caller, 'operator');
    return caller;
  }

  function show(c: DeskContext, place: string, problem?: Problem) {
    return desk.show(c, {
      title: 'Log in',
      status: problem?.status ?? 200,
      children: (
        <>
          {problem && <ProblemNote problem={problem} />}
          <form method="post" action={`${DESK}/login`} class="card narrow">
            <input type="hidden" name="next" value={place} />
            <Field
              id="api_key"
              name="api_key"
              label="Your API key"
              type="password"
              autocomplete="current-password"
              maxlength={256}
              required
              hint="It needs the scope operator. The session lasts eight hours at most, and ends when the key does."
            />
            <button type="submit" class="button">
              Log in
            </button>
          </form>
          {place !== DESK && (
            // A link on another site opens the desk without its cookie; from here it is sent.
            <p>
              Logged in already? <a href={place}>Go on to the page</a>
            </p>
          )}
        </>
      ),
    });
  }
}

export function addLogout(app: DeskApp, { deps }: Desk): void {
  app.post('/logout', async (c) => {
    const token = tokenOf(c);
    if (token !== undefined) await closeDeskSession(deps.pool, token);
    forgetToken(c, deps.publicUrl());
    return c.redirect(`${DESK}/login`, 303);
  });
}
