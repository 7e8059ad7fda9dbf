/** What happens to an outbound message, and when: the three lifecycles, the controls over them, and a restart in between. */
import { describe, expect, it } from "vitest";
import type { Emulator } from "../../src/emulator/index.ts";
import { planSteps } from "../../src/emulator/messages/plan.ts";
import { call, ready, send, start, startAgain, startCatcher } from "./support.ts";

/** Type and sequence of the events so far. */
function story(emulator: Emulator, messageId?: string): string[] {
  const events = emulator.control.events(messageId === undefined ? {} : { messageId });
  return events.map(({ eventType, sequence }) => `${eventType} ${sequence}`);
}

function message(emulator: Emulator, messageId = "msg_a8244c_000001") {
  return emulator.control.messages({ messageId })[0];
}

const WHOLE = ["message.queued 1", "message.sent 2", "message.delivery 3"];

it("the instant lifecycle is over when the send is answered (EVT-8)", async () => {
  const { emulator, token } = await ready({ lifecycle: "instant" });
  await send(emulator, token, { to: ["+14155550123", "+14155550124"] });
  expect(story(emulator)).toEqual([...WHOLE, ...WHOLE]);
  expect(message(emulator)).toMatchObject({ status: "delivered", sequence: 3, steps: [] });
  expect(new Set(emulator.control.events().map(({ occurredAt }) => occurredAt))).toEqual(
    new Set([emulator.clock.now()]),
  );
});

describe("the realistic lifecycle", () => {
  it("has queued at once, sent after 0.2 to 2 s, and an end within 10 s (EVT-8)", async () => {
    const { emulator, token } = await ready();
    await send(emulator, token);
    const begin = emulator.clock.now();
    expect(story(emulator)).toEqual(["message.queued 1"]);
    await emulator.clock.advance(199);
    expect(story(emulator)).toHaveLength(1);
    await emulator.clock.advance(1_801);
    expect(message(emulator)).toMatchObject({ status: "sent", sequence: 2 });
    await emulator.clock.advance(8_000);
    expect(story(emulator)).toEqual(WHOLE);
    expect(message(emulator)).toMatchObject({ status: "delivered", sequence: 3, steps: [] });
    const [queued, sent, delivery] = emulator.control.events().map(({ occurredAt }) => occurredAt - begin);
    expect(queued).toBe(0);
    expect(sent).toBeGreaterThanOrEqual(200);
    expect(sent).toBeLessThanOrEqual(2_000);
    expect(delivery).toBeGreaterThan(sent ?? 0);
    expect(delivery).toBeLessThanOrEqual(10_000);
  });

  it.each([
    [0, 200, 700],
    [0.999_999, 2_000, 10_000],
  ])("keeps to its bounds where chance is %d", (fraction, sent, end) => {
    const input = { at: 0, lifecycle: "realistic", behaviour: null, sameSequence: false } as const;
    const steps = planSteps({ ...input, chance: () => fraction });
    expect(steps.map(({ at }) => at)).toEqual([0, sent, end]);
  });
});

it("a step that was asked for before its time leaves nothing behind that would wait for that time", async () => {
  const { emulator, token } = await ready({});
  const { body } = await send(emulator, token);
  const waiting = async () => (await call(emulator, "GET", "/_emulator/clock")).body.waiting;
  expect(await waiting()).toBe(1);
  emulator.control.advanceMessage(body.results[0].messageId);
  expect(await waiting()).toBe(1);
  emulator.control.advanceMessage(body.results[0].messageId);
  expect(await waiting()).toBe(0);
});

it("the manual lifecycle has queued at once and the rest by request (EVT-8)", async () => {
  const { emulator, token } = await ready({ lifecycle: "manual" });
  await send(emulator, token);
  await emulator.clock.advance(86_400_000);
  expect(story(emulator)).toEqual(["message.queued 1"]);
  expect(emulator.control.advanceMessage("msg_a8244c_000001")).toMatchObject({ status: "sent", sequence: 2 });
  expect(emulator.control.advanceMessage("msg_a8244c_000001")).toMatchObject({ status: "delivered", sequence: 3 });
  expect(story(emulator)).toEqual(WHOLE);
  expect(emulator.control.events().at(-1)?.occurredAt).toBe(emulator.clock.now());
  expect(() => emulator.control.advanceMessage("msg_a8244c_000001")).toThrow("ended");
});

it("advancing a message takes a planned step's place: it does not happen twice", async () => {
  const { emulator, token } = await ready();
  await send(emulator, token);
  emulator.control.advanceMessage("msg_a8244c_000001");
  expect(story(emulator)).toEqual(WHOLE.slice(0, 2));
  await emulator.clock.advance(10_000);
  expect(story(emulator)).toEqual(WHOLE);
});

it("failing a message ends it with the next sequence, whatever was planned (EVT-6, EVT-9)", async () => {
  const { emulator, token } = await ready();
  await send(emulator, token);
  expect(emulator.control.failMessage("msg_a8244c_000001")).toMatchObject({
    status: "failed",
    sequence: 2,
    steps: [],
  });
  await emulator.clock.advance(86_400_000);
  expect(story(emulator)).toEqual(["message.queued 1", "message.failed 2"]);
  expect(() => emulator.control.failMessage("msg_a8244c_000001")).toThrow("ended");
  expect(() => emulator.control.advanceMessage("msg_a8244c_000001")).toThrow("ended");
});

it("a message of the manual lifecycle waits after an import as well", async () => {
  const { emulator, token } = await ready({ lifecycle: "manual" });
  await send(emulator, token);
  const exported = JSON.parse(JSON.stringify(emulator.control.exportState()));
  const second = await start();
  second.control.importState(exported);
  await second.clock.advance(86_400_000);
  expect(story(second)).toEqual(["message.queued 1"]);
  expect(second.control.advanceMessage("msg_a8244c_000001")).toMatchObject({ status: "sent" });
});

it("a message in an export catches up with what came due in between, each event once", async () => {
  const catcher = await startCatcher();
  const first = await ready({ deliveryUrl: catcher.url });
  await send(first.emulator, first.token, { to: ["+14155550123", "+14155550124"] });
  await first.emulator.clock.idle();
  const second = await startAgain(first.emulator, { startAt: first.emulator.clock.now() + 3_600_000 });
  await second.clock.idle();
  for (const id of ["msg_a8244c_000001", "msg_a8244c_000002"]) expect(story(second, id)).toEqual(WHOLE);
  expect(catcher.caught).toHaveLength(6);
  expect(new Set(catcher.caught.map(({ text }) => text)).size).toBe(6);
});
