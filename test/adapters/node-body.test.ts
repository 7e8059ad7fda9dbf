/** The raw-body reader on streams that no HTTP server makes. */
import { PassThrough } from "node:stream";
import { describe, expect, it } from "vitest";
import { readBody } from "../../adapters/node-io.ts";
import type { BodyReading } from "../../src/index.ts";

function reading(declaredBytes: number | null = null): BodyReading & { cut: () => void; counted: number[] } {
  const made = {
    maxBytes: 100,
    declaredBytes,
    counted: [] as number[],
    cut: () => {},
    received: (bytes: number) => void made.counted.push(bytes),
    onCut: (cut: () => void) => {
      made.cut = cut;
    },
  };
  return made;
}

describe("readBody()", () => {
  it("reports every chunk as it arrives", async () => {
    const stream = new PassThrough();
    const rules = reading();
    const body = readBody(stream, {}, rules);
    stream.write("abc");
    stream.end("de");
    expect(await body).toEqual({ ok: true, bytes: Buffer.from("abcde") });
    expect(rules.counted).toEqual([3, 2]);
  });

  it("stops at a cut: it lets go of the stream and counts no more", async () => {
    const stream = new PassThrough();
    const rules = reading();
    const body = readBody(stream, {}, rules);
    stream.write("abc");
    await new Promise((resolve) => setImmediate(resolve));
    rules.cut();
    expect(await body).toEqual({ ok: false, reason: "cut" });
    expect(["data", "end", "close", "error"].map((name) => stream.listenerCount(name))).toEqual([0, 0, 0, 0]);
    expect([stream.isPaused(), rules.counted]).toEqual([true, [3]]);
  });

  it("tells who else listens to the stream why it ends at a cut", async () => {
    const stream = new PassThrough();
    const errors: unknown[] = [];
    stream.on("error", (error) => errors.push(error));
    const rules = reading();
    const body = readBody(stream, {}, rules);
    rules.cut();
    await body;
    expect(errors).toEqual([new Error("The read of this body was cut.")]);
  });

  it("takes a cut from within the count of a chunk", async () => {
    const stream = new PassThrough();
    const rules = reading();
    const body = readBody(stream, {}, { ...rules, received: () => rules.cut() });
    stream.write("abc");
    expect(await body).toEqual({ ok: false, reason: "cut" });
  });

  it("does nothing at a cut after the end", async () => {
    const stream = new PassThrough();
    const rules = reading();
    const body = readBody(stream, {}, rules);
    stream.end("abc");
    await body;
    expect(() => rules.cut()).not.toThrow();
  });

  it("settles when the stream closes without an end", async () => {
    const stream = new PassThrough();
    const body = readBody(stream, {}, reading());
    stream.destroy();
    expect(await body).toEqual({ ok: false, reason: "truncated" });
  });

  it.each([
    ["too_large", "x".repeat(101), null],
    ["truncated", "abc", 4],
    ["truncated", "abc", 2],
  ])("says %s", async (reason, text, declared) => {
    const stream = new PassThrough();
    const body = readBody(stream, {}, reading(declared));
    stream.end(text);
    expect(await body).toEqual({ ok: false, reason });
  });

  it("knows a stream that someone reads, or has read", async () => {
    const begun = new PassThrough();
    begun.on("data", () => {});
    begun.write("abc");
    await new Promise((resolve) => setImmediate(resolve));
    const ended = new PassThrough();
    ended.resume().end();
    await new Promise((resolve) => ended.once("end", resolve));
    expect(readBody(begun, {}, reading())).toMatchObject({ ok: false, reason: "already_parsed" });
    expect(readBody(ended, { body: {} }, reading())).toMatchObject({ ok: false, reason: "already_parsed" });
  });

  it("says truncated for a stream that is gone", () => {
    expect(readBody(new PassThrough().destroy(), {}, reading())).toEqual({ ok: false, reason: "truncated" });
  });

  it("believes bytes, not text: a text that was bytes once may have lost some", () => {
    const stream = new PassThrough();
    const kept = Buffer.from("abc");
    expect(readBody(stream, { rawBody: "text", body: kept }, reading(3))).toEqual({ ok: true, bytes: kept });
  });
});
