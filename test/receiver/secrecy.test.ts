/** Marked secrets, signatures, numbers and texts over every path: none of them is found in anything the receiver says. */
import { inspect } from "node:util";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { type Answer, createReceiver, PermanentError, RetryAfter } from "../../src/index.ts";
import {
  type Bench,
  type BenchOptions,
  incoming,
  MINUTE,
  memoryBench,
  sqliteBench,
  until,
  type Wish,
} from "./bench.ts";
import { inbound, outbound } from "./events.ts";

const marks: string[] = [];
/** A text to be looked for in all that is said. */
function mark<T extends string>(text: T): T {
  marks.push(text);
  return text;
}

const secrets = {
  current: mark("marked-secret-current-0123456789"),
  previous: { secret: mark("marked-secret-previous-012345678"), validUntil: 1_760_000_000_000 + 60 * MINUTE },
  next: mark("marked-secret-next-0123456789012"),
};
const foreign = mark("marked-secret-foreign-0123456789");
const numbers = Array.from({ length: 12 }, (_, index) => mark(`+1555777${1000 + index}`));
const texts = Array.from({ length: 12 }, (_, index) => mark(`marked text number ${index}: meet me at dawn`));
const headerMarks = ["traceparent", "content-encoding", "content-length", "x-service-signature", "x-service-timestamp"];
const headers = Object.fromEntries(headerMarks.map((name) => [name, mark(`marked-header-${name}`)]));
const errors = Array.from({ length: 6 }, (_, index) => mark(`marked-error-detail-${index}`));

/** Everything that was said. */
class Said {
  readonly answers: Answer[] = [];
  readonly benches: Bench<unknown>[] = [];

  async everything(): Promise<string> {
    const parts: unknown[] = [...this.answers];
    for (const { log, receiver } of this.benches) {
      parts.push(log, receiver.counters, receiver.key, await receiver.health(), await receiver.inbox.stats());
      parts.push(await receiver.inbox.audit());
      for (const item of (await receiver.inbox.find()).items) parts.push(item.error, item.errorCode, item.trace);
    }
    return inspect(parts, { depth: 12, maxArrayLength: null, maxStringLength: null });
  }
}

function bodies(index: number): string[] {
  const number = numbers[index % numbers.length] ?? "";
  const text = texts[index % texts.length] ?? "";
  return [
    inbound({ messageId: `in ${index}`, from: number, text }),
    outbound("queued", { messageId: `out ${index}`, to: number, extra: { text } }),
    outbound("failed", { messageId: `out ${index}`, to: number, errorMessage: text }),
    JSON.stringify({ eventType: "message.new", data: { text, to: number, n: index } }),
    JSON.stringify({ eventType: "message.inbound", data: { body: text, from: number } }),
    `junk ${number} ${text}`,
  ];
}

const wishes: readonly Wish[] = [
  {},
  { secret: secrets.previous.secret },
  { secret: secrets.next },
  { secret: foreign },
  { unsigned: true },
  { at: 1_600_000_000_000 },
  { method: mark("MARKEDMETHOD") },
  { readBody: () => ({ ok: false, reason: "already_parsed" }) },
  ...Object.entries(headers).map(([name, value]) => ({ headers: { [name]: value } })),
];

async function deliverAll(said: Said, bench: Bench<unknown>, count: number): Promise<void> {
  said.benches.push(bench);
  for (let index = 0; index < count; index++) {
    for (const body of bodies(index)) {
      for (const wish of wishes) said.answers.push(await bench.deliver(body, wish));
      // The log of refusals is sampled by the second.
      await bench.clock.advance(1_000);
    }
  }
}

type Make = (options: BenchOptions<unknown>) => Bench<unknown>;
const onMemory: Make = (options) => memoryBench(options as object) as unknown as Bench<unknown>;
const onSqlite: Make = (options) => sqliteBench(options as object) as unknown as Bench<unknown>;

describe("nothing said holds a secret, a signature, a number or a text", () => {
  it("has 40 marks to look for", () => {
    expect(new Set(marks).size).toBeGreaterThanOrEqual(40);
  });

  it.each([
    ["memory", onMemory],
    ["SQLite", onSqlite],
  ] as const)("when handlers succeed, fail and give up (%s)", async (_, make) => {
    const said = new Said();
    const bench = make({ secrets, maxAttempts: 2, gapWait: "eager" });
    bench.receiver.on("message.inbound", ({ data }) => {
      throw new Error(`No customer ${data.from} for ${JSON.stringify(data.body)}`);
    });
    bench.receiver.on("message.queued", ({ data }) => Promise.reject(new RetryAfter(5, `Busy with ${data.to}.`)));
    bench.receiver.on("message.failed", ({ data }) => {
      throw new PermanentError(`Blocked: ${data.to.replace(/(\d{3})/g, "$1 ")}`);
    });
    bench.receiver.onLate(() => {});
    await bench.receiver.start();
    await deliverAll(said, bench, 3);
    const digits = numbers.map((number) => number.slice(2));
    const heard = await said.everything();
    // The handlers wrote the text of an inbound message into their error, where the stored error must not keep it.
    expect([...marks, ...digits].filter((text) => heard.includes(text))).toEqual([]);
    // Neither a signature.
    expect(heard).not.toMatch(/[0-9a-f]{64}/i);
    for (const { status, body } of said.answers) expect([status, body.length < 60]).toEqual([status, true]);
  });

  it("when hooks throw, the keyring fails and the store breaks", async () => {
    const said = new Said();
    const failing = onMemory({
      secrets: () => Promise.reject(new Error(`vault: ${errors[0]} ${secrets.current}`)),
    });
    await deliverAll(said, failing, 1);
    const broken = onMemory({ secrets });
    broken.receiver.onAny(() => {}).onConflict(() => Promise.reject(new Error(errors[1])));
    await broken.deliver(inbound({ text: texts[0] ?? "" }), { secret: secrets.current });
    await broken.deliver(inbound({ text: texts[1] ?? "" }), { secret: secrets.current });
    // As a driver throws it; the texts of a StoreError are ours, and hold no data.
    broken.store.faults.step = Object.assign(new Error(`insert into x values ('${errors[2]}')`), {
      code: "SQLITE_FULL",
    });
    broken.store.faults.reads = new Error(errors[3]);
    await deliverAll(said, broken, 2);
    broken.store.faults.clear();
    await broken.clock.advance(20 * MINUTE);
    const heard = await said.everything();
    expect(marks.filter((text) => heard.includes(text))).toEqual([]);
    expect(broken.codes()).toContain("SQLITE_FULL");
  });

  it("when an operator acts", async () => {
    const { deliver, receiver, log } = sqliteBench({ secrets });
    await deliver(inbound({ from: numbers[0] ?? "", text: texts[0] ?? "" }), { secret: secrets.current });
    await deliver(`junk ${texts[1]}`, { secret: secrets.current });
    await expect(receiver.inbox.replayQuarantined(1)).rejects.toSatisfy((error) => {
      return !marks.some((text) => inspect(error).includes(text));
    });
    expect(await receiver.inbox.erase({ peer: numbers[0] ?? "" })).toMatchObject({ ok: true });
    const heard = inspect([log, await receiver.inbox.audit(), await receiver.inbox.find()], { depth: 9 });
    expect(marks.filter((text) => heard.includes(text))).toEqual([]);
  });
});

describe("log injection", () => {
  const forged = 'x\r\n{"level":"error","message":"forged"}\u001b[2J\u009b31m\u2028';

  it("writes no line and no terminal code that a sender chose, with the default logger", async () => {
    const written: string[] = [];
    const write = vi.spyOn(process.stderr, "write").mockImplementation((chunk) => {
      written.push(String(chunk));
      return true;
    });
    onTestFinished(() => write.mockRestore());
    const { store, clock } = memoryBench();
    const receiver = createReceiver({ secrets: secrets.current, store, clock });
    receiver.onAny((_, ctx) => {
      ctx.log.warn({ forged }, forged);
      throw Object.assign(new Error(forged), { code: forged, name: forged });
    });
    const events = [
      JSON.stringify({ ...JSON.parse(outbound("queued")), eventType: forged, messageId: forged, data: {} }),
      JSON.stringify({ eventType: forged }),
      outbound("queued", { messageId: forged }),
    ];
    for (const event of events) {
      const wish = { secret: secrets.current, headers: { traceparent: forged } };
      expect((await receiver.handle(incoming(event, clock.now(), wish))).status).toBe(503);
    }
    for (const name of headerMarks) {
      await receiver.handle(incoming(inbound(), clock.now(), { headers: { [name]: forged } }));
    }
    await until(() => written.length >= 6);
    await receiver.stop();
    for (const line of written) {
      // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
      expect(line).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u2028\u2029]/);
      expect(line.indexOf("\n")).toBe(line.length - 1);
      expect(JSON.parse(line)).toMatchObject({ name: "oncehook" });
    }
  });

  it("takes a traceparent only in its strict form", async () => {
    const { deliver, receiver } = sqliteBench({ secrets });
    const [trace, span] = ["0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"];
    const good = `00-${trace}-${span}-01`;
    const bad = [
      `01-${trace}-${span}-01`,
      `00-${"0".repeat(32)}-${span}-01`,
      `00-${trace}-${"0".repeat(16)}-01`,
      good.toUpperCase(),
      `${good} `,
      `${good}-extra`,
      `${good}, ${good}`,
      forged,
      "",
    ];
    for (const [index, traceparent] of [good, ...bad].entries()) {
      const wish = { secret: secrets.current, headers: { traceparent } };
      await deliver(inbound({ messageId: `m ${index}` }), wish);
    }
    const traces = (await receiver.inbox.find({ order: "oldest" })).items.map((item) => item.trace);
    expect(traces).toEqual([good, ...bad.map(() => null)]);
  });
});
