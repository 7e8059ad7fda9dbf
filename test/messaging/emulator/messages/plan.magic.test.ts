/** Magic recipients: what they do to a message's events, and to the answer of the send. */
import { describe, expect, it } from "vitest";
import type { EmulatorOptions } from "../../../../src/messaging/emulator/index.ts";
import { MAGIC_RECIPIENTS } from "../../../../src/messaging/emulator/messages/plan.ts";
import { createFakeClock } from "../../../../src/tools/testing/fake-clock.ts";
import { send, start, startCatcher, tokenOf } from "../support.ts";

const KEY = { "idempotency-key": "key-of-this-test" };
const LIFECYCLES = ["instant", "realistic"] as const;

async function ready(options: EmulatorOptions = {}) {
  const catcher = await startCatcher();
  const emulator = await start({ deliveryUrl: catcher.url, inboundUrl: catcher.url, ...options });
  const token = await tokenOf(emulator);
  const story = () => catcher.caught.map(({ event }) => `${event.eventType} ${event.sequence ?? "-"}`);
  return { emulator, token, catcher, story };
}

const QUEUED = "message.queued 1";
const SENT = "message.sent 2";
const DELIVERY = "message.delivery 3";

describe("+15005550009, which is rejected though it is well-formed", () => {
  it.each([
    [undefined, "INVALID_RECIPIENT"],
    ["OPTED_OUT", "OPTED_OUT"],
  ])("code %s: %s, and the others are accepted (SND-7, CLI-9)", async (rejectionCode, code) => {
    const { emulator, token, story } = await ready({
      lifecycle: "instant",
      unspecified: rejectionCode === undefined ? {} : { rejectionCode },
    });
    const to = ["+15005550009", "+14155550123", "12"];
    const { status, body } = await send(emulator, token, { to });
    expect(status).toBe(202);
    expect(body.results.map((one: { to: string }) => one.to)).toEqual(["+14155550123"]);
    expect(body.errors).toEqual([
      { to: "+15005550009", error: { code, message: expect.any(String), details: {} } },
      { to: "12", error: { code: "INVALID_RECIPIENT", message: expect.any(String), details: {} } },
    ]);
    await emulator.clock.advance(1_000);
    expect(story()).toEqual([QUEUED, SENT, DELIVERY]);
  });
});

describe("the events of a magic recipient", () => {
  it.each([
    ["+15005550001", [QUEUED, "message.failed 2"], "failed"],
    ["+15005550002", [QUEUED, SENT, "message.failed 3"], "failed"],
    ["+15005550003", [QUEUED, SENT, "message.failed 4"], "failed"],
    ["+15005550004", [QUEUED], "QUEUED"],
    ["+15005550005", [QUEUED, QUEUED, SENT, SENT, DELIVERY, DELIVERY], "delivered"],
    ["+15005550006", [DELIVERY, SENT, QUEUED], "delivered"],
    ["+15005550014", [QUEUED, SENT, DELIVERY], "delivered"],
  ])("%s: %j (EVT-8, EVT-9)", async (to, expected, status) => {
    for (const lifecycle of LIFECYCLES) {
      const { emulator, token, story } = await ready({ lifecycle });
      await send(emulator, token, { to: [to] });
      await emulator.clock.advance(3_600_000);
      expect(story()).toEqual(expected);
      expect(emulator.control.messages({ messageId: "msg_a8244c_000001" })).toMatchObject([{ status, steps: [] }]);
    }
  });

  it.each(LIFECYCLES)("+15005550007: each of them 90 minutes late (%s)", async (lifecycle) => {
    const { emulator, token, story } = await ready({ lifecycle });
    await send(emulator, token, { to: ["+15005550007"] });
    await emulator.clock.advance(90 * 60_000 - 1);
    expect(story()).toEqual([]);
    expect(emulator.control.messages()).toMatchObject([{ status: "delivered" }]);
    await emulator.clock.advance(10_001);
    expect(story()).toEqual([QUEUED, SENT, DELIVERY]);
  });

  it.each(LIFECYCLES)("+15005550008: an answer to the number it was sent from (%s, EVT-10)", async (lifecycle) => {
    const { emulator, token, catcher, story } = await ready({ lifecycle });
    await send(emulator, token, { to: ["+15005550008"], sendFrom: emulator.fixtures.numbers.mmsOff });
    await emulator.clock.advance(13_000);
    const isAnswer = (one: string) => one === "message.inbound -";
    expect(story().filter((one) => !isAnswer(one))).toEqual([QUEUED, SENT, DELIVERY]);
    expect(story().filter(isAnswer)).toHaveLength(1);
    const answer = catcher.caught.find(({ event }) => event.eventType === "message.inbound");
    const numberId = emulator.fixtures.numbers.mmsOff;
    expect(answer?.event.data).toMatchObject({ from: "+15005550008", to: "+12065550104", numberId });
    expect(emulator.control.events().at(-1)?.messageId).toBe("msg_a8244c_000002");
    expect(emulator.control.messages()).toMatchObject([{ status: "delivered", steps: [] }, {}]);
  });

  it("are asked for one by one in the manual lifecycle", async () => {
    const { emulator, token, story } = await ready({ lifecycle: "manual" });
    await send(emulator, token, { to: ["+15005550003", "+15005550008", "+15005550004"] });
    for (const id of ["msg_a8244c_000001", "msg_a8244c_000001", "msg_a8244c_000002", "msg_a8244c_000002"])
      emulator.control.advanceMessage(id);
    expect(emulator.control.messages({ messageId: "msg_a8244c_000002" })).toMatchObject([{ status: "delivered" }]);
    emulator.control.advanceMessage("msg_a8244c_000002");
    expect(() => emulator.control.advanceMessage("msg_a8244c_000003")).toThrow("ended");
    await emulator.clock.idle();
    expect(
      story()
        .filter((one) => !one.startsWith("message.queued"))
        .sort(),
    ).toEqual([SENT, "message.failed 4", SENT, DELIVERY, "message.inbound -"].sort());
  });

  it("come twice and late also when the message is failed by request", async () => {
    const { emulator, token, story } = await ready({ lifecycle: "manual" });
    await send(emulator, token, { to: ["+15005550005", "+15005550007"] });
    emulator.control.failMessage("msg_a8244c_000001");
    emulator.control.failMessage("msg_a8244c_000002");
    await emulator.clock.idle();
    expect(story()).toEqual([QUEUED, QUEUED, "message.failed 2", "message.failed 2"]);
    await emulator.clock.advance(90 * 60_000);
    expect(story().slice(4)).toEqual([QUEUED, "message.failed 2"]);
  });

  it("that stay queued or will answer can be failed by request, until they were delivered", async () => {
    const { emulator, token, story } = await ready({ lifecycle: "manual" });
    await send(emulator, token, { to: ["+15005550004", "+15005550008"] });
    expect(emulator.control.failMessage("msg_a8244c_000001")).toMatchObject({ status: "failed", sequence: 2 });
    emulator.control.advanceMessage("msg_a8244c_000002");
    emulator.control.advanceMessage("msg_a8244c_000002");
    expect(() => emulator.control.failMessage("msg_a8244c_000002")).toThrow("ended");
    emulator.control.advanceMessage("msg_a8244c_000002");
    await emulator.clock.idle();
    expect(story().filter((one) => one.startsWith("message.failed"))).toEqual(["message.failed 2"]);
    expect(story()).toContain("message.inbound -");
  });

  it("are those of anybody with magic: false", async () => {
    const { emulator, token, story } = await ready({ magic: false, lifecycle: "instant" });
    for (const to of Object.keys(MAGIC_RECIPIENTS)) {
      expect((await send(emulator, token, { to: [to] })).status).toBe(202);
    }
    await emulator.clock.idle();
    expect(story().filter((one) => one === DELIVERY)).toHaveLength(Object.keys(MAGIC_RECIPIENTS).length);
    expect(story().filter((one) => ![QUEUED, SENT, DELIVERY].includes(one))).toEqual([]);
  });
});

describe("+15005550011", () => {
  it("gets 500 once per key, which binds no payload, then 202, and one message (SND-21, SND-29)", async () => {
    const { emulator, token } = await ready();
    const first = await send(emulator, token, { to: ["+15005550011"] }, KEY);
    expect([first.status, first.body.error.code]).toEqual([500, "SERVER_ERROR"]);
    expect(emulator.control.messages()).toEqual([]);
    const again = () => send(emulator, token, { to: ["+15005550011"], text: "bye" }, KEY);
    const second = await again();
    expect([second.status, second.body.results.length]).toEqual([202, 1]);
    expect((await again()).text).toBe(second.text);
    expect((await send(emulator, token, { to: ["+15005550011"] })).status).toBe(500);
  });

  it("comes after every refusal (SND-27)", async () => {
    const { emulator, token } = await ready();
    expect((await send(emulator, token, { to: ["+15005550011"], sendFrom: "num_9" }, KEY)).status).toBe(404);
    expect((await send(emulator, token, { to: ["+15005550011"] }, KEY)).status).toBe(500);
  });
});

it("+15005550012 is accepted, but its connection breaks; a retry gets the 202 and sends nothing again (SND-17, SND-22)", async () => {
  const { emulator, token } = await ready();
  const again = () => send(emulator, token, { to: ["+15005550012"] }, KEY);
  expect((await again()).status).toBe(0);
  expect(emulator.control.messages()).toHaveLength(1);
  const { status, body } = await again();
  expect([status, body.results[0].messageId]).toEqual([202, "msg_a8244c_000001"]);
  expect(emulator.control.messages()).toHaveLength(1);
  const logged = emulator.control.requests().slice(-2);
  expect(logged.map(({ status, faults }) => [status, faults])).toEqual([
    [0, ["reset"]],
    [202, []],
  ]);
});

it("+15005550013 makes the answer take 30 s of real time; a repeat is answered at once", async () => {
  const systemClock = createFakeClock();
  const { emulator, token } = await ready({ systemClock });
  let isAnswered = false;
  const slow = send(emulator, token, { to: ["+15005550013"] }, KEY).finally(() => {
    isAnswered = true;
  });
  const repeat = await send(emulator, token, { to: ["+15005550013"] }, KEY);
  await systemClock.advance(29_999);
  expect([repeat.status, isAnswered, emulator.control.messages().length]).toEqual([202, false, 1]);
  await systemClock.advance(1);
  expect((await slow).text).toBe(repeat.text);
});
