/** The renewal that nobody waits for: when it is tried, and that it keeps nobody waiting. */
import { describe, expect, it } from "vitest";
import type { ClientOptions } from "../../src/client/index.ts";
import { createFakeClock } from "../../src/testing/index.ts";
import { watchedTimers } from "../support/watched-timers.ts";
import { type Answerer, answerJson, startPlain, TOKEN_PATH } from "./support.ts";

const MINUTE = 60_000;

/** When a token of an hour has half a minute to live. */
const LAST_MOMENTS = 59.5 * MINUTE;

type Options = Partial<ClientOptions> & { readonly age?: number };

/** A client with a token that has four minutes to live, if not less; the next token requests are answered as `next` says. */
async function nearItsEnd(
  next: (...given: Parameters<Answerer>) => void,
  { age = 56 * MINUTE, ...options }: Options = {},
) {
  const clock = createFakeClock();
  const watched = watchedTimers(clock);
  let asked = 0;
  const started = await startPlain(
    (request, response) => {
      if (request.url !== TOKEN_PATH) return answerJson(response, 200, {});
      asked += 1;
      if (asked > 1) return next(request, response);
      answerJson(response, 200, { access_token: "first", expires_in: 3600 });
    },
    { clock: watched.clock, maxRetries: 0, ...options },
  );
  await started.client.whoami();
  await clock.advance(age);
  const { client, lines, sentTo } = started;
  /** After a call, whose renewal has ended. */
  const called = async () => {
    const before = lines.length;
    await client.whoami();
    while (lines.length === before && watched.running() > 0) await new Promise(setImmediate);
  };
  return { clock, client, lines, watched, called, tokenRequests: () => sentTo(TOKEN_PATH).length };
}

describe("a renewal ahead", () => {
  it("that is refused is not tried again with this token, and is with the next (CLI-2, CLI-4)", async () => {
    const answers: [number, object][] = [
      [401, { error: "invalid_client" }],
      [200, { access_token: "second", expires_in: 3600 }],
      [200, { access_token: "third", expires_in: 3600 }],
    ];
    const { clock, client, called, tokenRequests } = await nearItsEnd((_, response) => {
      answerJson(response, ...(answers.shift() ?? [500, {}]));
    });
    await called();
    expect(tokenRequests()).toBe(2);
    await clock.advance(MINUTE);
    await called();
    await clock.advance(2 * MINUTE);
    await called();
    expect(tokenRequests()).toBe(2);
    await clock.advance(MINUTE);
    await client.whoami();
    expect(tokenRequests()).toBe(3);
    await clock.advance(56 * MINUTE);
    await called();
    expect(tokenRequests()).toBe(4);
  });

  it("is not tried again before the service wants it to be (CLI-2)", async () => {
    const { clock, called, tokenRequests } = await nearItsEnd((_, response) => {
      response.setHeader("retry-after", "90");
      answerJson(response, 503, {});
    });
    await called();
    await clock.advance(89_999);
    await called();
    expect(tokenRequests()).toBe(2);
    await clock.advance(1);
    await called();
    expect(tokenRequests()).toBe(3);
  });

  it("has no timer that keeps the process, neither of its request nor of the wait before it is made again (CLI-2)", async () => {
    const retries: unknown[] = [];
    const { clock, client, watched, tokenRequests } = await nearItsEnd(
      (_, response) => {
        response.setHeader("retry-after", "50");
        answerJson(response, 503, {});
      },
      { maxRetries: 1, onRetry: () => retries.push(1) },
    );
    await client.whoami();
    expect([watched.running(), watched.keeping()]).toEqual([1, 0]);
    while (retries.length === 0) await new Promise(setImmediate);
    expect([watched.running(), watched.keeping()]).toEqual([1, 0]);
    await clock.advance(50_000);
    expect(tokenRequests()).toBe(3);
  });

  it("keeps the process as soon as a call waits for its answer (CLI-2)", async () => {
    const answers: (() => void)[] = [];
    const { clock, client, watched } = await nearItsEnd(
      (_, response) => {
        answers.push(() => answerJson(response, 200, { access_token: "second", expires_in: 3600 }));
      },
      { age: LAST_MOMENTS, timeoutMs: 300_000 },
    );
    await client.whoami();
    expect([watched.running(), watched.keeping()]).toEqual([1, 0]);
    await clock.advance(26_000);
    const waiting = client.whoami();
    expect([watched.running(), watched.keeping()]).toEqual([1, 1]);
    while (answers.length === 0) await new Promise(setImmediate);
    answers[0]?.();
    await waiting;
  });

  it("keeps the process as soon as a call waits for its retry, which is made as for any call (CLI-2, CLI-4)", async () => {
    const keeping: number[] = [];
    const retries: unknown[] = [];
    const { clock, client, watched, tokenRequests } = await nearItsEnd(
      (_, response) => {
        keeping.push(watched.keeping());
        response.setHeader("retry-after", "50");
        const isLast = keeping.length === 2;
        answerJson(response, isLast ? 200 : 503, isLast ? { access_token: "second", expires_in: 3600 } : {});
      },
      { age: LAST_MOMENTS, maxRetries: 1, onRetry: () => retries.push(1) },
    );
    await client.whoami();
    while (retries.length === 0) await new Promise(setImmediate);
    await clock.advance(26_000);
    const waiting = client.whoami();
    expect(watched.keeping()).toBe(1);
    await clock.advance(24_000);
    await waiting;
    expect(keeping.at(-1)).toBe(1);
    expect(tokenRequests()).toBe(3);
  });
});
