import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { DefaultLogger, Runtime, Worker } from '@temporalio/worker';
import { DeterminismViolationError } from '@temporalio/workflow';
import { readHistory } from '../../scripts/histories/history-text';
import type { WorkflowHistory } from '../../scripts/histories/history-text';
import { testServers } from '../support/servers';
import { namesIn, namesOfThisBuild } from './names';
import type { Name } from './names';

const FOLDER = path.join(__dirname, 'histories');

interface Recorded {
  name: string;
  text: string;
  history: WorkflowHistory;
}

const recorded: Recorded[] = readdirSync(FOLDER)
  .filter((file) => file.endsWith('.json'))
  .map((file) => {
    const text = readFileSync(path.join(FOLDER, file), 'utf8');
    return { name: path.basename(file, '.json'), text, history: readHistory(text) };
  });

const named = (name: string): Recorded => {
  const found = recorded.find((one) => one.name === name);
  if (!found) throw new Error(`no history ${name}: npm run record:histories`);
  return found;
};
const bundle = () => readFileSync(testServers().workflowBundle, 'utf8');
const replay = ({ history }: Recorded, code: string) =>
  Worker.runReplayHistory(
    { workflowBundle: { code } },
    history,
    history.events?.[0]?.workflowExecutionStartedEventAttributes?.workflowId ?? undefined,
  );
/** The build with one name changed throughout, as a careless refactoring would. */
function renamed(name: string): string {
  const parts = bundle().split(new RegExp(`\\b${name}\\b`));
  expect(parts.length).toBeGreaterThan(1);
  return parts.join(`${name}Renamed`);
}
const eventTypesOf = ({ history }: Recorded) =>
  Object.keys(
    Object.assign({}, ...(history.events ?? []).map((event) => ({ ...event }))) as object,
  );

const missing = (history: WorkflowHistory, names: Set<Name>) =>
  [...namesIn(history)].filter((name) => !names.has(name));

// The worker's own log belongs to no test's output.
beforeAll(() => void Runtime.install({ logger: new DefaultLogger('ERROR', () => undefined) }));

describe('B109: a new build and old histories', () => {
  /** What makes a shape what it is: an event that its history holds, or a name. */
  it.each<[string, string | Name]>([
    ['pending', 'update pay'],
    ['polling', 'activity queryPayment'],
    ['paid-by-poll', 'workflowExecutionCompletedEventAttributes'],
    ['notified', 'activity deliverNotifications'],
    ['telling', 'activity deliverNotifications'],
    ['refunding', 'startChildWorkflowExecutionInitiatedEventAttributes'],
    ['refunded', 'signal nudge'],
    ['refund-asked', 'activity queryRefund'],
    ['refund-done', 'activity nudgeOrder'],
    ['fulfilled', 'workflow fulfilment'],
    ['fulfilment-done', 'activity callFulfilmentStep'],
    ['fulfilment-retrying', 'timerStartedEventAttributes'],
    ['fulfilment-told', 'signalExternalWorkflowExecutionInitiatedEventAttributes'],
    ['fulfilment-stopped', 'signal nudge'],
    ['fulfilment-refused', 'workflow refund'],
    ['fulfilment-undone', 'upsertWorkflowSearchAttributesEventAttributes'],
    ['surplus', 'startChildWorkflowExecutionInitiatedEventAttributes'],
    ['second-attempt', 'activity openAttempt'],
    ['unknown-outcome', 'activity submitPayment'],
    ['continued', 'workflowExecutionContinuedAsNewEventAttributes'],
    ['continued-next', 'activity loadOrder'],
    ['stopped', 'workflowExecutionCanceledEventAttributes'],
    ['closing', 'activity closePayment'],
    ['closed', 'workflowExecutionCompletedEventAttributes'],
    ['expired', 'timerFiredEventAttributes'],
    ['postgres-away', 'activityTaskCompletedEventAttributes'],
    ['sweep', 'activity sweepOrders'],
    ['asked', 'signal askChannel'],
    ['reconciliation', 'startChildWorkflowExecutionInitiatedEventAttributes'],
    ['reconciled', 'activity askAboutDifferences'],
    ['bill-missing', 'activity noteBillMissing'],
    ['bill-rejected', 'activity noteBillRejected'],
  ])('B109: there is one of shape %s, and it shows it', (name, sign) => {
    const one = named(name);
    expect([...eventTypesOf(one), ...namesIn(one.history)]).toContain(sign);
  });

  it('B109: PostgreSQL away is there as an ordinary activity, after the quick tries', () => {
    const scheduled = (named('postgres-away').history.events ?? []).map(
      (event) => event.activityTaskScheduledEventAttributes?.activityType?.name,
    );
    expect(scheduled).toContain('settleAnswer');
  });

  it.each(recorded.map(({ name }) => name))('B109: %s replays without an error', async (name) => {
    await expect(replay(named(name), bundle())).resolves.toBeUndefined();
  });

  it.each([
    ['submitPayment', 'pending'],
    ['queryPayment', 'polling'],
    ['closePayment', 'closing'],
    ['deliverNotifications', 'notified'],
    ['submitRefund', 'refund-asked'],
    ['queryRefund', 'asked'],
    ['loadBill', 'reconciled'],
    ['compareWithBill', 'reconciled'],
    ['callFulfilmentStep', 'fulfilment-retrying'],
  ])('B109: %s renamed on purpose is caught by %s', async (activity, name) => {
    await expect(replay(named(name), renamed(activity))).rejects.toThrow(DeterminismViolationError);
  });

  it('B109: every name in a history still exists, also where the SDK is silent', () => {
    const here = namesOfThisBuild();
    for (const { name, history } of recorded) {
      expect([name, missing(history, here)]).toEqual([name, []]);
    }
  });

  it('B109: a name that the build lost is told by every history that holds it', () => {
    for (const lost of namesOfThisBuild()) {
      const rest = namesOfThisBuild();
      rest.delete(lost);
      for (const { name, history } of recorded) {
        const told = namesIn(history).has(lost) ? [lost] : [];
        expect([name, missing(history, rest)]).toEqual([name, told]);
      }
    }
  });

  it('B109: no activity, workflow or message could be renamed unseen', () => {
    const used = new Set(recorded.flatMap(({ history }) => [...namesIn(history)]));
    const never: Name[] = ['activity holdSurplus'];
    expect([...namesOfThisBuild()].filter((name) => !used.has(name))).toEqual(never);
  });

  it('B109: the histories hold no path, no secret and no name of a machine, and stay small', () => {
    for (const { name, text } of recorded) {
      const payloads = [...text.matchAll(/"data":"([A-Za-z0-9+/=]+)"/g)].map(([, data]) =>
        Buffer.from(data ?? '', 'base64').toString(),
      );
      const all = [text, ...payloads].join('\n');
      expect([
        name,
        all.match(/(\/[\w.-]+){2,}\.[cm]?[jt]s|file:\/\/|postgres(ql)?:\/\//g),
      ]).toEqual([name, null]);
      expect([name, all.match(/psk_|whsec_|key-of-|a-secret-for|\d+@[\w-]+/g)]).toEqual([
        name,
        null,
      ]);
      expect(text.length).toBeLessThan(name === 'continued' ? 150_000 : 60_000);
    }
  });
});
