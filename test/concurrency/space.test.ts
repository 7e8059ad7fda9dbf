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
import { deliver, FLAWLESS, pathOf, withFamily } from "../proofs/family.ts";
import type { Asked } from "../proofs/process.ts";
import { contextOf } from "../stores/sqlite-turns.ts";

const HANDLED = "select count(*) from {effect}";

const large = (messageId: string) =>
  fixtures.queued({ messageId, occurredAt: Date.now(), data: { padding: "x".repeat(60_000) } });

/** Sends new events until one is answered with `status`; gives how many were not. */
async function deliverUntil(child: Asked, name: string, status: number): Promise<number> {
  for (let index = 0; index < 500; index++) {
    if ((await deliver(child, large(`${name}-${index}`))).status === status) return index;
    await sleep(50);
  }
  throw new Error(`No delivery was answered with ${status}.`);
}

describe("a file that has reached maxDatabaseBytes", () => {
  it("takes no new events, lets those it has be handled, and takes more once it was pruned (I2, I10)", () =>
    withFamily(async (family) => {
      const child = await family.add({ store: { maxDatabaseBytes: 900_000 }, receiver: { concurrency: 2 } });
      const accepted = await deliverUntil(child, "slow", 503);
      const handledThen = await family.number(HANDLED);
      await family.settled();
      expect(handledThen).toBeLessThan(accepted);
      expect(await family.number(HANDLED)).toBe(accepted);
      // Pruning goes by the service's timestamps: that of a refused delivery counts too, or nothing would ever be pruned.
      expect((await deliver(child, large("m-refused"))).status).toBe(503);

      const pruner = sqliteStore(pathOf(family));
      await pruner.open(contextOf({ rules: "recorded" }));
      const days = { identitiesMs: 30 * 86_400_000, deadMs: 90 * 86_400_000 };
      const pruned = await pruner.prune({ handledBodiesMs: 0, otherBodiesMs: 0, ...days, batch: 500 });
      expect(pruned.bodies).toBe(accepted);
      await pruner.close();
      await deliverUntil(child, "after", 200);
      await family.settled();
      await family.stop();
      expect(await family.verdict()).toEqual(FLAWLESS);
    }));
});

describe("a file that is moved away while it is open", () => {
  it.skipIf(process.platform === "win32")(
    "takes no events until it is back, also when another file stands in its place (I2) [skipped on Windows]",
    () =>
      withFamily(async (family) => {
        const child = await family.add();
        expect((await deliver(child, fixtures.queued({ messageId: "first" }))).status).toBe(200);
        expect(await family.number("select count(*) from {event}")).toBe(1);
        const path = pathOf(family);
        const away = `${path}.away`;
        await rename(path, away);
        const before = await deliverUntil(child, "away", 503);
        await writeFile(path, "");
        await sleep(1_100);
        expect((await deliver(child, fixtures.queued({ messageId: "replaced" }))).status).toBe(503);
        await rename(away, path);
        await deliverUntil(child, "back", 200);
        await family.settled();
        // Those of the first second, before anybody looked, are there too.
        expect(await family.number(`${HANDLED} where message like 'away-%'`)).toBe(before);
        await family.stop();
        expect(await family.verdict()).toEqual(FLAWLESS);
      }),
  );
});
