/** What happens to an outbound message, and when: the lifecycles, the controls and watchers over them, and a restart in between. */
import { describe, expect, it } from "vitest";
import type { Emulator, EmulatorOptions } from "../../../../src/messaging/emulator/index.ts";
import { planSteps } from "../../../../src/messaging/emulator/messages/plan.ts";
import { createJournal } from "../../../../src/messaging/emulator/service.ts";
import type { Delivery } from "../../../../src/messaging/emulator/state/records.ts";
import { uncaughtErrors } from "../../../support/uncaught.ts";
import { call, ready, send, start, startAgain, startCatcher } from "../support.ts";

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
  const now = emulator.clock.now();
  expect(emulator.control.events().filter(({ occurredAt }) => occurredAt !== now)).toEqual([]);
});

describe("the realistic lifecycle", () => {
  it("has queued at once, sent after 0.2 to 2 s, and an end within 10 s (EVT-8)", async () => {
    const { emulator, token } = await ready();
    await send(emulator, token);
    expect(story(emulator)).toEqual(["message.queued 1"]);
    await emulator.clock.advance(199);
    expect(story(emulator)).toHaveLength(1);
    await emulator.clock.advance(1_801);
    expect(message(emulator)).toMatchObject({ status: "sent", sequence: 2 });
    await emulator.clock.advance(8_000);
    expect(story(emulator)).toEqual(WHOLE);
    expect(message(emulator)).toMatchObject({ status: "delivered", sequence: 3, steps: [] });
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

describe("a watcher that goes on with the message it is told of", () => {
  /** What the receiver saw, what watchers were told, and what is left of the message. */
  async function watched(options: EmulatorOptions, act: (emulator: Emulator, messageId: string) => void, to: string) {
    const catcher = await startCatcher();
    const { emulator, token } = await ready({ ...options, deliveryUrl: catcher.url, inboundUrl: catcher.url });
    const told: string[] = [];
    const acted = new Set<string>();
    emulator.control.watch((entry) => {
      if (entry.type !== "event" || entry.event.eventType !== "message.sent" || acted.has(entry.event.messageId))
        return;
      acted.add(entry.event.messageId);
      act(emulator, entry.event.messageId);
    });
    emulator.control.watch((entry) => {
      if (entry.type === "event") told.push(nameOf(entry.event));
    });
    await send(emulator, token, { to: [to] });
    await emulator.clock.advance(3_600_000);
    const left = emulator.control.messages().map((message) => ("steps" in message ? message.steps.length : 0));
    return { seen: catcher.caught.map(({ event }) => nameOf(event)), told, left };
  }

  const nameOf = ({ eventType, sequence }: { eventType: string; sequence?: number | null }) =>
    `${eventType} ${sequence ?? "-"}`;
  const advance = (emulator: Emulator, messageId: string) => void emulator.control.advanceMessage(messageId);
  const fail = (emulator: Emulator, messageId: string) => void emulator.control.failMessage(messageId);
  const ANSWERED = [...WHOLE, "message.inbound -"];
  const TWICE = [...WHOLE, "message.delivery 3"];
  const FAILED = ["message.queued 1", "message.sent 2", "message.failed 3"];

  it.each([
    ["advances it", {}, advance, "+15005550008", ANSWERED],
    [
      "advances it, with two events of one sequence",
      { unspecified: { sameSequence: true } },
      advance,
      "+14155550123",
      TWICE,
    ],
    ["advances it, all at once", { lifecycle: "instant" }, advance, "+14155550123", WHOLE],
    ["fails it", {}, fail, "+15005550008", FAILED],
  ] as const)("and %s, loses no step and disorders nothing (EVT-8, EVT-9)", async (_, options, act, to, expected) => {
    const { seen, told, left } = await watched(options, act, to);
    expect(seen).toEqual(expected);
    expect(told).toEqual(expected);
    expect(left.every((steps) => steps === 0)).toBe(true);
  });

  it("keeps the order for whoever asks for steps by hand", async () => {
    const { emulator, token } = await ready({ lifecycle: "manual" });
    const stop = emulator.control.watch((entry) => {
      if (entry.type !== "event" || entry.event.eventType !== "message.sent") return;
      stop();
      emulator.control.advanceMessage(entry.event.messageId);
    });
    await send(emulator, token);
    emulator.control.advanceMessage("msg_a8244c_000001");
    expect(emulator.control.events().map(nameOf)).toEqual(WHOLE);
    expect(() => emulator.control.advanceMessage("msg_a8244c_000001")).toThrow("ended");
  });
});

describe("createJournal()", () => {
  it("tells each watcher in order until it ends", () => {
    const journal = createJournal();
    const seen: string[] = [];
    const unwatch = journal.watch(({ type }) => seen.push(`first: ${type}`));
    journal.watch(({ type }) => seen.push(`second: ${type}`));
    journal.tell({ type: "reset" });
    unwatch();
    journal.tell({ type: "reset" });
    expect(seen).toEqual(["first: reset", "second: reset", "second: reset"]);
  });

  it("tells what a watcher brings about when the others have heard of what it acted on", () => {
    const journal = createJournal();
    const seen: string[] = [];
    const unwatch = journal.watch(() => {
      unwatch();
      journal.tell({ type: "reset" });
    });
    journal.watch(({ type }) => seen.push(type));
    journal.tell({ type: "delivery", delivery: {} as Delivery });
    expect(seen).toEqual(["delivery", "reset"]);
  });

  it("lets a watcher that throws break neither the others nor what is told, and does not hide it", async () => {
    const errors = uncaughtErrors();
    const journal = createJournal();
    const seen: string[] = [];
    journal.watch(() => {
      throw new Error("a watcher's mistake");
    });
    journal.watch(({ type }) => seen.push(type));
    expect(() => journal.tell({ type: "reset" })).not.toThrow();
    await new Promise((resolve) => setImmediate(resolve));
    expect(seen).toEqual(["reset"]);
    expect(errors.map(String)).toEqual(["Error: a watcher's mistake"]);
  });
});
