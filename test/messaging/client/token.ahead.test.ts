/** The renewal that nobody waits for: when it is tried, and that it keeps nobody waiting. */
import { describe, expect, it } from "vitest";
import type { ClientOptions } from "../../../src/messaging/client/index.ts";
import { createFakeClock } from "../../../src/tools/testing/index.ts";
import { watchedTimers } from "../../support/watched-timers.ts";
import { type Step, startTokens, tokenBody, until } from "./support.ts";

const MINUTE = 60_000;
const SECOND = { body: tokenBody("second") };

/** A client whose token of an hour is `age` old, and whose next token requests are answered so. */
async function withTokenOf(age: number, next: readonly Step[], options: Partial<ClientOptions> = {}) {
  const clock = createFakeClock();
  const watched = watchedTimers(clock);
  const started = await startTokens([{ body: tokenBody("first") }, ...next], {
    clock: watched.clock,
    maxRetries: 0,
    ...options,
  });
  const { client, lines } = started;
  await client.whoami();
  await clock.advance(age);
  /** After a call, whose renewal has ended. */
  const called = async () => {
    const before = lines.length;
    await client.whoami();
    await until(() => lines.length > before || watched.running() === 0);
  };
  return { clock, watched, called, ...started };
}

const unavailable = (seconds?: number): Step => ({
  status: 503,
  headers: seconds === undefined ? {} : { "retry-after": `${seconds}` },
});

describe("a renewal ahead", () => {
  it("that is refused is not tried again with this token, and is with the next (CLI-2, CLI-4)", async () => {
    const refused = { status: 401, body: { error: "invalid_client" } };
    const { clock, client, called, tokenRequests } = await withTokenOf(56 * MINUTE, [refused, SECOND]);
    for (const minutes of [0, 1, 2]) {
      await clock.advance(minutes * MINUTE);
      await called();
      expect(tokenRequests()).toBe(2);
    }
    await clock.advance(MINUTE);
    await client.whoami();
    expect(tokenRequests()).toBe(3);
    await clock.advance(56 * MINUTE);
    await called();
    expect(tokenRequests()).toBe(4);
  });

  it.each([
    [10_000, undefined],
    [90_000, 90],
  ])(
    "that fails is logged once, and tried again after %i ms, with a Retry-After of %s (CLI-2)",
    async (waitMs, seconds) => {
      const { clock, lines, called, tokenRequests } = await withTokenOf(56 * MINUTE, [unavailable(seconds)]);
      await called();
      expect(lines).toMatchObject([{ level: "warn", fields: { operation: "token" } }]);
      await clock.advance(waitMs - 1);
      await called();
      expect(tokenRequests()).toBe(2);
      await clock.advance(1);
      await called();
      expect(tokenRequests()).toBe(3);
    },
  );

  it("has no timer that keeps the process, neither of its request nor of the wait before it is made again (CLI-2)", async () => {
    const retries: unknown[] = [];
    const options = { maxRetries: 1, onRetry: () => retries.push(1) };
    const { clock, client, watched, tokenRequests } = await withTokenOf(56 * MINUTE, [unavailable(50)], options);
    await client.whoami();
    expect([watched.running(), watched.keeping()]).toEqual([1, 0]);
    await until(() => retries.length > 0);
    expect([watched.running(), watched.keeping()]).toEqual([1, 0]);
    await clock.advance(50_000);
    expect(tokenRequests()).toBe(3);
  });

  it("keeps the process as soon as a call waits for its answer (CLI-2)", async () => {
    const answers: (() => void)[] = [];
    const held: Step = (_, response) => answers.push(() => response.end(JSON.stringify(SECOND.body)));
    const { clock, client, watched } = await withTokenOf(59.5 * MINUTE, [held], { timeoutMs: 300_000 });
    await client.whoami();
    expect([watched.running(), watched.keeping()]).toEqual([1, 0]);
    await clock.advance(26_000);
    const waiting = client.whoami();
    expect([watched.running(), watched.keeping()]).toEqual([1, 1]);
    await until(() => answers.length > 0);
    answers[0]?.();
    await waiting;
  });

  it("keeps the process as soon as a call waits for its retry, which is made as for any call (CLI-2, CLI-4)", async () => {
    const retries: unknown[] = [];
    let keeping = 0;
    const last: Step = (_, response) => {
      keeping = watched.keeping();
      response.end(JSON.stringify(SECOND.body));
    };
    const options = { maxRetries: 1, onRetry: () => retries.push(1) };
    const { clock, client, watched, tokenRequests } = await withTokenOf(
      59.5 * MINUTE,
      [unavailable(50), last],
      options,
    );
    await client.whoami();
    await until(() => retries.length > 0);
    await clock.advance(26_000);
    const waiting = client.whoami();
    expect(watched.keeping()).toBe(1);
    await clock.advance(24_000);
    await waiting;
    expect(keeping).toBe(1);
    expect(tokenRequests()).toBe(3);
  });
});
