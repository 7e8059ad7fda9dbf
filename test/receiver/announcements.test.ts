/** What the hooks and the log are told of conflicts, failures and dead letters: ids, codes and counts, no content. */
import { hash } from "node:crypto";
import { describe, expect, it } from "vitest";
import { eventIdentity } from "../../src/events/identity.ts";
import { type ConflictNotice, PermanentError, RetryAfter } from "../../src/index.ts";
import { idleTurns, type LogLine, memoryBench, sqliteBench, until } from "./bench.ts";
import { inbound, outbound } from "./events.ts";

const body = outbound("queued");
const IDS = { eventId: 1, eventType: "message.queued", sequence: 1, messageId: "msg_1" };

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
    const lane = { apiClientId: "apc_1", tag: "outbound", messageId: "msg_1" };
    expect(notices).toEqual([{ eventId: 1, eventType: "message.queued", sequence: 1, lane }]);
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
    expect(failures.map(({ level, fields }) => [level, fields])).toEqual([
      ["warn", { ...IDS, attempt: 1, code: "ECONNREFUSED" }],
      ["warn", { ...IDS, attempt: 2, code: "ECONNREFUSED" }],
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
    ["an error", () => new Error("a private text")],
    ["a PermanentError", () => new PermanentError("a private text")],
    ["a RetryAfter", () => new RetryAfter(5, "a private text")],
    ["a text", () => "a private text"],
  ])("is logged without a text of the application, as of %s", async (_kind, thrown) => {
    const { receiver, deliver, log } = memoryBench({ maxAttempts: 1 });
    receiver.onAny(() => {
      throw thrown();
    });
    await receiver.start();
    await deliver(body);
    await until(() => line(log, "became a dead letter") !== undefined);
    expect(line(log, "A handler failed")?.message).toBe("A handler failed.");
    expect(JSON.stringify(log)).not.toContain("private");
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
    expect(line(log, "handling")?.fields).toEqual({ eventId: 1, eventType: "contact.optout", sequence: 0 });
    expect(line(log, "A handler failed.")).toBeDefined();
    const said = JSON.stringify(log);
    expect(said).not.toContain(hash("sha256", other));
    expect(said).not.toContain(eventIdentity(JSON.parse(other), Buffer.from(other)));
  });

  it("of a hook is logged with its code", async () => {
    const { receiver, deliver, log } = memoryBench();
    receiver.onError(() => Promise.reject(Object.assign(new Error("text"), { code: "EPIPE" })));
    receiver.onAny(() => {
      throw new PermanentError("no");
    });
    await receiver.start();
    await deliver(body);
    await until(() => line(log, "A hook threw.") !== undefined);
    expect(line(log, "A hook threw.")).toMatchObject({ level: "error", fields: { code: "EPIPE" } });
  });
});
