/** What the hooks and the log are told of conflicts, failures and dead letters: ids, codes and counts, no content. */
import { hash } from "node:crypto";
import { describe, expect, it } from "vitest";
import { type ConflictNotice, PermanentError, RetryAfter } from "../../src/index.ts";
import { eventIdentity } from "../../src/sources/messaging/parse.ts";
import { idleTurns, type LogLine, memoryBench, sqliteBench, until } from "./bench.ts";
import { inbound, outbound } from "./events.ts";

const body = outbound("queued");
const IDS = { eventId: 1, eventType: "message.queued", sequence: 1, source: "service", lane: "msg_1" };

function line(log: readonly LogLine[], text: string): LogLine | undefined {
  return log.find(({ message }) => message.includes(text));
}

describe("a conflict", () => {
  it("is told to its hooks and the log, each time, with the ids of the event that was kept (RCV-6)", async () => {
    const { receiver, deliver, log } = sqliteBench();
    const notices: ConflictNotice[] = [];
    receiver.onConflict((notice) => notices.push(notice));
    await deliver(body);
    await deliver(body);
    await idleTurns();
    expect(notices).toEqual([]);
    await deliver(outbound("queued", { to: "+15550100009" }));
    await until(() => notices.length === 1);
    await deliver(outbound("queued", { to: "+15550100009" }));
    await until(() => notices.length === 2);
    const lane = { source: "service", tenant: "apc_1", name: "msg_1", order: "sequence" };
    const notice = { eventId: 1, eventType: "message.queued", sequence: 1, lane, id: null };
    expect(notices).toEqual([notice, notice]);
    expect(line(log, "carried other content")).toMatchObject({ level: "warn", fields: IDS });
    expect(JSON.stringify(log)).not.toContain("5550100009");
  });
});

describe("a failure", () => {
  it("is logged with the event's ids, the attempt and the code, and its end as a dead letter too", async () => {
    const { receiver, deliver, clock, log } = memoryBench({ maxAttempts: 2 });
    receiver.onAny(() => {
      throw Object.assign(new Error("text"), { code: "ECONNREFUSED" });
    });
    await receiver.start();
    const answer = deliver(body);
    await clock.advance(10_000);
    await answer;
    const failures = log.filter(({ message }) => message === "A handler failed.");
    const at = [expect.stringMatching(/^test\/receiver\/announcements\.test\.ts:\d+$/)];
    const told = { ...IDS, code: "ECONNREFUSED", error: "Error: text", at, more: "onError" };
    expect(failures.map(({ level, fields }) => [level, fields])).toEqual([
      ["warn", { ...told, attempt: 1 }],
      ["warn", { ...told, attempt: 2 }],
    ]);
    const dead = { level: "error", fields: { ...IDS, attempts: 2, code: "ECONNREFUSED" } };
    expect(line(log, "became a dead letter")).toMatchObject(dead);
  });

  it("that is a mistake with oncehook is explained in the log", async () => {
    const { receiver, deliver, log } = sqliteBench();
    receiver.on("message.queued", (_, ctx) => ctx.commit((async () => {}) as unknown as () => void));
    receiver.on("message.inbound", ({ data }) => {
      throw new RetryAfter(data.from as unknown as number);
    });
    await receiver.start();
    await deliver(body);
    await deliver(inbound({ from: "+15550100002" }));
    await until(() => log.filter(({ message }) => message.includes("A handler failed.")).length === 2);
    expect(line(log, "write synchronously")).toMatchObject({ level: "warn", fields: { ...IDS, code: "async_effect" } });
    expect(line(log, "RetryAfter takes")?.message).toMatch(/^A handler failed\. .* not a string\.$/);
    expect(JSON.stringify(log)).not.toContain("5550100002");
  });

  it.each([
    ["an error", "Error: No order for [text]", (text: string) => new Error(`No order for ${text}`)],
    ["a PermanentError", "PermanentError: [text]", (text: string) => new PermanentError(text)],
    ["a RetryAfter", "RetryAfter: [text] is late", (text: string) => new RetryAfter(5, `${text} is late`)],
    ["a string", "[text]", (text: string) => text],
    ["a part of the text", "SyntaxError: Unexpected token 'M', \"[text]\"... is not valid JSON", parseFailure],
    ["a cause", "Error: Not sent", (text: string) => new Error("Not sent", { cause: new Error(text) })],
  ])("is logged without the event's own text, as of %s", async (_kind, error, thrown) => {
    const { receiver, deliver, log } = memoryBench({ maxAttempts: 1 });
    receiver.on("message.inbound", ({ data }) => {
      throw thrown(data.body);
    });
    await receiver.start();
    await deliver(inbound({ text: "Meet me at the bridge, please" }));
    await until(() => line(log, "became a dead letter") !== undefined);
    expect(line(log, "A handler failed.")?.fields).toMatchObject({ error });
    expect(JSON.stringify(log)).not.toMatch(/Meet me|bridge|please/i);
  });

  it("says where to find more: in the inbox too, if another process can open it", async () => {
    const { receiver, deliver, log } = sqliteBench();
    receiver.onAny(() => {
      throw new PermanentError("no");
    });
    await receiver.start();
    await deliver(body);
    await until(() => line(log, "became a dead letter") !== undefined);
    expect(line(log, "A handler failed.")?.fields.more).toBe("onError, or oncehook inbox show 1");
    expect(line(log, "became a dead letter")?.fields.more).toBe("onDeadLetter, or oncehook inbox show 1");
  });

  it("of what is no message is logged without an id, which is the digest of its body (EVT-12)", async () => {
    const { receiver, deliver, log } = memoryBench();
    receiver.onAny((_, ctx) => {
      ctx.log.info({}, "handling");
      throw new PermanentError("no");
    });
    await receiver.start();
    const other = JSON.stringify({ eventType: "contact.optout", data: { number: "+15550100002" } });
    await deliver(other);
    await until(() => line(log, "became a dead letter") !== undefined);
    const fields = { eventId: 1, eventType: "contact.optout", sequence: 0, source: "service" };
    expect(line(log, "handling")?.fields).toEqual(fields);
    expect(line(log, "A handler failed.")).toBeDefined();
    const said = JSON.stringify(log);
    expect(said).not.toContain(hash("sha256", other));
    expect(said).not.toContain(eventIdentity(JSON.parse(other), Buffer.from(other)));
  });

  it.each(["onError", "onDeadLetter"] as const)(
    "of the hook %s is logged as that of a handler is, without the event's text",
    async (hook) => {
      const { receiver, deliver, log } = memoryBench();
      receiver[hook](() => Promise.reject(Object.assign(new Error("No mail to Meet me at dawn"), { code: "EPIPE" })));
      receiver.onAny(() => {
        throw new PermanentError("no");
      });
      await receiver.start();
      await deliver(inbound({ text: "Meet me at dawn" }));
      await until(() => line(log, "A hook threw.") !== undefined);
      const at = [expect.stringMatching(/announcements\.test\.ts:\d+/)];
      expect(line(log, "A hook threw.")).toMatchObject({
        level: "error",
        fields: { eventId: 1, hook, code: "EPIPE", error: "Error: No mail to [text]", at },
      });
    },
  );

  it("of onConflict is logged too", async () => {
    const { receiver, deliver, log } = sqliteBench();
    receiver.onConflict(({ eventId }) => {
      throw new Error(`${eventId}: +15550100009 differs`);
    });
    await deliver(body);
    await deliver(outbound("queued", { to: "+15550100009" }));
    await until(() => line(log, "A hook threw.") !== undefined);
    expect(line(log, "A hook threw.")?.fields).toMatchObject({ hook: "onConflict", error: "Error: 1: …09 differs" });
  });
});

/** What a handler meets that takes a text for JSON: the runtime quotes ten characters of it. */
function parseFailure(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    return error;
  }
}
