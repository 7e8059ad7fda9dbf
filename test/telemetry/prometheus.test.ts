import promClient from "prom-client";
import { describe, expect, it } from "vitest";
import { SetupError } from "../../src/index.ts";
import { prometheusMetrics } from "../../src/telemetry/index.ts";
import { METRICS } from "../../src/telemetry/names.ts";
import { prometheusName } from "../../src/telemetry/prometheus.ts";
import { type Bench, memoryBench, sqliteBench } from "../receiver/bench.ts";
import { inbound } from "../receiver/events.ts";
import { parseScrape } from "./scrape.ts";

function watch<Tx>({ receiver }: Bench<Tx>): promClient.Registry {
  const register = new promClient.Registry();
  prometheusMetrics(receiver, promClient, { register });
  return register;
}

describe("a scrape", () => {
  it("parses, and has every metric with its type and its help", async () => {
    const scrape = parseScrape(await watch(sqliteBench()).metrics());
    expect([...scrape.types]).toEqual(
      expect.arrayContaining(Object.values(METRICS).map((metric) => [prometheusName(metric), metric.kind])),
    );
    expect(scrape.types.size).toBe(Object.keys(METRICS).length);
    expect(scrape.helps.size).toBe(scrape.types.size);
  });

  it("tells what happened", async () => {
    const bench = sqliteBench();
    const register = watch(bench);
    bench.receiver.onAny(() => {});
    await bench.deliver(inbound());
    await bench.deliver(inbound(), { secret: "not-the-signing-secret-of-the-se" });
    await bench.receiver.drain();
    const { samples } = parseScrape(await register.metrics());
    const process = 'messaging_system_name="messaging_service",messaging_operation_name="process"';
    expect(
      samples.get(`messaging_client_consumed_messages_total{${process},messaging_destination_name="message.inbound"}`),
    ).toBe(1);
    expect(samples.get('oncehook_deliveries_total{oncehook_delivery_outcome="accepted"}')).toBe(1);
    expect(samples.get('oncehook_signature_failures_total{oncehook_delivery_reason="signature_mismatch"}')).toBe(1);
    expect(samples.get('oncehook_secret_uses_total{oncehook_secret_slot="current"}')).toBe(1);
    expect(samples.get('oncehook_attempts_total{oncehook_attempt_ending="handled"}')).toBe(1);
    expect(samples.get("oncehook_inbox_pending")).toBe(0);
    expect(samples.get("oncehook_commit_size_sum")).toBe(2);
  });

  it("says that it does not know what an inbox holds that does not answer", async () => {
    const bench = sqliteBench();
    const register = watch(bench);
    bench.store.faults.reads = new Error("no");
    expect(parseScrape(await register.metrics()).samples.get("oncehook_inbox_pending")).toBeNaN();
  });
});

describe("prometheusMetrics()", () => {
  it("registers with prom-client's own registry unless it is given another", async () => {
    prometheusMetrics(memoryBench().receiver, promClient);
    expect(parseScrape(await promClient.register.metrics()).types.size).toBe(Object.keys(METRICS).length);
    expect(() => prometheusMetrics(memoryBench({ name: "second" }).receiver, promClient)).toThrow(/already/);
    promClient.register.clear();
  });

  it("goes on with the metrics of the receiver that is taken over, also in a registry that was cleared", async () => {
    const register = new promClient.Registry();
    const before = sqliteBench();
    prometheusMetrics(before.receiver, promClient, { register });
    before.receiver.onAny(() => {});
    await before.deliver(inbound());
    const after = sqliteBench({ clock: before.clock }, before.file);
    prometheusMetrics(after.receiver, promClient, { register });
    after.receiver.onAny(() => {}).takeOver(before.receiver);
    await after.deliver(inbound({ messageId: "two" }));
    const accepted = 'oncehook_deliveries_total{oncehook_delivery_outcome="accepted"}';
    const { samples } = parseScrape(await register.metrics());
    expect([samples.get(accepted), samples.get("oncehook_inbox_pending")]).toEqual([2, 2]);
    register.clear();
    prometheusMetrics(after.receiver, promClient, { register });
    await after.deliver(inbound({ messageId: "three" }));
    expect(parseScrape(await register.metrics()).samples.get(accepted)).toBe(3);
  });

  it("refuses what is not prom-client", () => {
    expect(() => prometheusMetrics(memoryBench().receiver, {} as never)).toThrow(SetupError);
    expect(() => prometheusMetrics(memoryBench().receiver, promClient, { registry: 1 } as never)).toThrow(/register/);
  });
});
