/** Past the inbox: verified, published, and answered 2xx by the engine's acknowledgement alone. */
import express from "express";
import { describe, expect, it } from "vitest";
import { expressWebhook } from "../../../adapters/express.ts";
import { SetupError } from "../../../src/index.ts";
import {
  type ForwardedMessage,
  type Passthrough,
  type PassthroughOptions,
  type Publish,
  passthrough,
} from "../../../src/tools/forward/index.ts";
import { fixtures, signedRequest } from "../../../src/tools/testing/index.ts";
import { serve } from "../../adapters/serving.ts";
import { deferred, HOUR, incoming, MINUTE, recordedLog, SECRET, type Wish } from "../../receiver/bench.ts";
import { atEnd } from "./needs.ts";

const BODY = JSON.stringify(fixtures.queued());

function intake(publish: Publish, options: Partial<PassthroughOptions> = {}): Passthrough {
  const { logger } = recordedLog();
  return passthrough({ secrets: SECRET, publisher: { publish, remembersIdsMs: 24 * HOUR }, logger, ...options });
}

const send = (to: Passthrough, wish: Wish = {}, body = BODY) => to.handle(incoming(body, Date.now(), wish));

describe("passthrough()", () => {
  it("answers 200 when the engine has acknowledged, not before (RCV-3)", async () => {
    const acknowledged = deferred();
    const got: ForwardedMessage[] = [];
    const answering = send(
      intake((message) => {
        got.push(message);
        return acknowledged.promise;
      }),
    );
    let answered = false;
    void answering.then(() => (answered = true));
    await expect.poll(() => got.length).toBe(1);
    expect(answered).toBe(false);
    acknowledged.resolve();
    expect(await answering).toMatchObject({ status: 200, body: '{"outcome":"accepted"}' });
    expect(Buffer.from(got[0]!.body).toString()).toBe(BODY);
    expect(got[0]!.headers).toEqual({
      ...{ "oncehook-event-type": "message.queued", "oncehook-sequence": "1" },
      ...{ "oncehook-source": "service", "oncehook-tenant": "apc_1", "oncehook-lane": "msg_000001" },
    });
  });

  it("waits once for what publish returns: a query builder runs its query whenever it is waited for", async () => {
    let queries = 0;
    const query: PromiseLike<number> = {
      // biome-ignore lint/suspicious/noThenProperty: it is what such builders are.
      then: (done, failed) => Promise.resolve(++queries).then(done, failed),
    };
    expect(await send(intake(() => query))).toMatchObject({ status: 200 });
    expect(queries).toBe(1);
  });

  it("publishes a repeat with the same id: it keeps none itself (EVT-12, RCV-6)", async () => {
    const ids: string[] = [];
    const to = intake(async ({ id }) => ids.push(id));
    await send(to);
    await send(to, { at: Date.now() - MINUTE });
    expect(ids).toEqual([ids[0], ids[0]]);
  });

  it.each([
    ["another secret", 401, { secret: "another-secret-of-32-bytes-xxxxx" }],
    ["no signature", 401, { unsigned: true }],
    ["91 minutes of age", 401, { at: Date.now() - 91 * MINUTE }],
    ["6 minutes ahead", 401, { at: Date.now() + 6 * MINUTE }],
    ["GET", 405, { method: "GET" }],
    ["an encoding", 415, { headers: { "content-encoding": "gzip" } }],
    ["a body over the limit", 413, { readBody: () => ({ ok: false, reason: "too_large" }) }],
    ["a body cut short", 400, { readBody: () => ({ ok: false, reason: "truncated" }) }],
  ] satisfies [string, number, Wish][])(
    "refuses %s as a receiver does, with %i (RCV-1, RCV-2)",
    async (_, status, wish) => {
      let published = 0;
      const to = intake(async () => published++);
      expect(await send(to, wish)).toMatchObject({ status });
      expect(published).toBe(0);
    },
  );

  it("answers 400 to a signed body that is no event: there is no quarantine", async () => {
    expect(
      await send(
        intake(async () => {}),
        {},
        "{}",
      ),
    ).toMatchObject({ status: 400 });
  });

  it("answers 503 at its deadline when the engine never answers, and tells the engine (RCV-4)", async () => {
    const signals: AbortSignal[] = [];
    const { log, logger } = recordedLog();
    const to = intake(
      ({ signal }) => {
        signals.push(signal);
        return new Promise(() => {});
      },
      { deadlineMs: 30, logger },
    );
    expect(await send(to)).toMatchObject({ status: 503, headers: { "retry-after": "30" } });
    expect(signals.map(({ aborted }) => aborted)).toEqual([true]);
    expect(log.map(({ level, fields }) => [level, fields.code])).toEqual([["error", "wait_timeout"]]);
  });

  it("does not publish what was read too slowly to be answered in time", async () => {
    let published = 0;
    const to = intake(async () => published++, { deadlineMs: 20 });
    const bytes = Buffer.from(BODY);
    const readBody = () =>
      new Promise<{ ok: true; bytes: Buffer }>((resolve) => setTimeout(() => resolve({ ok: true, bytes }), 60));
    expect(await send(to, { readBody })).toMatchObject({ status: 503 });
    expect(published).toBe(0);
  });

  it.each([
    ["503 when the engine fails", new Error("down"), 503],
    ["500 for a wrong set-up", new SetupError("not_durable", "The stream is kept in memory."), 500],
  ])("answers %s, and goes on with the next", async (_, error, status) => {
    let fails = true;
    const to = intake(async () => {
      if (fails) throw error;
    });
    expect(await send(to)).toMatchObject({ status });
    fails = false;
    expect(await send(to)).toMatchObject({ status: 200 });
  });

  it("holds 256 events at once, and answers 503 beyond", async () => {
    const acknowledged = deferred();
    const { log, logger } = recordedLog();
    const to = intake(() => acknowledged.promise, { logger });
    const held = Array.from({ length: 256 }, () => send(to));
    await new Promise<void>((resolve) => setImmediate(resolve));
    expect(await send(to)).toMatchObject({ status: 503 });
    expect(log).toMatchObject([{ level: "error", fields: { code: "engine_busy", open: 256 } }]);
    acknowledged.resolve();
    expect(new Set((await Promise.all(held)).map(({ status }) => status))).toEqual(new Set([200]));
    expect(await send(to)).toMatchObject({ status: 200 });
  });

  it("starts no more than 256 publications that an engine leaves open after their deadline", async () => {
    const settled = deferred();
    let started = 0;
    const publish = () => {
      started += 1;
      return settled.promise;
    };
    const to = intake(publish, { deadlineMs: 500 });
    for (let round = 0; round < 2; round++) {
      const answers = await Promise.all(Array.from({ length: 256 }, () => send(to)));
      expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([503]));
    }
    expect(started).toBe(256);
    settled.resolve();
    expect(await send(to)).toMatchObject({ status: 200 });
  });

  it("writes no number and no text into its log", async () => {
    const { log, logger } = recordedLog();
    const to = intake(() => Promise.reject(new Error(`cannot send ${BODY}`)), { logger });
    await send(to);
    await send(to, { unsigned: true });
    expect(log.length).toBe(2);
    expect(JSON.stringify(log)).not.toMatch(/\d{7}/);
    expect(log[0]?.fields).toMatchObject({ error: expect.stringMatching(/^Error: cannot send .*"to\\?":\\?"…\d\d/) });
  });

  it("is mounted as a receiver is", async () => {
    const { logger } = recordedLog();
    const published: string[] = [];
    const publisher = { publish: async ({ id }: ForwardedMessage) => published.push(id), remembersIdsMs: 24 * HOUR };
    const to = passthrough({ secrets: SECRET, publisher, logger });
    const app = express().all("/webhooks", expressWebhook(to));
    const server = await serve(app);
    atEnd(() => server.close());
    const request = signedRequest(fixtures.queued(), { secret: SECRET });
    const url = `http://127.0.0.1:${server.port}/webhooks`;
    const answer = await fetch(url, request);
    expect([answer.status, await answer.json()]).toEqual([200, { outcome: "accepted" }]);
    const refused = await fetch(url, { ...request, body: "{}" });
    expect([refused.status, await refused.json()]).toEqual([401, { error: "unauthorized" }]);
    expect(published).toHaveLength(1);
  });
});

describe("passthrough() checks what it can", () => {
  const publish: Publish = async () => {};

  it("refuses an engine that forgets ids while deliveries still count", () => {
    const forgetful = { publish, remembersIdsMs: 120_000 };
    expect(() => intake(publish, { publisher: forgetful })).toThrow(/5700000 ms.*120000 ms.*"consumers"/);
    expect(() => intake(publish, { publisher: publish })).toThrow(/0 ms/);
    expect(() => intake(publish, { publisher: forgetful, toleranceMs: MINUTE })).not.toThrow();
    expect(() => intake(publish, { publisher: forgetful, duplicates: "consumers" })).not.toThrow();
  });

  it.each([
    [{ deadlineMs: 10_000 }, /deadlineMs/],
    [{ deadlineMs: 0 }, /deadlineMs/],
    [{ duplicates: "nobody" }, /duplicates/],
    [{ store: {} }, /no option "store"/],
    [{ publisher: {} }, /publisher/],
    [{ secrets: "short" }, /at least 16/],
    [{ toleranceMs: 0 }, /toleranceMs/],
  ])("refuses %j", (options, message) => {
    expect(() => intake(publish, options as Partial<PassthroughOptions>)).toThrow(message);
  });

  it("gives the engine's check to the application's start, and makes it before the first message", async () => {
    const wrong = new SetupError("not_durable", "The stream is kept in memory.");
    let isWrong = true;
    const check = async () => {
      if (isWrong) throw wrong;
      return [];
    };
    const to = intake(publish, { publisher: { publish, check, remembersIdsMs: 24 * HOUR } });
    await expect(to.check()).rejects.toBe(wrong);
    expect(await send(to)).toMatchObject({ status: 500 });
    isWrong = false;
    await to.check();
    expect(await send(to)).toMatchObject({ status: 200 });
  });
});
