/**
 * Several processes that watch one inbox: no alert is missed while they are killed, every repeat is the first one, and without kills each comes once.
 *
 * @module-tag full
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import type { InboxStore } from "../../src/index.ts";
import { sqliteStore } from "../../src/stores/sqlite.ts";
import { type AlertsTerms, watchTogether } from "./alerts-scene.ts";

async function onFile(terms: Omit<AlertsTerms, "place" | "store">) {
  const folder = await mkdtemp(join(tmpdir(), "oncehook-alerts-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const path = join(folder, "inbox.db");
  return watchTogether({ ...terms, place: { path }, store: sqliteStore(path) as InboxStore<never> });
}

describe("alerts of processes on one file", () => {
  it("come once each", { timeout: 120_000 }, async () => {
    const report = await onFile({ processes: 3, episodes: 2, speed: 10, kills: 0, answersAfterMs: 600 });
    console.log(` alerts: ${JSON.stringify(report)}`);
    expect(report).toEqual({
      ...{ statuses: ["began", "ended", "began", "ended"], episodes: 2, arrivals: 4, kills: 0 },
      ...{ bodiesOfAnId: 1, unsigned: 0, strangeEnds: [] },
    });
  });

  it("come at least once, and each time as at first, while the process that sends is killed", {
    timeout: 240_000,
  }, async () => {
    const report = await onFile({ processes: 3, episodes: 3, speed: 40, kills: 2 });
    console.log(` alerts: ${JSON.stringify(report)}`);
    const statuses = ["began", "ended", "began", "ended", "began", "ended"];
    expect(report).toMatchObject({ statuses, episodes: 3, kills: 12, bodiesOfAnId: 1, unsigned: 0, strangeEnds: [] });
    expect(report.arrivals).toBeGreaterThan(12);
  });
});
