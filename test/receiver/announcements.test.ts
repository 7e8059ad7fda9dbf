/** What the hooks and the log are told of conflicts, failures and dead letters: ids, codes and counts, no content. */
import { hash } from "node:crypto";
import { describe, expect, it } from "vitest";
import { eventIdentity } from "../../src/events/identity.ts";
import { type ConflictNotice, PermanentError } from "../../src/index.ts";
import { idleTurns, type LogLine, memoryBench, sqliteBench, until } from "./bench.ts";
import { outbound } from "./events.ts";

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
