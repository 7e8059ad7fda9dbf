/**
 * A file that is full, or no longer where it was, while processes work on it.
 *
 * @module-tag full
 */
import { rename, writeFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { sqliteStore } from "../../src/stores/sqlite.ts";
import { fixtures } from "../../src/testing/index.ts";
import { contextOf } from "../stores/sqlite-turns.ts";
import { type Child, type Family, until, withFamily } from "./family.ts";
import { FLAWLESS, verdictOf } from "./verdict.ts";

const large = (messageId: string) =>
  fixtures.queued({ messageId, occurredAt: Date.now(), data: { padding: "x".repeat(60_000) } });

/** Sends new events until one is answered with `status`; gives how many were not. */
async function deliverUntil(child: Child, name: string, status: number): Promise<number> {
  for (let index = 0; index < 500; index++) {
    if ((await child.deliver(large(`${name}-${index}`))).status === status) return index;
    await sleep(50);
  }
  throw new Error(`No delivery was answered with ${status}.`);
}

const allHandled = (family: Family) =>
  until("all are handled", () => family.number("select count(*) from oncehook_event where state = 0") === 0);

describe("a file that has reached maxDatabaseBytes", () => {
  it("takes no new events, lets those it has be handled, and takes more once it was pruned (I2, I10)", () =>
    withFamily(async (family) => {
      const child = await family.add({ store: { maxDatabaseBytes: 900_000 }, receiver: { concurrency: 2 } });
      const accepted = await deliverUntil(child, "slow", 503);
      const handledThen = family.number("select count(*) from handled");
      await allHandled(family);
      expect(handledThen).toBeLessThan(accepted);
      expect(family.number("select count(*) from handled")).toBe(accepted);
      // Pruning goes by the service's timestamps: that of a refused delivery counts too, or nothing would ever be pruned.
      expect((await child.deliver(large("m-refused"))).status).toBe(503);

      const pruner = sqliteStore(family.path);
      await pruner.open(contextOf({ rules: "recorded" }));
      const days = { identitiesMs: 30 * 86_400_000, deadMs: 90 * 86_400_000 };
      const pruned = await pruner.prune({ handledBodiesMs: 0, otherBodiesMs: 0, ...days, batch: 500 });
      expect(pruned.bodies).toBe(accepted);
      await pruner.close();
      await deliverUntil(child, "after", 200);
      await allHandled(family);
      await family.stop();
      expect(verdictOf(family)).toEqual(FLAWLESS);
    }));
});

describe("a file that is moved away while it is open", () => {
  it.skipIf(process.platform === "win32")(
    "takes no events until it is back, also when another file stands in its place (I2) [skipped on Windows]",
    () =>
      withFamily(async (family) => {
        const child = await family.add();
        expect((await child.deliver(fixtures.queued({ messageId: "first" }))).status).toBe(200);
        expect(family.number("select count(*) from oncehook_event")).toBe(1);
        const away = `${family.path}.away`;
        await rename(family.path, away);
        const before = await deliverUntil(child, "away", 503);
        await writeFile(family.path, "");
        await sleep(1_100);
        expect((await child.deliver(fixtures.queued({ messageId: "replaced" }))).status).toBe(503);
        await rename(away, family.path);
        await deliverUntil(child, "back", 200);
        await allHandled(family);
        // Those of the first second, before anybody looked, are there too.
        expect(family.number("select count(*) from handled where message like 'away-%'")).toBe(before);
        await family.stop();
        expect(verdictOf(family)).toEqual(FLAWLESS);
      }),
  );
});
