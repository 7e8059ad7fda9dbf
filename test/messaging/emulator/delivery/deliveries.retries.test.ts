import { describe, expect, it } from "vitest";
import { createFakeClock } from "../../../../src/tools/testing/fake-clock.ts";
import { BEGIN, configure, expectSigned, MINUTE, minutesOf, newest, receive, stage } from "../delivery-support.ts";
import { startCatcher } from "../support.ts";

describe("retries: the plan", () => {
  it("comes 1, 5, 15 and 60 minutes after each failed attempt, then fails for good (DLV-6)", async () => {
    const { emulator, catcher } = await stage();
    catcher.answer = 503;
    const first = await receive(emulator);
    expect(first).toMatchObject({ state: "pending", scheduledAttempts: 1, nextAttemptAt: BEGIN + MINUTE });
    await emulator.clock.advance(81 * MINUTE - 1);
    expect(newest(emulator)).toMatchObject({ state: "pending", nextAttemptAt: BEGIN + 81 * MINUTE });
    await emulator.clock.advance(1);
    expect(newest(emulator)).toMatchObject({ state: "failed", nextAttemptAt: null, scheduledAttempts: 5 });
    expect(minutesOf(newest(emulator))).toEqual([0, 1, 6, 21, 81]);
    await emulator.clock.advance(30 * 24 * 60 * MINUTE);
    expect(catcher.caught).toHaveLength(5);
  });

  it("counts from the first attempt where that is the reading (DLV-6)", async () => {
    const { emulator, catcher } = await stage({ unspecified: { retryFrom: "first" } });
    catcher.answer = 503;
    await receive(emulator);
    await emulator.clock.advance(60 * MINUTE);
    expect(newest(emulator).state).toBe("failed");
    expect(minutesOf(newest(emulator))).toEqual([0, 1, 5, 15, 60]);
  });

  it.each([200, 201, 202, 204, 299])("ends with the status %i (DLV-7)", async (status) => {
    const { emulator, catcher } = await stage();
    catcher.answer = status;
    expect(await receive(emulator)).toMatchObject({ state: "delivered", nextAttemptAt: null });
    await emulator.clock.advance(81 * MINUTE);
    expect(catcher.caught).toHaveLength(1);
  });

  it.each([301, 307, 400, 429, 500, 503])(
    "goes on after a %i, whatever its headers (DLV-7, DLV-19)",
    async (status) => {
      const { emulator, catcher } = await stage();
      const headers = { location: catcher.url, "retry-after": "3600" };
      catcher.answer = (_, response) => response.writeHead(status, headers).end();
      const delivery = await receive(emulator);
      expect(delivery).toMatchObject({ state: "pending", nextAttemptAt: BEGIN + MINUTE });
      expect(delivery.attempts[0]).toMatchObject({ status, error: null });
      expect(catcher.caught).toHaveLength(1);
      catcher.answer = 200;
      await emulator.clock.advance(MINUTE);
      expect(newest(emulator).state).toBe("delivered");
    },
  );

  it("goes on after a connection that breaks (DLV-7)", async () => {
    const { emulator, catcher } = await stage();
    catcher.answer = (_, response) => response.destroy();
    const delivery = await receive(emulator);
    expect(delivery).toMatchObject({ state: "pending", nextAttemptAt: BEGIN + MINUTE });
    expect(delivery.attempts).toMatchObject([{ status: null, error: "reset" }]);
    catcher.answer = 200;
    await emulator.clock.advance(MINUTE);
    expect(newest(emulator).state).toBe("delivered");
  });

  it("ends with NO_TARGET when a retry is due and there is none any more, and plays no fault on it (DLV-2, DLV-18)", async () => {
    const { emulator, catcher } = await stage({
      faults: [{ match: { webhook: true }, action: { type: "unsigned" }, times: 2 }],
    });
    catcher.answer = 500;
    await receive(emulator);
    await configure(emulator, "inbound", { enabled: false });
    await emulator.clock.advance(MINUTE);
    const lost = newest(emulator);
    expect(lost).toMatchObject({ state: "no_target", nextAttemptAt: null, scheduledAttempts: 1 });
    expect(lost.attempts[1]).toMatchObject({ at: BEGIN + MINUTE, url: null, error: "NO_TARGET", faults: [] });
    expect(emulator.control.faults.list()).toMatchObject([{ played: 1 }]);
    await configure(emulator, "inbound", { enabled: true });
    await emulator.clock.advance(81 * MINUTE);
    expect(catcher.caught).toHaveLength(1);
    expect(newest(emulator).attempts).toHaveLength(2);
  });

  it("leaves the plan as it was when somebody asks for an attempt while there is no target (DLV-2)", async () => {
    const { emulator, catcher } = await stage();
    catcher.answer = 500;
    const { deliveryId } = await receive(emulator);
    await configure(emulator, "inbound", { enabled: false });
    const asked = await emulator.control.redeliver(deliveryId);
    expect(asked).toMatchObject({ state: "pending", nextAttemptAt: BEGIN + MINUTE, scheduledAttempts: 1 });
    await configure(emulator, "inbound", { enabled: true });
    catcher.answer = 200;
    await emulator.clock.advance(MINUTE);
    expect(newest(emulator).attempts.map(({ error, status }) => error ?? status)).toEqual([500, "NO_TARGET", 200]);
  });
});

describe("deliveries: when the target is looked up", () => {
  const LATE = [{ match: { webhook: true }, action: { type: "delay", ms: 90 * MINUTE } }] as const;

  it("ends a late delivery only then when there is none (DLV-2, DLV-18)", async () => {
    const { emulator, catcher } = await stage({ faults: LATE });
    await receive(emulator);
    await configure(emulator, "inbound", { enabled: false });
    await emulator.clock.advance(90 * MINUTE - 1);
    expect(newest(emulator)).toMatchObject({ state: "pending", attempts: [] });
    await emulator.clock.advance(1);
    expect(newest(emulator)).toMatchObject({ state: "no_target", nextAttemptAt: null, scheduledAttempts: 0 });
    expect(newest(emulator).attempts).toMatchObject([{ at: BEGIN + 90 * MINUTE, error: "NO_TARGET" }]);
    await configure(emulator, "inbound", { enabled: true });
    await emulator.clock.advance(81 * MINUTE);
    expect(catcher.caught).toEqual([]);
  });

  it("finds the target of a late delivery that had none when the event came (DLV-2, DLV-18)", async () => {
    const { emulator, catcher } = await stage({ faults: LATE });
    await configure(emulator, "inbound", { enabled: false });
    expect(await receive(emulator)).toMatchObject({ state: "pending", attempts: [] });
    await configure(emulator, "inbound", { enabled: true });
    await emulator.clock.advance(90 * MINUTE);
    expect(catcher.caught).toHaveLength(1);
  });

  it("is at the event where that is the reading, however late the attempt is (DLV-2, DLV-18)", async () => {
    const { emulator, catcher } = await stage({ faults: LATE, unspecified: { resolveTarget: "event" } });
    await receive(emulator, "with a target");
    await configure(emulator, "inbound", { enabled: false });
    const lost = await receive(emulator, "without one");
    expect(lost).toMatchObject({
      state: "no_target",
      nextAttemptAt: null,
      attempts: [{ at: BEGIN, error: "NO_TARGET" }],
    });
    await emulator.clock.advance(90 * MINUTE);
    expect(catcher.caught.map(({ event }) => event.data.body)).toEqual(["with a target"]);
  });
});

it("retries: an attempt's time is 10 s where nothing else was set, of the real clock (DLV-19)", async () => {
  const clock = createFakeClock();
  const { emulator, catcher } = await stage({ systemClock: clock });
  const arrived = new Promise<void>((resolve) => {
    catcher.answer = () => resolve();
  });
  const ended = receive(emulator);
  await arrived;
  await clock.advance(9_999);
  expect(newest(emulator).attempts).toEqual([]);
  await clock.advance(1);
  expect(newest(emulator).attempts).toMatchObject([{ status: null, error: "timeout" }]);
  await ended;
});

describe("retries: order and end of the state", () => {
  it("come in the order of their events, whichever first attempt ended first", async () => {
    const { emulator, catcher } = await stage();
    const held: (() => void)[] = [];
    catcher.answer = (_, response) => {
      held.push(() => response.writeHead(500).end());
      // Both first attempts are under way; the second one is answered first.
      if (held.length === 2) for (const answer of held.reverse()) answer();
    };
    for (const body of ["one", "two"]) {
      emulator.control.inbound({ to: emulator.fixtures.numbers.full, from: "+14155550123", body });
    }
    await emulator.clock.idle();
    catcher.answer = 500;
    emulator.control.faults.add({ match: { webhook: true }, action: { type: "unsigned" }, times: 1 });
    await emulator.clock.advance(MINUTE);
    const played = emulator.control.attempts().filter(({ faults }) => faults.length > 0);
    expect(played.map(({ eventId }) => eventId)).toEqual(["evt_a8244c_000001"]);
  });

  it("end with a reset, even of what is under way then, and ids go on", async () => {
    const { emulator, catcher } = await stage();
    let answer = () => {};
    const arrived = new Promise<void>((resolve) => {
      catcher.answer = (_, response) => {
        answer = () => response.writeHead(500).end();
        resolve();
      };
    });
    const message = { to: emulator.fixtures.numbers.full, from: "+14155550123", body: "hello" };
    emulator.control.inbound(message);
    await arrived;
    emulator.control.reset();
    catcher.answer = 200;
    emulator.control.inbound(message);
    answer();
    await emulator.clock.advance(81 * MINUTE);
    expect(emulator.control.deliveries()).toMatchObject([
      { deliveryId: "dlv_a8244c_000002", state: "delivered", attempts: [{ status: 200 }] },
    ]);
  });

  it("are due at once where their time passed while the emulator was away", async () => {
    const { emulator, catcher } = await stage();
    catcher.answer = 500;
    await receive(emulator);
    const exported = emulator.control.exportState();
    catcher.answer = 200;
    await emulator.clock.advance(MINUTE - 1);
    emulator.control.importState(exported);
    await emulator.clock.advance(10 * MINUTE);
    emulator.control.importState(exported);
    await emulator.clock.idle();
    expect(newest(emulator)).toMatchObject({
      state: "delivered",
      attempts: [{ at: BEGIN }, { at: BEGIN + 11 * MINUTE - 1 }],
    });
  });

  it("and attempts that the closing emulator cuts off count as not made, even a last one", async () => {
    const { emulator, catcher } = await stage();
    catcher.answer = 500;
    await receive(emulator);
    await emulator.clock.advance(81 * MINUTE - 1);
    const arrived = new Promise<void>((resolve) => {
      catcher.answer = () => resolve();
    });
    const advanced = emulator.clock.advance(1);
    await arrived;
    await emulator.close();
    await advanced;
    expect(newest(emulator)).toMatchObject({ state: "pending", scheduledAttempts: 4 });
    expect(newest(emulator).nextAttemptAt).toBe(BEGIN + 81 * MINUTE);
  });
});

const NEXT = "next-secret-of-the-tests";

describe("retries: what they send", () => {
  it("repeat the exact bytes, each with a timestamp and signature of its own (DLV-8, DLV-17)", async () => {
    const { emulator, catcher } = await stage();
    catcher.answer = 500;
    await receive(emulator);
    await emulator.clock.advance(81 * MINUTE);
    expect(new Set(catcher.caught.map(({ text }) => text)).size).toBe(1);
    const ages = catcher.caught.map((caught) => (Number(caught.timestamp) - BEGIN) / MINUTE);
    expect(ages).toEqual([0, 1, 6, 21, 81]);
    for (const caught of catcher.caught) expectSigned(caught);
  });

  it("repeat only the content where that is the reading, signed over the bytes as sent (DLV-8)", async () => {
    const { emulator, catcher } = await stage({ unspecified: { retryBody: "reserialised" } });
    catcher.answer = 500;
    await receive(emulator, 'quotes " and \u2028 and 🎉');
    await emulator.clock.advance(81 * MINUTE);
    expect(catcher.caught[0]?.text).toBe(emulator.control.events()[0]?.body);
    expect(new Set(catcher.caught.map(({ text }) => text)).size).toBe(5);
    expect(Object.keys(catcher.caught[1]?.event)).toEqual(Object.keys(catcher.caught[0]?.event).reverse());
    for (const caught of catcher.caught) {
      expect(caught.event).toEqual(catcher.caught[0]?.event);
      expectSigned(caught);
    }
  });

  it("repeat a body that is no JSON, as only an import brings one, as it is (DLV-8)", async () => {
    const { emulator, catcher } = await stage({ unspecified: { retryBody: "reserialised" } });
    catcher.answer = 500;
    await receive(emulator);
    const exported = structuredClone(emulator.control.exportState());
    const events = exported.tables.events as Record<string, { body: string }>;
    const bodies = ["{ no JSON", `${"[".repeat(50_000)}${"]".repeat(50_000)}`];
    for (const body of bodies) {
      for (const event of Object.values(events)) event.body = body;
      emulator.control.importState(exported);
      await emulator.clock.advance(81 * MINUTE);
      expect(newest(emulator)).toMatchObject({ state: "failed", scheduledAttempts: 5 });
    }
    expect([...new Set(catcher.caught.slice(1).map(({ text }) => text))]).toEqual(bodies);
  });

  it("keep the first attempt's timestamp and secret where that is the reading (DLV-17)", async () => {
    const { emulator, catcher } = await stage({ unspecified: { retrySignature: "frozen" } });
    catcher.answer = 500;
    await receive(emulator);
    await configure(emulator, "inbound", { secret: NEXT });
    await emulator.clock.advance(81 * MINUTE);
    expect(catcher.caught).toHaveLength(5);
    for (const caught of catcher.caught) {
      expect(caught.timestamp).toBe(String(BEGIN));
      expectSigned(caught);
    }
    await receive(emulator);
    expectSigned(catcher.caught[5], NEXT);
  });

  it("stay unsigned where the frozen first attempt was (DLV-17)", async () => {
    const { emulator, catcher } = await stage({ unspecified: { retrySignature: "frozen" } });
    catcher.answer = 500;
    await configure(emulator, "inbound", { signingEnabled: false });
    await receive(emulator);
    await configure(emulator, "inbound", { signingEnabled: true });
    await emulator.clock.advance(MINUTE);
    expect(catcher.caught.map(({ signature }) => signature)).toEqual([undefined, undefined]);
  });

  it.each(["attempt", "event"] as const)(
    "go where events go at the %s, with the secret of then (DLV-18)",
    async (resolveTarget) => {
      const { emulator, catcher } = await stage({ unspecified: { resolveTarget } });
      const other = await startCatcher();
      catcher.answer = 500;
      await receive(emulator);
      await configure(emulator, "inbound", { endpointUrl: other.url, secret: NEXT });
      await emulator.clock.advance(MINUTE);
      expect([catcher.caught.length, other.caught.length]).toEqual(resolveTarget === "event" ? [2, 0] : [1, 1]);
      if (resolveTarget === "event") expectSigned(catcher.caught[1]);
      else expectSigned(other.caught[0], NEXT);
    },
  );
});
