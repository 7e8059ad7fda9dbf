/** Watchers that act on what they are told: nothing of it is lost, and all comes in its order. */
import { describe, expect, it } from "vitest";
import type { Emulator, EmulatorOptions } from "../../src/emulator/index.ts";
import { createJournal } from "../../src/emulator/service.ts";
import type { Delivery } from "../../src/emulator/state/records.ts";
import { uncaughtErrors } from "../support/uncaught.ts";
import { ready, send, startCatcher } from "./support.ts";

const WHOLE = ["message.queued 1", "message.sent 2", "message.delivery 3"];

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
