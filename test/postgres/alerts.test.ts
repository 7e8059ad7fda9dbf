/**
 * As test/concurrency/alerts.test.ts, on a server.
 *
 * @module-tag full
 */
import { describe, expect, inject, it } from "vitest";
import type { InboxStore } from "../../src/index.ts";
import { postgresStore } from "../../src/stores/postgres.ts";
import { type AlertsTerms, watchTogether } from "../concurrency/alerts-scene.ts";
import { newSchema } from "./place.ts";

function onServer(terms: Omit<AlertsTerms, "place" | "store">) {
  const place = { url: inject("postgresUrl"), schema: newSchema() };
  const store = postgresStore(place.url, { schema: place.schema }) as InboxStore<never>;
  return watchTogether({ ...terms, place, store });
}

describe("alerts of processes on one server", () => {
  it("come once each", { timeout: 120_000 }, async () => {
    const report = await onServer({ processes: 3, episodes: 2, speed: 10, kills: 0, answersAfterMs: 600 });
    console.log(` alerts: ${JSON.stringify(report)}`);
    expect(report).toMatchObject({ statuses: ["began", "ended", "began", "ended"], arrivals: 4, bodiesOfAnId: 1 });
  });

  it("come at least once, and each time as at first, while the process that sends is killed", {
    timeout: 240_000,
  }, async () => {
    const report = await onServer({ processes: 3, episodes: 2, speed: 40, kills: 2 });
    console.log(` alerts: ${JSON.stringify(report)}`);
    const statuses = ["began", "ended", "began", "ended"];
    expect(report).toMatchObject({ statuses, episodes: 2, kills: 8, bodiesOfAnId: 1, unsigned: 0, strangeEnds: [] });
    expect(report.arrivals).toBeGreaterThan(8);
  });
});
