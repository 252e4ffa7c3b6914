import { reconciliationScheduleId } from '../../workflows/ids';
import { Saga } from '../support/saga';
import {
  dayHandle,
  daysAgo,
  ended,
  paidOn,
  reconcile,
  zoneAtHour,
} from '../support/reconciliations';
import { waitFor } from '../support/wait';

/** Of a parent and its child together, whatever the size of the bill. */
const TRANSITIONS_MAX = 20;

describe('what a reconciliation costs Temporal', () => {
  let saga: Saga;
  beforeAll(async () => {
    saga = await Saga.start({ timeZone: zoneAtHour(6) });
  });
  afterAll(() => saga?.stop());

  async function transitions(workflowId: string): Promise<number> {
    const { raw } = await saga.client.workflow.getHandle(workflowId).describe();
    return Number(raw.workflowExecutionInfo?.stateTransitionCount);
  }

  it('is at most 20 state transitions, of a dry run and of a bill without differences', async () => {
    const day = daysAgo(saga, 1);
    await paidOn(saga, 'mock-a', day);
    const schedule = saga.client.schedule.getHandle(reconciliationScheduleId(saga.taskQueue));
    await schedule.trigger();
    const parent = await waitFor('the parent', async () => {
      const [action] = (await schedule.describe()).info.recentActions;
      return action?.action.type === 'startWorkflow' && action.action.workflow.workflowId;
    });
    await saga.client.workflow.getHandle(parent).result();
    await ended(saga, 'mock-a', day);
    const ofParent = await transitions(parent);
    const ofChild = await transitions(dayHandle(saga, 'mock-a', day).workflowId);
    expect(ofParent + ofChild).toBeLessThanOrEqual(TRANSITIONS_MAX);

    expect(await reconcile(saga, 'mock-a', day, { dryRun: true })).toMatchObject({
      status: 'done',
      dry_run: true,
    });
    const ofDryRun = await transitions(dayHandle(saga, 'mock-a', day).workflowId);
    expect(ofParent + ofDryRun).toBeLessThanOrEqual(TRANSITIONS_MAX);
    if (process.env['SAGA_LOG']) console.log({ ofParent, ofChild, ofDryRun });
  });
});
