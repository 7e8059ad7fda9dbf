/** The line that says for which event another one waits, and until when. */
import { describe, expect, it } from "vitest";
import { type LogLine, MINUTE, memoryBench, sqliteBench } from "./bench.ts";
import { outbound } from "./events.ts";

const gaps = (log: readonly LogLine[]) => log.filter(({ fields }) => fields.code === "waits_for_gap");

describe("an event that waits for a missing one", () => {
  it("says so once, for which and until when", async () => {
    const { receiver, deliver, clock, log } = sqliteBench();
    await receiver
      .onAny(() => {})
      .onLate(() => {})
      .start();
    const until = new Date(clock.now() + 90_000).toISOString();
    await deliver(outbound("failed", { occurredAt: clock.now() }));
    await deliver(outbound("failed", { occurredAt: clock.now() }));
    expect(gaps(log)).toEqual([]);
    await clock.advance(1_000);
    const line = {
      level: "warn",
      fields: {
        code: "waits_for_gap",
        ...{ eventId: 1, eventType: "message.failed", sequence: 4, source: "service", lane: "msg_1" },
        missing: { from: 1, to: 3 },
        until,
        more: "oncehook inbox release 1 ends the wait",
      },
      message: `An event waits for the sequences 1 to 3 of its message, until ${until} at the latest. After that it is handled anyway.`,
    };
    expect(gaps(log)).toEqual([line]);
    await clock.advance(80_000);
    expect(gaps(log)).toEqual([line]);
  });

  it("says it again for another gap of its message", async () => {
    const { receiver, deliver, clock, log } = sqliteBench();
    await receiver.onAny(() => {}).start();
    await deliver(outbound("sent", { occurredAt: clock.now() }));
    await deliver(outbound("failed", { occurredAt: clock.now() }));
    await clock.advance(1_000);
    expect(gaps(log).map(({ message }) => message)).toEqual([expect.stringContaining("waits for sequence 1 of")]);
    await deliver(outbound("queued", { occurredAt: clock.now() }));
    await clock.advance(1_000);
    expect(gaps(log)).toHaveLength(2);
    expect(gaps(log)[1]).toMatchObject({ fields: { eventId: 2, sequence: 4, missing: { from: 3, to: 3 } } });
  });

  it("counts from the first sequence of its source", async () => {
    const { receiver, deliver, clock, log } = sqliteBench({ firstSequence: 0 });
    await receiver.onAny(() => {}).start();
    await deliver(outbound("queued", { occurredAt: clock.now() }));
    await clock.advance(1_000);
    expect(gaps(log)).toMatchObject([{ fields: { sequence: 1, missing: { from: 0, to: 0 } } }]);
  });

  it("says nothing where the missing one comes within a second", async () => {
    const { receiver, deliver, clock, log } = sqliteBench();
    await receiver.onAny(() => {}).start();
    await deliver(outbound("sent", { occurredAt: clock.now() }));
    await clock.advance(500);
    await deliver(outbound("queued", { occurredAt: clock.now() }));
    await clock.advance(10 * MINUTE);
    expect(gaps(log)).toEqual([]);
  });

  it("says nothing where another process has handled it meanwhile", async () => {
    const one = sqliteBench();
    const other = sqliteBench({ clock: one.clock }, one.file);
    for (const { receiver } of [one, other]) receiver.onAny(() => {});
    await one.deliver(outbound("sent", { occurredAt: one.clock.now() }));
    await other.deliver(outbound("queued", { occurredAt: one.clock.now() }));
    await other.receiver.drain();
    await one.clock.advance(MINUTE);
    expect([...gaps(one.log), ...gaps(other.log)]).toEqual([]);
  });

  it("says so at the end of a drain, since the process may be frozen then", async () => {
    const { receiver, deliver, clock, log } = sqliteBench();
    receiver.onAny(() => {});
    await deliver(outbound("sent", { occurredAt: clock.now() }));
    await receiver.drain();
    expect(gaps(log)).toHaveLength(1);
    await receiver.drain();
    await clock.advance(MINUTE);
    expect(gaps(log)).toHaveLength(1);
  });

  it("names no command where no other process can open the inbox", async () => {
    const { receiver, deliver, clock, log } = memoryBench();
    await receiver.onAny(() => {}).start();
    await deliver(outbound("sent", { occurredAt: clock.now() }));
    await clock.advance(1_000);
    expect(gaps(log)).toHaveLength(1);
    expect(gaps(log)[0]?.fields).not.toHaveProperty("more");
  });

  it("looks at twenty messages a second, however many wait", async () => {
    const { receiver, deliver, clock, log } = sqliteBench();
    await receiver.onAny(() => {}).start();
    for (let message = 0; message < 30; message++) {
      await deliver(outbound("sent", { messageId: `m${message}`, occurredAt: clock.now() }));
    }
    await clock.advance(1_000);
    expect(gaps(log)).toHaveLength(20);
    await clock.advance(1_000);
    expect(gaps(log)).toHaveLength(30);
  });
});
