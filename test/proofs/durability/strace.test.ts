/** The order of write, sync and 2xx of a few deliveries; `npm run prove -- durable` traces many. */
import { describe, expect, it } from "vitest";
import { straceIsMissing } from "./strace.ts";
import { tracedRun } from "./traced-run.ts";

const hasStrace = straceIsMissing() === null;
const DELIVERIES = 50;

describe("durable acceptance", { tags: "full" }, () => {
  it.skipIf(!hasStrace)(
    "syncs the row of every delivery before its 2xx leaves, by the kernel's account (I2, RCV-3) [skipped without a working strace]",
    async () => {
      const { synced, unsynced } = await tracedRun({ deliveries: DELIVERIES });
      expect({ synced: new Set(synced).size, unsynced }).toEqual({ synced: DELIVERIES, unsynced: [] });
    },
    120_000,
  );

  it.skipIf(!hasStrace).each(["NORMAL", "OFF"] as const)(
    "is not believed of a driver that says FULL and sets %s: the kernel's account tells [skipped without a working strace]",
    async (pretence) => {
      const { synced, unsynced } = await tracedRun({ deliveries: DELIVERIES, pretence });
      expect({ synced, unsynced: new Set(unsynced).size }).toEqual({ synced: [], unsynced: DELIVERIES });
    },
    120_000,
  );
});
