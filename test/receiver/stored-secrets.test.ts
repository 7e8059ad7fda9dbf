import { describe, expect, it } from "vitest";
import { createVerifier } from "../../src/index.ts";
import { silentLogger } from "../../src/internal/logger.ts";
import type { SecretSlots, SecretStore } from "../../src/sources/messaging/secret-store.ts";
import { memorySecrets } from "../../src/tools/testing/memory-secrets.ts";
import { deferred, idleTurns, incoming, memoryBench, SECRET, sqliteBench, until } from "./bench.ts";
import { inbound, outbound } from "./events.ts";

const NEXT = "the-secret-after-the-rotation-32";
const OLD = "the-secret-before-the-rotation-3";

const slots = (overrides: Partial<SecretSlots> = {}): SecretSlots => ({
  current: SECRET,
  previous: [],
  next: null,
  rotatedAt: null,
  ...overrides,
});

const nextSince = (since: number) => ({ secret: NEXT, since, rotatedAtBefore: null, hadSecret: true });

/** A receiver that is open, on a store that holds SECRET for inbound messages. */
async function openBench(refreshMs = 1_000) {
  const secrets = memorySecrets({ refreshMs });
  await secrets.write("inbound", slots(), 0);
  const bench = sqliteBench({ secrets });
  await bench.receiver.onAny(() => {}).start();
  const version = async () => (await bench.receiver.inbox.stats()).instances[0]?.keyringVersion;
  await until(async () => (await version()) !== undefined, "the first heartbeat");
  return { ...bench, secrets, version };
}

describe("createReceiver() with a secret store", () => {
  it("tells of a next secret within refreshMs, without a request or a restart, and takes it (RCV-9)", async () => {
    const { secrets, version, clock, deliver } = await openBench();
    const before = await version();
    await secrets.write("inbound", slots({ next: nextSince(clock.now()) }), 1);
    await clock.advance(1_000);
    await until(async () => (await version()) !== before, "the new version");
    expect((await deliver(inbound(), { secret: NEXT })).status).toBe(200);
    expect((await deliver(outbound("queued"), { secret: NEXT })).status).toBe(401);
  });

  it("takes a next secret that it has not read yet, by reading again on the mismatch (RCV-9)", async () => {
    const { secrets, clock, deliver, receiver } = await openBench(30_000);
    await deliver(inbound());
    await secrets.write("inbound", slots({ next: nextSince(clock.now()) }), 1);
    await clock.advance(2_000);
    expect((await deliver(inbound({ messageId: "m 2" }), { secret: NEXT })).status).toBe(200);
    expect(receiver.counters).toEqual({ "slot:service:current": 1, "slot:service:next": 1 });
  });

  it("writes one heartbeat for a change, and none for a refresh that brings nothing", async () => {
    const { secrets, store, clock } = await openBench();
    let beats = 0;
    const { heartbeat } = store;
    store.heartbeat = (beat) => {
      beats++;
      return heartbeat(beat);
    };
    await clock.advance(3_000);
    expect(beats).toBe(0);
    await secrets.write("inbound", slots({ current: NEXT }), 1);
    await clock.advance(3_000);
    expect(beats).toBe(1);
  });

  it("tells of a change again when its heartbeat failed, as often as heartbeats come, not refreshes", async () => {
    const { secrets, store, clock, version, codes } = await openBench(100);
    const before = await version();
    await secrets.write("inbound", slots({ current: NEXT }), 1);
    store.faults.reads = Object.assign(new Error("locked"), { code: "locked" });
    await clock.advance(9_000);
    expect(codes().filter((code) => code === "locked")).toHaveLength(1);
    store.faults.reads = null;
    await clock.advance(1_000);
    await until(async () => (await version()) !== before, "the new version");
  });

  it("is degraded in health while its secrets can not be read, with or without deliveries (RCV-4)", async () => {
    const { secrets, receiver, clock, log } = await openBench();
    const { read } = secrets;
    secrets.read = () => Promise.reject(new Error("down"));
    await clock.advance(1_000);
    await until(() => log.length > 0, "the failed read");
    expect(await receiver.health()).toMatchObject({ status: "degraded", reasons: ["keyring_unavailable"] });
    secrets.read = read;
    await clock.advance(1_000);
    await until(async () => (await receiver.health()).status === "ok", "the next read");
  });

  it("is degraded in health while no secret is stored, and the log names what stores one (RCV-4)", async () => {
    const { receiver, deliver, log } = memoryBench({ secrets: memorySecrets() });
    expect((await deliver(inbound())).status).toBe(503);
    expect((await receiver.health()).reasons).toEqual(["keyring_unavailable"]);
    expect(JSON.stringify(log)).toContain("adoptSecret()");
  });

  it("says nothing more once stopped, although a read was under way", async () => {
    const reading = deferred<null>();
    const secrets: SecretStore = { ...memorySecrets(), read: () => reading.promise };
    const { receiver, codes } = sqliteBench({ secrets });
    await receiver.onAny(() => {}).start();
    await receiver.stop();
    reading.resolve(null);
    await idleTurns();
    expect(codes()).not.toContain("closed");
  });

  it("stops its refreshes with itself, and leaves the store open", async () => {
    let reads = 0;
    let closed = false;
    const kept = memorySecrets();
    await kept.write("inbound", slots(), 0);
    const secrets: SecretStore = {
      ...kept,
      read: (kind) => {
        reads++;
        return kept.read(kind);
      },
      close: async () => {
        closed = true;
      },
    };
    const { receiver, clock } = sqliteBench({ secrets });
    await receiver.onAny(() => {}).start();
    await clock.advance(2_000);
    await receiver.stop();
    const atStop = reads;
    expect(atStop).toBeGreaterThan(2);
    await clock.advance(10_000);
    await idleTurns();
    expect(reads).toBe(atStop);
    expect(closed).toBe(false);
  });
});

describe("createVerifier() with a secret store", () => {
  it("verifies by what is stored, and by a next secret from its first delivery on (RCV-9)", async () => {
    const secrets = memorySecrets({ refreshMs: 30_000 });
    await secrets.write("inbound", slots(), 0);
    const verify = createVerifier({ secrets, logger: silentLogger });
    const verdict = async (secret: string) => (await verify(incoming(inbound(), Date.now(), { secret }))).ok;
    expect(await verdict(SECRET)).toBe(true);
    await secrets.write("inbound", slots({ next: nextSince(Date.now()) }), 1);
    expect(await verdict(NEXT)).toBe(true);
    expect(await verdict(OLD)).toBe(false);
  });
});
