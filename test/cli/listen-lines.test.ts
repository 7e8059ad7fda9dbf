/** What `oncehook listen` prints of an event. */
import { Writable } from "node:stream";
import { describe, expect, it } from "vitest";
import { handledShape, handledText, type PrintContext } from "../../src/cli/listen/event-line.ts";
import { EventPrinter } from "../../src/cli/listen/event-printer.ts";
import type { WebhookEvent } from "../../src/index.ts";
import { fixtures } from "../../src/testing/index.ts";
import { deferred, memoryBench } from "../receiver/bench.ts";

const AT = Date.parse("2026-01-01T12:00:00.500Z");

/** The event and its context as a handler gets them. */
async function handled(event: object): Promise<[WebhookEvent, PrintContext]> {
  const { receiver, deliver } = memoryBench({ gapWait: "eager" });
  const got = deferred<[WebhookEvent, PrintContext]>();
  receiver.onAny((seen, ctx) => got.resolve([seen, ctx]));
  await deliver(JSON.stringify(event));
  return got.promise;
}

describe("handledShape()", () => {
  it("names the event and its place, and masks its numbers and texts", async () => {
    const inbound = fixtures.inbound({ data: { body: "Call me at 555 0199 22" } });
    const [event, ctx] = await handled(inbound);
    const shape = handledShape(event, ctx, false);
    expect(shape).toMatchObject({
      handled: ctx.identity,
      eventType: "message.inbound",
      direction: "inbound",
      apiClientId: "apc_1",
      messageId: inbound.data.messageId,
      sequence: 0,
      attempt: 1,
      late: false,
      replay: false,
      missing: null,
    });
    const text = JSON.stringify(shape);
    for (const secret of [inbound.data.from, inbound.data.to, "Call me", "555 0199"])
      expect(text).not.toContain(secret);
    expect(handledShape(event, ctx, true).event).toEqual(inbound);
  });

  it("says what was missing, what is late, and which replay was overtaken (RCV-7)", async () => {
    const [event, ctx] = await handled(fixtures.delivery());
    expect(handledShape(event, ctx, false).missing).toEqual({ from: 1, to: 2 });
    const marks = [
      { replay: false, outOfOrder: true },
      { replay: true, outOfOrder: true },
      { replay: true, outOfOrder: false },
    ].map((mark) => {
      const { meta, rawBody, identity, missing } = ctx;
      const { late, replay } = handledShape(event, { meta, rawBody, identity, missing, attempt: 2, ...mark }, false);
      return [late, replay];
    });
    expect(marks).toEqual([
      [true, false],
      [true, true],
      [false, true],
    ]);
  });
});

describe("handledText()", () => {
  it("is one line, whatever is in the event", async () => {
    const [event, ctx] = await handled(fixtures.delivery({ data: { providerMessageRef: "a\r\nb\u202e\u001b[2J" } }));
    const text = handledText({ ...handledShape(event, ctx, true), attempt: 2, late: true }, AT);
    expect(text).toMatch(
      /^2026-01-01 12:00:00Z {2}message\.delivery {2}msg_000001 #3 {2}\(attempt 2, late, 1-2 missing\) {2}\{/,
    );
    expect(text).not.toMatch(/[\p{Cc}\p{Cf}]/u);
  });

  it("says of an event that belongs to no message what there is", async () => {
    const [event, ctx] = await handled({ eventType: "account.closed" });
    const shape = handledShape(event, ctx, false);
    expect([shape.direction, shape.messageId]).toEqual(["unlaned", null]);
    expect(handledText(shape, AT)).toBe('2026-01-01 12:00:00Z  account.closed  -  {"eventType":"account.closed"}');
  });
});

describe("EventPrinter", () => {
  /** A reader that takes nothing until it is told to. */
  function slowReader() {
    const got: string[] = [];
    const waiting: (() => void)[] = [];
    const output = new Writable({
      highWaterMark: 8,
      decodeStrings: false,
      write: (chunk, _encoding, done) => {
        got.push(chunk);
        waiting.push(done);
      },
    });
    return { output, got, readOne: () => waiting.shift()?.() };
  }

  it("lets a result wait for its reader, and leaves remarks out meanwhile", async () => {
    const { output, got, readOne } = slowReader();
    const printer = new EventPrinter(output);
    expect(printer.result("1")).toBeUndefined();
    const waits = printer.result("a long line");
    expect(waits).toBeInstanceOf(Promise);
    printer.remark("not now");
    readOne();
    readOne();
    await waits;
    printer.remark("again");
    readOne();
    expect(got).toEqual(["1\n", "a long line\n", "again\n"]);
  });

  it("fails results, and no remarks, when the reader is gone", async () => {
    const { output } = slowReader();
    const printer = new EventPrinter(output);
    const waits = printer.result("a long line");
    output.destroy(new Error("EPIPE"));
    expect(await printer.broken).toEqual(new Error("EPIPE"));
    await expect(waits).rejects.toThrow("EPIPE");
    expect(() => printer.result("2")).toThrow("EPIPE");
    expect(printer.remark("3")).toBeUndefined();
  });
});
