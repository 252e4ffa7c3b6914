import { createReadStream } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { finished, pipeline } from 'node:stream/promises';
import type { FileReply } from './reply';

/** Streams a file as an answer, or as much of it as it says; the rest is a lost connection. */
export async function sendFile(response: ServerResponse, reply: FileReply): Promise<void> {
  response.writeHead(reply.status, { ...reply.headers, 'content-length': reply.bytes });
  if (reply.path === null || reply.sendBytes === 0) {
    if (reply.bytes === 0) response.end();
    else response.destroy();
    return;
  }
  const file = createReadStream(reply.path, {
    end: reply.sendBytes - 1,
    highWaterMark: 256 * 1024,
  });
  try {
    await pipeline(file, response, { end: reply.sendBytes === reply.bytes });
    if (reply.sendBytes === reply.bytes) return;
    // What was written is to arrive before the connection is cut.
    response.socket?.end();
    await finished(response).catch(() => undefined);
  } catch {
    // The merchant went away in the middle.
    response.destroy();
  }
}
