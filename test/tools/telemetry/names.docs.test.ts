import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { ATTRIBUTES, METRICS } from "../../../src/tools/telemetry/names.ts";
import { prometheusLabel, prometheusName } from "../../../src/tools/telemetry/prometheus.ts";
import { createFakeClock } from "../../../src/tools/testing/fake-clock.ts";
import { HOUR, MINUTE, memoryBench, SECRET, type Wish } from "../../receiver/bench.ts";
import { inbound, outbound } from "../../receiver/events.ts";

const page = readFileSync("docs/telemetry.md", "utf8");
const alerts = readFileSync("docs/telemetry/alerts.yml", "utf8");
const dashboard: { panels: { title: string; targets: { expr: string }[] }[] } = JSON.parse(
  readFileSync("docs/telemetry/grafana-dashboard.json", "utf8"),
);

const metrics = Object.values(METRICS);
/** A histogram is asked for by the names of its parts. */
const names = new Set(
  metrics.flatMap((metric) => {
    const name = prometheusName(metric);
    return metric.kind === "histogram" ? ["_bucket", "_sum", "_count"].map((part) => name + part) : [name];
  }),
);
const labels = new Set([...Object.values(ATTRIBUTES).map(prometheusLabel), "le"]);

/** Every name of a metric and of a label in a query. */
function namesIn(query: string): string[] {
  return query.match(/\b(?:oncehook|messaging|error)_\w+/g) ?? [];
}

const ruleQueries = [...alerts.matchAll(/^\s+expr: (.+)$/gm)].map(([, query]) => query ?? "");
const panelQueries = dashboard.panels.flatMap(({ targets }) => targets.map(({ expr }) => expr));

describe.each([
  ["docs/telemetry/alerts.yml", ruleQueries],
  ["docs/telemetry/grafana-dashboard.json", panelQueries],
])("%s", (_, queries) => {
  it("asks for metrics and labels that exist", () => {
    const asked = queries.map(namesIn);
    expect(asked.length).toBeGreaterThan(10);
    for (const query of asked) expect(query.some((name) => names.has(name))).toBe(true);
    expect(asked.flat().filter((name) => !names.has(name) && !labels.has(name))).toEqual([]);
  });
});

describe("docs/telemetry/grafana-dashboard.json", () => {
  it("shows every metric", () => {
    const shown = new Set(panelQueries.flatMap(namesIn).map((name) => name.replace(/_(?:bucket|sum|count)$/, "")));
    expect(metrics.map(prometheusName).filter((name) => !shown.has(name))).toEqual([]);
  });
});

describe("docs/telemetry.md", () => {
  it("has a row for every metric, by both of its names", () => {
    for (const metric of metrics) expect(page).toContain(`| \`${metric.name}\` | \`${prometheusName(metric)}\` |`);
  });

  it("has a row for every code that is logged", () => {
    const sources = [...filesUnder("src"), ...filesUnder("adapters")].filter((file) => file.endsWith(".ts"));
    const logged = sources.flatMap((file) =>
      [...readFileSync(file, "utf8").matchAll(/(?:\.(?:warn|error|info)|#report)\(\s*\{[^;]*?\bcode: "(\w+)"/g)].map(
        ([, code]) => code,
      ),
    );
    expect(new Set(logged).size).toBeGreaterThan(15);
    expect(logged.filter((code) => !new RegExp(`^\\| .*\`${code}\``, "m").test(page))).toEqual([]);
  });

  it("names every attribute", () => {
    for (const attribute of Object.values(ATTRIBUTES)) expect(page).toContain(`\`${attribute}\``);
  });

  it("lists the reasons of a 401 that a receiver gives, and no other", async () => {
    const old = "another-signing-secret-of-32-byt";
    const clock = createFakeClock();
    const previous = { secret: old, validUntil: clock.now() + MINUTE };
    const secrets = { inbound: { current: SECRET, previous }, delivery: "a-delivery-signing-secret-of-32-b" };
    const { receiver, deliver } = memoryBench({ clock, secrets });
    await clock.advance(2 * MINUTE);
    const wishes: readonly Wish[] = [
      { headers: { "x-service-signature": undefined } },
      { headers: { "x-service-timestamp": undefined } },
      { headers: { "x-service-signature": "?" } },
      { headers: { "x-service-timestamp": "?" } },
      { at: clock.now() - 2 * HOUR },
      { at: clock.now() + HOUR },
      { secret: old },
    ];
    for (const wish of wishes) await deliver(inbound(), wish);
    await deliver(outbound("queued"));
    const given = Object.keys(receiver.counters).map((name) => name.replace("refused:", ""));
    const [, listed = ""] = page.match(/Reasons of a 401: ([^.]+)\./) ?? [];
    expect(given.length).toBe(wishes.length + 1);
    expect([...listed.matchAll(/`(\w+)`/g)].map(([, reason]) => reason).sort()).toEqual(given.sort());
  });

  it("says what to do on each alert, and on no other", () => {
    const ruled = [...alerts.matchAll(/- alert: (\w+)/g)].map(([, name]) => name);
    const told = [...page.matchAll(/^### (Oncehook\w+)/gm)].map(([, name]) => name);
    expect(ruled.length).toBe(ruleQueries.length);
    expect(told).toEqual(ruled);
  });
});

function filesUnder(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: "utf8" }).map((file) => `${folder}/${file}`);
}
