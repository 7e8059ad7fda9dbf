import { describe, expect, it } from "vitest";
import { countOf, withAttempt } from "../../../../src/messaging/emulator/delivery/attempt.ts";
import type { Attempt } from "../../../../src/messaging/emulator/state/records.ts";
import { BEGIN, configure, expectSigned, MINUTE, mac, newest, receive, SECRET, stage } from "../delivery-support.ts";
import { call } from "../support.ts";

const NEXT = "next-secret-of-the-tests";

describe("redelivery", () => {
  it("makes a pending delivery delivered and cancels its plan (RCV-6)", async () => {
    const { emulator, catcher } = await stage();
    catcher.answer = 500;
    const { deliveryId } = await receive(emulator);
    catcher.answer = 200;
    const after = await emulator.control.redeliver(deliveryId);
    expect(after).toMatchObject({ state: "delivered", nextAttemptAt: null, scheduledAttempts: 1 });
    expect(after.attempts.map(({ trigger, status }) => [trigger, status])).toEqual([
      ["schedule", 500],
      ["redelivery", 200],
    ]);
    const clock = await call(emulator, "GET", "/_emulator/clock");
    expect(clock.body.waiting).toBe(0);
    await emulator.clock.advance(81 * MINUTE);
    expect(catcher.caught).toHaveLength(2);
  });

  it("leaves the plan as it was when it fails: no retry of its own, none less (DLV-6)", async () => {
    const { emulator, catcher } = await stage();
    catcher.answer = 500;
    const { deliveryId } = await receive(emulator);
    await emulator.clock.advance(MINUTE / 2);
    expect(await emulator.control.redeliver(deliveryId)).toMatchObject({
      state: "pending",
      nextAttemptAt: BEGIN + MINUTE,
      scheduledAttempts: 1,
    });
    await emulator.clock.advance(81 * MINUTE);
    expect(newest(emulator)).toMatchObject({ state: "failed", scheduledAttempts: 5 });
    const minutes = newest(emulator).attempts.map(({ at }) => (at - BEGIN) / MINUTE);
    expect(minutes).toEqual([0, 0.5, 1, 6, 21, 81]);
  });

  it("is not the first attempt that retries may be counted from (DLV-6)", async () => {
    const { emulator, catcher } = await stage({
      unspecified: { retryFrom: "first" },
      faults: [{ match: { webhook: true }, action: { type: "delay", ms: MINUTE } }],
    });
    catcher.answer = 500;
    const { deliveryId } = await receive(emulator);
    await emulator.control.redeliver(deliveryId);
    await emulator.clock.advance(61 * MINUTE);
    expect(newest(emulator).attempts.map(({ at }) => (at - BEGIN) / MINUTE)).toEqual([0, 1, 2, 6, 16, 61]);
  });

  it("repeats a delivered event with the same bytes, as often as asked", async () => {
    const { emulator, catcher } = await stage();
    const { deliveryId } = await receive(emulator);
    await Promise.all([emulator.control.redeliver(deliveryId), emulator.control.redeliver(deliveryId)]);
    catcher.answer = 500;
    expect((await emulator.control.redeliver(deliveryId)).state).toBe("delivered");
    expect(catcher.caught).toHaveLength(4);
    expect(new Set(catcher.caught.map(({ text }) => text)).size).toBe(1);
  });

  it("reaches what had failed for good, had no target, or was dropped", async () => {
    const { emulator, catcher } = await stage();
    catcher.answer = 500;
    const failed = await receive(emulator);
    await emulator.clock.advance(81 * MINUTE);
    await configure(emulator, "inbound", { enabled: false });
    const lost = await receive(emulator);
    expect((await emulator.control.redeliver(lost.deliveryId)).attempts.map(({ error }) => error)).toEqual([
      "NO_TARGET",
      "NO_TARGET",
    ]);
    await configure(emulator, "inbound", { enabled: true });
    emulator.control.faults.add({ match: { webhook: true }, action: { type: "drop" }, times: 1 });
    const dropped = await receive(emulator);
    expect(dropped).toMatchObject({ state: "dropped", attempts: [] });
    catcher.answer = 200;
    for (const { deliveryId } of [failed, lost, dropped]) {
      expect((await emulator.control.redeliver(deliveryId)).state).toBe("delivered");
    }
  });

  it("is no repeat where nothing was sent before (DLV-8)", async () => {
    const { emulator, catcher } = await stage({ unspecified: { retryBody: "reserialised" } });
    await configure(emulator, "inbound", { enabled: false });
    const { deliveryId } = await receive(emulator);
    await configure(emulator, "inbound", { enabled: true });
    await emulator.control.redeliver(deliveryId);
    await emulator.control.redeliver(deliveryId);
    const sent = catcher.caught.map(({ text }) => text === emulator.control.events()[0]?.body);
    expect(sent).toEqual([true, false]);
  });

  it("goes where events go now, signed anew, whatever the readings keep for retries (DLV-17, DLV-18)", async () => {
    const { emulator, catcher } = await stage({ unspecified: { resolveTarget: "event", retrySignature: "frozen" } });
    catcher.answer = 500;
    const { deliveryId } = await receive(emulator);
    await emulator.clock.advance(MINUTE / 2);
    await configure(emulator, "inbound", { secret: NEXT });
    await emulator.control.redeliver(deliveryId);
    expect(catcher.caught[1]?.timestamp).toBe(String(BEGIN + MINUTE / 2));
    expectSigned(catcher.caught[1], NEXT);
    await emulator.clock.advance(MINUTE / 2);
    expect(catcher.caught[2]?.timestamp).toBe(String(BEGIN));
    expectSigned(catcher.caught[2]);
  });
});

it("redelivery of what is no longer kept brings nothing back that went out of the bounds meanwhile", async () => {
  const { emulator, catcher } = await stage({ keep: 1 });
  const { deliveryId } = await receive(emulator, "old");
  let answer = () => {};
  const arrived = new Promise<void>((resolve) => {
    catcher.answer = (_, response) => {
      answer = () => response.writeHead(200).end();
      resolve();
    };
  });
  const redelivered = Promise.allSettled([emulator.control.redeliver(deliveryId)]);
  await arrived;
  catcher.answer = 200;
  emulator.control.inbound({ to: emulator.fixtures.numbers.full, from: "+14155550123", body: "new" });
  await expect.poll(() => emulator.control.deliveries().map(({ state }) => state)).toEqual(["delivered"]);
  answer();
  expect(await redelivered).toMatchObject([{ reason: { code: "cut_off" } }]);
  expect(emulator.control.deliveries().map((delivery) => delivery.deliveryId)).not.toContain(deliveryId);
});

it("recovery tries once more all since a time that was not delivered, and nothing else", async () => {
  const { emulator, catcher } = await stage();
  catcher.answer = 500;
  const old = await receive(emulator, "old");
  await emulator.clock.advance(100 * MINUTE);
  const since = emulator.clock.now();
  const failed = await receive(emulator, "failed");
  await emulator.clock.advance(81 * MINUTE);
  const pending = await receive(emulator, "pending");
  catcher.answer = 200;
  await receive(emulator, "delivered");
  catcher.caught.length = 0;
  const recovered = await emulator.control.recover(since);
  expect(recovered.map(({ deliveryId, state }) => [deliveryId, state])).toEqual([
    [failed.deliveryId, "delivered"],
    [pending.deliveryId, "delivered"],
  ]);
  expect(recovered.map(({ attempts }) => attempts.at(-1)?.trigger)).toEqual(["recovery", "recovery"]);
  expect(catcher.caught.map(({ event }) => event.data.body).sort()).toEqual(["failed", "pending"]);
  expect(await emulator.control.recover(since)).toEqual([]);
  expect((await emulator.control.recover(0)).map(({ deliveryId }) => deliveryId)).toEqual([old.deliveryId]);
});

function attempt(trigger: Attempt["trigger"], at: number, responseBody = ""): Attempt {
  const made = { url: "http://127.0.0.1/", status: 500, error: null, durationMs: 0, faults: [] };
  return { trigger, at, requestHeaders: {}, responseHeaders: {}, responseBody, ...made };
}

describe("withAttempt()", () => {
  it("keeps 100: the scheduled ones and the newest", () => {
    let history = { attempts: [] as readonly Attempt[], droppedAttempts: 0 };
    const scheduled = [0, 3, 50, 99, 120];
    for (let at = 0; at < 150; at++) {
      history = withAttempt(history, attempt(scheduled.includes(at) ? "schedule" : "redelivery", at));
    }
    const newest = Array.from({ length: 97 }, (_, i) => 53 + i);
    expect(history.attempts.map(({ at }) => at)).toEqual([0, 3, 50, ...newest]);
    expect([history.droppedAttempts, countOf(history)]).toEqual([50, 150]);
  });

  it("cuts all answers but the newest to 1 KiB, between characters, once", () => {
    const long = "é".repeat(8_192);
    let history = { attempts: [] as readonly Attempt[], droppedAttempts: 0 };
    const bodies = () => history.attempts.map(({ responseBody }) => responseBody);
    for (const body of [`x${long}`, "a".repeat(1_024), long])
      history = withAttempt(history, attempt("schedule", 0, body));
    expect(bodies()).toEqual([`x${"é".repeat(508)} [cut]`, "a".repeat(1_024), long]);
    history = withAttempt(history, attempt("schedule", 0));
    expect(bodies().slice(1)).toEqual(["a".repeat(1_024), `${"é".repeat(509)} [cut]`, ""]);
    expect(Math.max(...bodies().map((body) => Buffer.byteLength(body)))).toBe(1_024);
  });
});

it("a delivery is signed with its secrets in turn however many attempts it had (DLV-16)", async () => {
  const { emulator, catcher } = await stage({ unspecified: { overlapSigning: "alternate" } });
  await configure(emulator, "inbound", { secret: "the-next-secret-of-the-tests" });
  catcher.answer = 500;
  const { deliveryId } = await receive(emulator);
  for (let i = 0; i < 103; i++) await emulator.control.redeliver(deliveryId);
  const withCurrent = catcher.caught.map((one) => one.signature !== mac(SECRET, one).toString("hex"));
  expect(withCurrent.every((isCurrent, i) => isCurrent === (i % 2 === 0))).toBe(true);
});
