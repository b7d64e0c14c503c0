#!/usr/bin/env bash
# No-op jobs a second through BullMQ: JOBS jobs are queued, then one worker
# process with concurrency 100 drains them. Redis is private, without
# persistence, which is BullMQ's fastest case. The last line is one JSON object.
#
#   bash benches/peers/bullmq.sh [JOBS]
#
# What it needs is installed once, outside the clone: redis-server by apt (as
# root; else install it yourself), the npm packages in the user's cache.
set -euo pipefail
jobs=${1:-20000}
bullmq=6.7.0
ioredis=5.8.2
cache=${XDG_CACHE_HOME:-$HOME/.cache}/outflow-bench/bullmq-$bullmq

command -v node >/dev/null || { echo "node 18 or newer is needed (apt-get install nodejs npm)" >&2; exit 1; }
if ! command -v redis-server >/dev/null; then
  echo "installing redis-server" >&2
  DEBIAN_FRONTEND=noninteractive apt-get install -y -q redis-server >&2 ||
    { echo "redis-server is needed: apt-get install redis-server" >&2; exit 1; }
fi
if [ ! -e "$cache/installed" ]; then
  echo "installing bullmq $bullmq" >&2
  mkdir -p "$cache"
  (cd "$cache" && echo '{"private":true}' >package.json &&
    npm install --no-fund --no-audit "bullmq@$bullmq" "ioredis@$ioredis" >&2)
  touch "$cache/installed"
fi

work=$(mktemp -d -t outflow-bullmq.XXXXXX)
redis=
trap '[ -z "$redis" ] || { kill "$redis" 2>/dev/null; wait "$redis" 2>/dev/null || true; }; rm -rf "$work"' EXIT
port=$(node -e 'const s = require("net").createServer().listen(0, "127.0.0.1", () => { console.log(s.address().port); s.close(); })')
redis-server --port "$port" --bind 127.0.0.1 --save '' --appendonly no \
  --maxmemory-policy noeviction --dir "$work" >"$work/log" 2>&1 &
redis=$!
for _ in $(seq 100); do redis-cli -p "$port" ping >/dev/null 2>&1 && break; sleep 0.1; done

ln -s "$cache/node_modules" "$work/node_modules"
cat >"$work/worker.mjs" <<'JS'
// Runs the jobs, and tells how many so far, and when the first and last ran.
import { Worker } from 'bullmq';
const [port, queue] = process.argv.slice(2);
let count = 0, first = 0, last = 0;
const worker = new Worker(queue, async () => {
  last = performance.now();
  if (count++ === 0) first = last;
}, { connection: { host: '127.0.0.1', port: +port }, concurrency: 100, removeOnComplete: { count: 0 } });
worker.on('error', error => console.error(error.message));
await worker.waitUntilReady();
setInterval(() => process.send({ count, seconds: (last - first) / 1000 }), 50).unref();
process.on('message', async () => { await worker.close(true); process.exit(0); });
JS
cat >"$work/bench.mjs" <<'JS'
import { Queue } from 'bullmq';
import { fork } from 'child_process';
const [port, jobs] = process.argv.slice(2);
const queue = new Queue('jobs', { connection: { host: '127.0.0.1', port: +port } });
for (let i = 0; i < +jobs; i += 1000) {
  const size = Math.min(1000, jobs - i);
  await queue.addBulk(Array.from({ length: size }, (_, j) =>
    ({ name: 'n', data: { i: i + j }, opts: { removeOnComplete: true } })));
}
const worker = fork('worker.mjs', [port, 'jobs']);
const seconds = await new Promise((done, fail) => {
  worker.on('message', told => { if (told.count >= +jobs) done(told.seconds); });
  worker.on('exit', () => fail(new Error('the worker has ended')));
});
worker.removeAllListeners('exit');
worker.send('stop');
await new Promise(done => worker.on('exit', done));
console.log(JSON.stringify({ jobs: +jobs, seconds, per_s: (jobs - 1) / seconds }));
await queue.close();
process.exit(0);
JS
cd "$work" && node bench.mjs "$port" "$jobs"
