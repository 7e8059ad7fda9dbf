/** What the mistakes of `createReceiver` say, and what it takes when an option is left out. */
import { describe, expect, it } from "vitest";
import { createReceiver, openInbox, type ReceiverOptions } from "../../src/index.ts";
import { memoryStore } from "../../src/stores/memory.ts";
import { sqliteStore } from "../../src/stores/sqlite.ts";
import { memoryBench, recordedLog, SECRET, sqliteBench } from "./bench.ts";
import { inbound } from "./events.ts";

function make(options: Record<string, unknown>) {
  return () =>
    createReceiver({ secrets: SECRET, store: sqliteStore("never-opened.db"), ...options } as ReceiverOptions);
}

describe("a mistake in createReceiver()", () => {
  it.each([
    ["concurrency", "from 1 to 1000 handlers; it is 0."],
    ["handlerTimeoutMs", "from 10 to 3600000 ms; it is 0."],
    ["leaseMs", "from 1000 to 3600000 ms; it is 0."],
    ["maxAttempts", "from 1 to 100 attempts; it is 0."],
    ["maxBodyBytes", "from 1024 to 1048576 bytes; it is 0."],
  ])("says the bounds of %s and what they count", (name, bounds) => {
    expect(make({ [name]: 0 })).toThrow(`Option "${name}" must be a whole number ${bounds}`);
  });

  it("says what else firstSequence may be", () => {
    expect(make({ firstSequence: -1 })).toThrow('from 0 to 10000 (or "any"); it is -1.');
  });

  it("says whose option is misspelt", () => {
    expect(make({ concurency: 1 })).toThrow('createReceiver has no option "concurency".');
    expect(make({ toleranceMs: { pastMs: 1 } })).toThrow('toleranceMs has no option "pastMs".');
    expect(make({ toleranceMs: { past: 0 } })).toThrow("from 1 to 86400000 ms; it is 0.");
  });

  it("says what to pass for what is missing", () => {
    expect(make({ secrets: undefined })).toThrow('Option "secrets" is missing: pass the webhook signing secret.');
    expect(make({ store: undefined })).toThrow(
      'Option "store" must be a store, such as sqliteStore("inbox.db") from oncehook/sqlite; it is undefined.',
    );
  });

  it("is a name that is no text, however long it is", () => {
    expect(make({ name: ["inbox"] })).toThrow('Option "name" must be a string of 1 to 64 characters; it is a list.');
    expect(make({ name: "n" })).not.toThrow();
  });

  it('has the code of a wrong option for ack: "stored" without a durable store (RCV-3)', () => {
    const wrong = make({ store: memoryStore({ volatile: true }), ack: "stored" });
    expect(wrong).toThrow(expect.objectContaining({ code: "invalid_option" }));
  });
});

describe("what createReceiver() takes by default", () => {
  it("is a body of 256 KiB and no more", async () => {
    const { deliver } = memoryBench();
    const limits: number[] = [];
    const readBody = ({ maxBytes }: { readonly maxBytes: number }) => {
      limits.push(maxBytes);
      return { ok: false, reason: "truncated" } as const;
    };
    expect(await deliver(inbound(), { readBody, headers: { "content-length": "262144" } })).toMatchObject({
      status: 400,
    });
    expect(await deliver(inbound(), { readBody, headers: { "content-length": "262145" } })).toMatchObject({
      status: 413,
    });
    expect(limits).toEqual([262_144]);
  });

  it('is an inbox with the name "default"', async () => {
    const { deliver, file, clock } = sqliteBench();
    await deliver(inbound());
    await using inbox = await openInbox({ store: sqliteStore(file), clock, logger: recordedLog().logger });
    expect(inbox.rules).toMatchObject({ name: "default" });
  });
});
