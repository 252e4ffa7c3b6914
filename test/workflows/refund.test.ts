import { randomUUID } from 'node:crypto';
import { TestWorkflowEnvironment } from '@temporalio/testing';
import { DefaultLogger, Runtime, Worker } from '@temporalio/worker';
import type { RefundAnswer } from '../../domain/answers';
import type { RefundProgress } from '../../activities/refund-steps';
import { testServers } from '../support/servers';

/** What the scripted database and channel saw, and say next. */
interface Script {
  progress: RefundProgress;
  answers: (RefundAnswer | Error)[];
  calls: string[];
  settled: RefundAnswer[];
  nudges: number;
}

describe('the run of a refund, its activities scripted', () => {
  let environment: TestWorkflowEnvironment;
  beforeAll(async () => {
    // Failing activities are what these tests are about; they need no place in the output.
    Runtime.install({ logger: new DefaultLogger('ERROR', () => undefined) });
    const { temporalAddress, temporalNamespace } = testServers();
    environment = await TestWorkflowEnvironment.createFromExistingServer({
      address: temporalAddress,
      namespace: temporalNamespace,
    });
  });
  afterAll(() => environment?.teardown());

  const input = { merchantId: 'shop', orderId: 'o1', refundNo: 'R1' };

  function aScript(answers: Script['answers'], more: Partial<RefundProgress> = {}): Script {
    const progress: RefundProgress = {
      refundNo: 'R1',
      status: 'created',
      isOpen: true,
      channel: 'ch-a',
      call: 'submit',
      dueInMs: 0,
      callTimeoutMs: 500,
      polls: 0,
      ...more,
    };
    return { progress, answers, calls: [], settled: [], nudges: 0 };
  }

  /** Runs the workflow against the script; the script's database ends the refund when told so. */
  async function runRefund(script: Script): Promise<unknown> {
    const call = (name: string) => async (): Promise<RefundAnswer> => {
      script.calls.push(name);
      const answer = script.answers.shift();
      if (!answer || answer instanceof Error) throw answer ?? new Error('the script is over');
      return answer;
    };
    const taskQueue = `refund-${randomUUID()}`;
    const worker = await Worker.create({
      connection: environment.nativeConnection,
      namespace: environment.namespace,
      taskQueue,
      workflowBundle: { codePath: testServers().workflowBundle },
      activities: {
        loadRefund: async () => script.progress,
        submitRefund: call('submit'),
        queryRefund: call('query'),
        settleRefundAnswer: async ({ answer }: { answer: RefundAnswer }) => {
          script.settled.push(answer);
          const isOver = answer.outcome === 'answered' && answer.fact.state === 'succeeded';
          script.progress = isOver
            ? { ...script.progress, status: 'succeeded', isOpen: false }
            : { ...script.progress, status: 'submitting', call: 'query', dueInMs: 50 };
          return script.progress;
        },
        nudgeOrder: async () => void script.nudges++,
      },
    });
    return worker.runUntil(
      environment.client.workflow.execute('refund', {
        taskQueue,
        workflowId: `refund:${randomUUID()}`,
        args: [input],
      }),
    );
  }

  const succeeded = {
    outcome: 'answered',
    fact: { kind: 'refund', state: 'succeeded' },
  } as RefundAnswer;

  it('ends at once when there is nothing to do, and tells the order', async () => {
    const script = aScript([], { status: 'succeeded', isOpen: false });
    expect(await runRefund(script)).toEqual({ status: 'succeeded' });
    expect(script).toMatchObject({ calls: [], nudges: 1 });
  });

  it('takes a call that blew up for an unknown outcome, and asks before anything else', async () => {
    const script = aScript([new Error('socket hang up'), succeeded]);
    expect(await runRefund(script)).toEqual({ status: 'succeeded' });
    expect(script.calls).toEqual(['submit', 'query']);
    expect(script.settled.map((answer) => answer.outcome)).toEqual(['unknown', 'answered']);
    expect(script.nudges).toBe(1);
  });

  it('lets Temporal repeat no call by itself', async () => {
    const script = aScript([new Error('1'), new Error('2'), new Error('3'), succeeded]);
    await runRefund(script);
    expect(script.calls).toEqual(['submit', 'query', 'query', 'query']);
  });
});
