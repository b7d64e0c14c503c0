// A BullMQ worker whose jobs begin when all of their limits allow it, over all
// workers, queues and machines.
//
//   node worker.mjs          works
//   node worker.mjs fill     adds 600 jobs to work on

import { pathToFileURL } from 'node:url';
import { DelayedError, Queue, Worker } from 'bullmq';
import { Away, Refused, Throttle } from './throttle.mjs';

// A job is put off for no longer than this; it just asks again.
const PUT_OFF_MS_MAX = 600_000;

/**
 * Wraps a processor. `limitsOf(job)` says which limits the job needs, `options`
 * are those of `Throttle.acquire`, or a function of the job.
 */
export function throttled(throttle, limitsOf, processor, options = {}) {
  return async (job, token) => {
    const how = typeof options === 'function' ? options(job) : options;
    let permit;
    try {
      // Who waits costs a pending promise; the lock of the job is renewed meanwhile.
      permit = await throttle.acquire(limitsOf(job), how);
    } catch (error) {
      if (!(error instanceof Refused || error instanceof Away)) throw error;
      // That is no attempt: `attempts` is for what the job itself does wrong. And
      // those who are put off together do not all come back at once.
      const ms = Math.min(error.retryAfterMs, PUT_OFF_MS_MAX) * (1 + Math.random() / 10);
      await job.moveToDelayed(Date.now() + Math.ceil(ms), token);
      throw new DelayedError(error.message);
    }
    try {
      return await processor(job, token);
    } finally {
      await throttle.release(permit);
    }
  };
}

async function main() {
  const { REDIS_HOST: host = '127.0.0.1', REDIS_PORT: port = '6379' } = process.env;
  const connection = { host, port: Number(port), maxRetriesPerRequest: null };
  if (process.argv[2] === 'fill') {
    const queue = new Queue('calls', { connection });
    const jobs = Array.from({ length: 600 }, (_, number) => ({
      name: 'call',
      data: { number, tenant: number % 2 ? 'acme' : 'other' },
      opts: { removeOnComplete: true },
    }));
    await queue.addBulk(jobs);
    await queue.close();
    return;
  }

  const throttle = Throttle.fromEnvironment();
  // Several limits at once: all of them or none.
  const limitsOf = (job) => [
    { key: 'api.example.com', limits: ['100/s burst 10', '50k/day'] },
    { key: `calls of ${job.data.tenant}`, limits: ['60/s burst 10'] },
    { key: 'api.example.com connections', concurrency: 8 },
  ];
  const processor = async (job) => {
    const response = await call(job.data);
    if (response.status === 429) {
      // That holds for everybody who calls it.
      await throttle.pause('api.example.com', response.retryAfterMs);
      throw new Error('the provider asked us to wait');
    }
  };
  const options = (job) => ({ urgency: job.data.urgent ? 'critical' : 'normal', ttlMs: 60_000 });
  const work = throttled(throttle, limitsOf, processor, options);
  // Concurrency is how many stand in line; how many run is a limit.
  const worker = new Worker('calls', work, { connection, concurrency: 50 });
  worker.on('error', (error) => console.error(error.message));
  worker.on('failed', (job, error) => console.error(`${job?.id}: ${error.message}`));
  for (const name of ['SIGINT', 'SIGTERM']) process.once(name, () => worker.close());
}

/** Stands for the call that is limited. */
async function call({ number }) {
  console.log(`call ${number}`);
  return { status: 200 };
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) await main();
