import type { Stack } from './servers/stack';
import { answersOk } from './servers/wait';

/** Shows what the running stack does, step by step; every step counts as passed or failed. */
export async function runTour(stack: Stack): Promise<{ passed: number; failed: number }> {
  const steps = [
    { name: 'the API answers', url: `${stack.api.url}/healthz` },
    { name: 'the worker answers', url: stack.worker.healthUrl },
    { name: 'the mock channel answers', url: `${stack.mockChannel.controlUrl}/control/health` },
  ];
  let passed = 0;
  for (const { name, url } of steps) {
    const ok = await answersOk(url).catch(() => false);
    console.log(`${ok ? 'passed' : 'FAILED'}  ${name}`);
    if (ok) passed++;
  }
  return { passed, failed: steps.length - passed };
}
