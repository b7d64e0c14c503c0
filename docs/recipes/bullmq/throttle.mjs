// Asks Outflow before a call to somebody who counts calls.
//
//   const throttle = new Throttle({ url: 'http://127.0.0.1:8025', token });
//   const permit = await throttle.acquire([{ key: 'api.example.com', limits: ['100/s burst 10'] }]);
//   try { await call(); } finally { await throttle.release(permit); }
//
// All limits are taken together or none is. The server keeps who waits in line,
// so there is no polling here. Over HTTP, by fetch, which keeps connections open
// and has as many as there are questions in line: over one connection of the
// Redis protocol a question that waits would hold up those behind it.

import { setTimeout as sleep } from 'node:timers/promises';

// One question stands in line for so long; then it is asked again. Shorter than
// a request may take at the server ([server] request_timeout, 30 s).
const CALL_WAIT_MS = 25_000;
// An answer that is later than its wait by so much does not come any more.
const ANSWER_TIMEOUT_MS = 5_000;
const BACKOFF_FIRST_MS = 50;
const BACKOFF_MAX_MS = 2_000;

/** Not granted in time. It is worth coming back after `retryAfterMs`. */
export class Refused extends Error {
  constructor(by, retryAfterMs) {
    super(`${by} has nothing left; come back in ${retryAfterMs} ms`);
    Object.assign(this, { name: 'Refused', by, retryAfterMs });
  }
}

/** The server could not be asked. */
export class Away extends Error {
  constructor(message, options) {
    super(message, options);
    Object.assign(this, { name: 'Away', retryAfterMs: BACKOFF_MAX_MS });
  }
}

/** The question is wrong, or its cost is more than the limit ever has. It does
 * not help to ask again. */
export class Wrong extends Error {
  name = 'Wrong';
}

export class Throttle {
  #base;
  #headers;
  #whenAway;

  /** `whenAway` is 'closed' (the default: nothing runs) or 'open'. */
  constructor({ url, token, whenAway = 'closed' }) {
    if (!token) throw new TypeError('a token is needed');
    if (!['closed', 'open'].includes(whenAway)) throw new TypeError("whenAway is 'closed' or 'open'");
    this.#base = `${url.replace(/\/+$/, '')}/api/v1/throttle`;
    this.#headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
    this.#whenAway = whenAway;
  }

  /** By OUTFLOW_SERVER and OUTFLOW_TOKEN. */
  static fromEnvironment(options = {}) {
    const { OUTFLOW_SERVER: url = 'http://127.0.0.1:8025', OUTFLOW_TOKEN: token } = process.env;
    return new Throttle({ url, token, ...options });
  }

  /**
   * Waits up to `patienceMs` for the limits; the permit, for `release`. A limit is
   * `{ key, cost?, limits?, concurrency? }`; without numbers it is what the
   * server's policies say of the key. `urgency` is the class: critical, high,
   * normal or low. A slot of a concurrency limit comes back by itself after
   * `ttlMs`, so let that be longer than the work can take.
   */
  async acquire(limits, { patienceMs = 30_000, urgency = 'normal', ttlMs = 60_000 } = {}) {
    const endsAt = performance.now() + patienceMs;
    let backoff = BACKOFF_FIRST_MS;
    for (;;) {
      let pause;
      try {
        const left = Math.max(0, Math.min(endsAt - performance.now(), CALL_WAIT_MS));
        return await this.#ask(limits, urgency, Math.round(left), ttlMs);
      } catch (error) {
        if (error instanceof Refused) {
          // The server knows when: to ask earlier helps nobody.
          pause = error.retryAfterMs;
        } else if (error instanceof Away) {
          pause = backoff * (0.5 + Math.random() / 2);
          backoff = Math.min(2 * backoff, BACKOFF_MAX_MS);
        } else {
          throw error;
        }
        if (performance.now() + pause >= endsAt) {
          if (error instanceof Away && this.#whenAway === 'open') return '0';
          throw error;
        }
      }
      await sleep(pause);
    }
  }

  /** Gives slots back. If that fails they come back by themselves, when their time
   * is over; what was done with them is done all the same. */
  async release(permit) {
    if (permit === '0') return; // Nothing is held by it.
    try {
      await this.#post('release', { permit }, ANSWER_TIMEOUT_MS);
    } catch (error) {
      if (!(error instanceof Away)) throw error;
    }
  }

  /** Has a key grant nothing for a while: its provider asked for that. */
  async pause(key, ms) {
    const body = { key, retry_after_ms: Math.max(1, Math.round(ms)) };
    await this.#post('pause', body, ANSWER_TIMEOUT_MS);
  }

  async #ask(limits, urgency, waitMs, ttlMs) {
    const body = { limits, class: urgency, wait_ms: waitMs, ttl_ms: ttlMs };
    const answer = await this.#post('acquire', body, waitMs + ANSWER_TIMEOUT_MS);
    if (answer.granted) return answer.permit;
    throw new Refused(answer.refused_by, answer.retry_after_ms);
  }

  async #post(verb, body, timeoutMs) {
    const request = {
      method: 'POST',
      headers: this.#headers,
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(timeoutMs),
    };
    let status, text;
    try {
      const response = await fetch(`${this.#base}/${verb}`, request);
      status = response.status;
      text = await response.text();
    } catch (cause) {
      throw new Away(`${this.#base}: ${cause.cause?.code ?? cause.name}`, { cause });
    }
    let answer = {};
    try {
      answer = JSON.parse(text);
    } catch {
      answer.detail = text.slice(0, 200);
    }
    if (status === 200 || (status === 429 && 'granted' in answer)) return answer;
    const errors = answer.errors ? JSON.stringify(answer.errors) : '';
    const message = `${status} ${answer.code}: ${answer.detail} ${errors}`;
    throw status === 429 || status >= 500 ? new Away(message) : new Wrong(message);
  }
}
