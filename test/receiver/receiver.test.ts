/** What a receiver tells of itself, and what its methods refuse. */
import { describe, expect, it } from "vitest";
import { createReceiver } from "../../src/index.ts";
import { memoryStore } from "../../src/stores/memory.ts";
import { incoming, memoryBench, recordedLog, SECRET, sqliteBench } from "./bench.ts";
import { inbound } from "./events.ts";

describe("a receiver", () => {
  it("tells the clock and the logger that it was made with", () => {
    const { receiver, clock, log } = memoryBench();
    expect(receiver.clock).toBe(clock);
    receiver.logger.info({ mine: 1 }, "Seen.");
    expect(log).toEqual([{ level: "info", fields: { mine: 1 }, message: "Seen." }]);
  });

  it("is named by its name and its inbox", () => {
    const { receiver, file } = sqliteBench();
    expect(receiver.key).toBe(`default@sqlite:${file}`);
    expect(sqliteBench({ name: "orders" }, file).receiver.key).toBe(`orders@sqlite:${file}`);
  });
});

describe("receiver.stop()", () => {
  it.each([
    [{ timeout: 1 }, 'stop has no option "timeout". Did you mean "timeoutMs"?'],
    [{ timeoutMs: -1 }, 'Option "timeoutMs" must be a whole number from 0 to 3600000 ms; it is -1.'],
  ])("refuses %j, and says what it takes", async (options, message) => {
    await expect(memoryBench().receiver.stop(options as object)).rejects.toThrow(message);
  });
});

describe("receiver.takeOver()", () => {
  it("of a stopped receiver leaves the new one its own inbox", async () => {
    const { receiver, clock } = memoryBench();
    await receiver.health();
    await receiver.stop();
    const store = memoryStore({ volatile: true });
    const reloaded = createReceiver({ secrets: SECRET, store, clock, logger: recordedLog().logger });
    reloaded.onAny(() => {});
    reloaded.takeOver(receiver);
    expect((await reloaded.handle(incoming(inbound(), clock.now()))).status).toBe(200);
    await reloaded.stop();
  });
});
