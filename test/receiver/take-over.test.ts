/** A receiver that goes on with an older one's inbox, as at a reload in development: one worker, and nothing left open behind it. */
import { describe, expect, it } from "vitest";
import { createReceiver } from "../../src/index.ts";
import { sqliteStore } from "../../src/stores/sqlite.ts";
import { createFakeClock } from "../../src/tools/testing/fake-clock.ts";
import { deferred, idleTurns, incoming, newInboxFile, recordedLog, SECRET } from "./bench.ts";
import { inbound } from "./events.ts";

type Store = ReturnType<typeof sqliteStore>;

/** Receivers of one clock and log. */
function reloads() {
  const clock = createFakeClock();
  const { logger, log } = recordedLog();
  const on = (store: Store) => createReceiver({ secrets: SECRET, store, clock, logger });
  return { on, log, delivery: () => incoming(inbound(), clock.now()) };
}

const isOpen = (store: Store) =>
  store.stats().then(
    () => true,
    () => false,
  );

describe("takeOver() of a receiver that never opened the store that both were given", () => {
  it.each([
    ["while its own is opening", (starting: Promise<void>) => void starting],
    ["once it is started", (starting: Promise<void>) => starting],
  ])("leaves one worker, which stop() ends: %s", async (_when, wait) => {
    const { on, log, delivery } = reloads();
    const store = sqliteStore(newInboxFile());
    const older = on(store).onAny(() => {});
    const handled: string[] = [];
    const newer = on(store).onAny(({ eventType }) => void handled.push(eventType));
    const starting = newer.start();
    await wait(starting);
    newer.takeOver(older);
    await starting;
    expect((await newer.handle(delivery())).status).toBe(200);
    await idleTurns();
    expect([handled, older.running]).toEqual([["message.inbound"], true]);
    await older.stop();
    expect([newer.running, await isOpen(store)]).toEqual([false, false]);
    expect(log.filter(({ level }) => level === "error")).toEqual([]);
  });
});

describe("takeOver()", () => {
  it("goes on with its own inbox where the older one's could not be opened: its set-up may be mended by now", async () => {
    const { on, delivery } = reloads();
    const file = newInboxFile();
    const fails = () => {
      throw new Error("a bug of the application's");
    };
    const older = on(sqliteStore(file, { onOpen: fails })).onAny(() => {});
    await expect(older.start()).rejects.toThrow("a bug of the application's");
    const newer = on(sqliteStore(file)).onAny(() => {});
    newer.takeOver(older);
    await newer.start();
    expect((await newer.handle(delivery())).status).toBe(200);
    await newer.stop();
  });

  it("throws where the worker runs and would get no handlers: the older one's go on", async () => {
    const { on, delivery } = reloads();
    const store = sqliteStore(newInboxFile());
    const handled = deferred();
    const older = on(store).onAny(() => handled.resolve());
    await older.start();
    const newer = on(store);
    expect(() => newer.takeOver(older)).toThrow(expect.objectContaining({ code: "no_handlers" }));
    await older.handle(delivery());
    await handled.promise;
    newer.onAny(() => {});
    newer.takeOver(older);
    expect(newer.running).toBe(true);
    await newer.stop();
  });
});
