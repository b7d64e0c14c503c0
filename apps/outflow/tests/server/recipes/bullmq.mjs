// Jobs of the test: limited by the recipe, or by BullMQ itself. One job opens a
// window of BullMQ's limiter, many become ready when half of it is over. Prints
// when each began, on the clock that the server's log of grants has.
//
//   node bullmq.mjs recipe|own JOBS

import { Queue, Worker } from 'bullmq';
import { throttled } from './worker.mjs';
import { Throttle } from './throttle.mjs';

const [mode, jobs] = [process.argv[2], Number(process.argv[3])];
const connection = { host: '127.0.0.1', port: Number(process.env.REDIS_PORT), maxRetriesPerRequest: null };
const name = `${mode}-${process.pid}`;
const queue = new Queue(name, { connection });
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, Math.max(0, ms)));

const starts = [];
let finished;
const all = new Promise((resolve) => { finished = resolve; });
const began = async () => {
  starts.push(process.hrtime.bigint());
  if (starts.length === jobs) finished();
};
let worker;
const failed = (_, error) => { console.error(error); process.exit(1); };
if (mode === 'own') {
  const limiter = { max: 100, duration: 1000 };
  worker = new Worker(name, began, { connection, concurrency: 100, limiter });
} else {
  const limits = [{ key: 'bullmq', limits: ['100/s burst 10'] }];
  // Some stand in line for too short a time, and go back to the queue.
  const options = (job) => ({ patienceMs: job.data.no % 10 === 0 ? 20 : 30_000 });
  const work = throttled(Throttle.fromEnvironment(), () => limits, began, options);
  worker = new Worker(name, work, { connection, concurrency: 100 });
}
worker.on('failed', failed);
worker.on('error', (error) => console.error(error.message));
await worker.waitUntilReady();

// At most one attempt each: who is put off must not spend it.
const opts = { removeOnComplete: true, attempts: 1 };
const ready = Date.now() + 3000;
const many = Array.from({ length: jobs - 1 }, (_, no) => ({
  name: 'one',
  data: { no },
  opts: { ...opts, delay: Math.max(1, ready - Date.now()) },
}));
await queue.addBulk(many);
await sleep(ready - 550 - Date.now());
await queue.add('first', {}, opts);
await all;
await worker.close();
await queue.close();
console.log(starts.join('\n'));
process.exit(0);
