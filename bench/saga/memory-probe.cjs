/**
 * Loaded before a worker's own code (`NODE_OPTIONS=--require`), also in its threads, where workflows
 * live: answers on MEMORY_PROBE_PORT what memory the process holds after a full garbage collection of
 * every thread. The worker's code stays as it is.
 */
'use strict';

const { clearTimeout } = require('node:timers');
const { isMainThread, threadId } = require('node:worker_threads');
const v8 = require('node:v8');
const vm = require('node:vm');

const port = Number(process.env['MEMORY_PROBE_PORT'] ?? 0);
/** Threads of this process, told of by themselves. */
const channel = new globalThis.BroadcastChannel('memory-probe');
/** A thread that is busy is waited for so long. */
const THREADS_WITHIN_MS = 5_000;

function collected() {
  v8.setFlagsFromString('--expose-gc');
  const gc = vm.runInNewContext('gc');
  // What a first pass only unlinks, a second one gives back.
  gc();
  gc();
  const { heapUsed, external, arrayBuffers } = process.memoryUsage();
  return { threadId, heapUsed, external, arrayBuffers };
}

if (port > 0 && !isMainThread) {
  channel.onmessage = ({ data }) => {
    if (data.ask !== undefined) channel.postMessage({ answer: data.ask, ...collected() });
    else if (data.roll !== undefined) channel.postMessage({ here: data.roll, threadId });
  };
  channel.unref();
} else if (port > 0) {
  let lastId = 0;
  /** @type {Map<number, (message: object) => void>} */
  const listeners = new Map();
  channel.onmessage = ({ data }) => listeners.get(data.answer ?? data.here)?.(data);
  channel.unref();

  /** @param {'ask' | 'roll'} kind @param {number} count @param {number} withinMs */
  const answers = (kind, count, withinMs) =>
    new Promise((resolve) => {
      const id = ++lastId;
      /** @type {object[]} */
      const heard = [];
      const done = () => {
        clearTimeout(timer);
        listeners.delete(id);
        resolve(heard);
      };
      const timer = setTimeout(done, withinMs);
      listeners.set(id, (message) => {
        heard.push(message);
        if (heard.length === count) done();
      });
      channel.postMessage({ [kind]: id });
    });

  const server = require('node:http').createServer((_request, response) => {
    void (async () => {
      const threads = await answers('roll', Infinity, 300);
      const others = await answers('ask', threads.length, THREADS_WITHIN_MS);
      const own = collected();
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(
        JSON.stringify({
          rssBytes: process.memoryUsage.rss(),
          heapBytes: [own, ...others].reduce((sum, one) => sum + one.heapUsed, 0),
          threads: 1 + others.length,
          threadsMissing: threads.length - others.length,
        }),
      );
    })();
  });
  server.listen(port, '127.0.0.1').unref();
}
