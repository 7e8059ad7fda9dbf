/** What `oncehook listen` prints of an event. */
import { Writable } from "node:stream";
import { describe, expect, it } from "vitest";
import type { WebhookEvent } from "../../../src/index.ts";
import { SERVICE_SHOWS } from "../../../src/sources/messaging/source.ts";
import { EventPrinter, handledShape, handledText, type PrintContext } from "../../../src/tools/cli/listen-run.ts";
import { fixtures } from "../../../src/tools/testing/index.ts";
import { deferred, memoryBench } from "../../receiver/bench.ts";

const MASKED = { reveal: false, shows: SERVICE_SHOWS };
const REVEALED = { reveal: true, shows: SERVICE_SHOWS };
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
    const shape = handledShape(event, ctx, MASKED);
    expect(shape).toMatchObject({
      handled: ctx.identity,
      eventType: "message.inbound",
      source: "service",
      tenant: "apc_1",
      lane: null,
      id: inbound.data.messageId,
      sequence: 0,
      attempt: 1,
      late: false,
      replay: false,
      missing: null,
    });
    const text = JSON.stringify(shape);
    for (const secret of [inbound.data.from, inbound.data.to, "Call me", "555 0199"])
      expect(text).not.toContain(secret);
    expect(handledShape(event, ctx, REVEALED).event).toEqual(inbound);
  });

  it("says what was missing, what is late, and which replay was overtaken (RCV-7)", async () => {
    const [event, ctx] = await handled(fixtures.delivery());
    expect(handledShape(event, ctx, MASKED).missing).toEqual({ from: 1, to: 2 });
    const marks = [
      { replay: false, outOfOrder: true },
      { replay: true, outOfOrder: true },
      { replay: true, outOfOrder: false },
    ].map((mark) => {
      const { meta, rawBody, identity, missing } = ctx;
      const { late, replay } = handledShape(event, { meta, rawBody, identity, missing, attempt: 2, ...mark }, MASKED);
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
    const text = handledText({ ...handledShape(event, ctx, REVEALED), attempt: 2, late: true }, AT);
    expect(text).toMatch(
      /^2026-01-01 12:00:00Z {2}message\.delivery {2}msg_000001 #3 {2}\(attempt 2, late, 1-2 missing\) {2}\{/,
    );
    expect(text).not.toMatch(/[\p{Cc}\p{Cf}]/u);
  });

  it("says of an event that belongs to no message what there is", async () => {
    const [event, ctx] = await handled({ eventType: "account.closed" });
    const shape = handledShape(event, ctx, MASKED);
    expect([shape.lane, shape.id]).toEqual([null, null]);
    expect(handledText(shape, AT)).toBe('2026-01-01 12:00:00Z  account.closed  -  {"eventType":"account.closed"}');
  });
});

describe("EventPrinter", () => {
  /** A reader that takes nothing until it is told to, or goes away with an error. */
  function slowReader() {
    const got: string[] = [];
    const waiting: ((gone?: Error) => void)[] = [];
    const output = new Writable({
      highWaterMark: 8,
      decodeStrings: false,
      write: (chunk, _encoding, done) => {
        got.push(chunk);
        waiting.push(done);
      },
    });
    return { output, got, readOne: (gone?: Error) => waiting.shift()?.(gone) };
  }

  it("lets each result wait until its line was read, also where there is room for more", async () => {
    const { output, got, readOne } = slowReader();
    const printer = new EventPrinter(output);
    const read: string[] = [];
    const printed = ["1", "2"].map((line) => printer.result(line).then(() => read.push(line)));
    readOne();
    await printed[0];
    expect([read, got]).toEqual([["1"], ["1\n", "2\n"]]);
    readOne();
    await printed[1];
    expect(read).toEqual(["1", "2"]);
  });

  it("leaves remarks out while its reader is behind", async () => {
    const { output, got, readOne } = slowReader();
    const printer = new EventPrinter(output);
    const waits = printer.result("a long line");
    printer.remark("not now");
    readOne();
    await waits;
    printer.remark("again");
    readOne();
    expect(got).toEqual(["a long line\n", "again\n"]);
  });

  it("fails results, and no remarks, when the reader is gone", async () => {
    const { output, readOne } = slowReader();
    const printer = new EventPrinter(output);
    const waiting = Promise.allSettled(["a long line", "and another"].map((line) => printer.result(line)));
    const reason = new Error("EPIPE");
    readOne(reason);
    const failed = { status: "rejected", reason };
    expect(await waiting).toEqual([failed, failed]);
    expect(await printer.broken).toBe(reason);
    await expect(printer.result("2")).rejects.toBe(reason);
    expect(printer.remark("3")).toBeUndefined();
  });
});
