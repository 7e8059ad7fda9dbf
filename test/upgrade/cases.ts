/** From 0.1.0 to this version and back, on any store: an inbox that it made, and its processes beside this version's on one inbox. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { createReceiver, type InboxStore } from "../../src/index.ts";
import { service, stripe } from "../../src/presets/index.ts";
import {
  createFakeClock,
  type FakeClock,
  fixtures,
  incomingOf,
  signedRequest,
  TEST_SECRET,
  TEST_SECRETS,
} from "../../src/testing/index.ts";
import { unpackOld, VersionProcess } from "./processes.ts";

const folder = mkdtempSync(join(tmpdir(), "oncehook-upgrade-"));
let oldPackage: string;
const cleanUps: (() => unknown)[] = [];

/** A process of 0.1.0, until the test ends. */
async function beginOld(place: string): Promise<VersionProcess> {
  const old = await VersionProcess.begin(oldPackage, place);
  cleanUps.unshift(() => old.kill());
  return old;
}

export interface Place {
  /** As the old process gets it. */
  readonly text: string;
  /** Fills it with what 0.1.0 made. */
  restore(): Promise<void>;
  store(): InboxStore<never>;
  /** The schema, and the oldest one whose code may open it. */
  versions(): Promise<readonly [number, number]>;
}

/** @param schemas - the number of the schema of 0.1.0, and of this version */
export function upgradeTests(
  makePlace: (folder: string) => Promise<Place>,
  schemas: { readonly old: number; readonly own: number },
): void {
  beforeAll(() => {
    oldPackage = unpackOld(folder);
  });

  afterEach(async () => {
    for (const cleanUp of cleanUps.splice(0)) await cleanUp();
  });

  afterAll(() => rmSync(folder, { recursive: true }));

  it("opens an inbox of 0.1.0 and goes on", async () => {
    const place = await makePlace(folder);
    await place.restore();
    expect(await place.versions()).toEqual([schemas.old, 1]);
    const receiver = createReceiver({ secrets: TEST_SECRET, store: place.store(), gapWait: "strict" });
    cleanUps.unshift(() => receiver.stop());
    const handled: string[] = [];
    receiver.onAny((event) => void handled.push(event.eventType)).onLate(() => {});
    await receiver.drain();
    expect(handled).toContain("message.queued");
    expect(await place.versions()).toEqual([schemas.own, 1]);
    const { counters, gauges } = await receiver.inbox.stats();
    expect([counters.duplicates, counters.conflicts, gauges.dead, gauges.quarantined]).toEqual([2, 1, 1, 1]);
    const [dead] = (await receiver.inbox.find({ states: ["dead"] })).items;
    await receiver.inbox.replay(dead?.id ?? 0);
    await receiver.drain();
    expect(handled).toContain("message.failed");
    expect((await receiver.inbox.find({ states: ["dead"] })).items).toEqual([]);
    const repeat = signedRequest(fixtures.sent({ messageId: "msg_handled" }));
    expect((await receiver.handle(incomingOf(repeat))).body).toContain("duplicate");
  });

  it("shares it with a process of 0.1.0, and holds a new source back until that is gone", async () => {
    const place = await makePlace(folder);
    const old = await beginOld(place.text);
    await old.ask("start");
    const clock = tickingClock();
    const receiver = createReceiver({
      ...{ store: place.store(), clock },
      sources: {
        messages: service({ secrets: TEST_SECRET }),
        billing: stripe({ secrets: TEST_SECRETS.stripe, lane: null }),
      },
    });
    cleanUps.unshift(() => stopped(receiver, clock));
    const handled: string[] = [];
    receiver.source("messages").onAny((event) => void handled.push(`${messageOf(event)} ${event.eventType}`));
    receiver.source("messages").onLate(() => {});
    receiver.source("billing").onAny((event) => void handled.push(event.id));
    await receiver.start();

    const sent: string[] = [];
    for (let number = 0; number < 40; number++) {
      const messageId = `msg_${number}`;
      for (const make of [fixtures.queued, fixtures.sent, fixtures.delivery]) {
        const event = make({ messageId, occurredAt: Date.now() });
        sent.push(`${messageId} ${event.eventType}`);
        if (number % 2 === 0) expect(await old.ask("send", event)).toBe(200);
        else expect((await receiver.source("messages").handle(incomingOf(signedRequest(event)))).status).toBe(200);
      }
    }
    const both = async () => [...((await old.ask("handled")) as string[]), ...handled].sort();
    await expect.poll(both, { timeout: 20_000 }).toEqual(sent.sort());

    const paid = () =>
      receiver
        .source("billing")
        .handle(incomingOf(signedRequest(fixtures.stripe(), { source: "stripe", timestamp: clock.now() })));
    expect((await paid()).status).toBe(503);
    expect((await receiver.health()).reasons).toContain("old_version_running");
    await old.ask("stop");
    await clock.advance(5_001);
    expect((await paid()).status).toBe(200);
    await expect.poll(() => handled).toContain("evt_000001");
    expect((await receiver.health()).reasons).not.toContain("old_version_running");
    expect(await place.versions()).toEqual([schemas.own, schemas.own]);

    const late = await beginOld(place.text);
    await expect(late.ask("start")).rejects.toThrow("inbox_too_new");
  });

  it("lets a process of 0.1.0 come back as long as there are no other sources", async () => {
    const place = await makePlace(folder);
    const receiver = createReceiver({ secrets: TEST_SECRET, store: place.store() })
      .onAny(() => {})
      .onLate(() => {});
    await receiver.start();
    await receiver.handle(incomingOf(signedRequest(fixtures.queued({ messageId: "msg_new" }))));
    await receiver.stop();
    expect(await place.versions()).toEqual([schemas.own, 1]);
    const old = await beginOld(place.text);
    await old.ask("start");
    expect(await old.ask("send", fixtures.sent({ messageId: "msg_new" }))).toBe(200);
    await expect.poll(() => old.ask("handled")).toEqual(["msg_new message.sent"]);
    await old.ask("stop");
  });

  it("takes a process that was killed for gone after 90 seconds", async () => {
    const place = await makePlace(folder);
    const old = await beginOld(place.text);
    await old.ask("start");
    const store = place.store();
    const clock = tickingClock();
    const receiver = createReceiver({
      store,
      clock,
      source: stripe({ secrets: TEST_SECRETS.stripe, lane: null }),
    }).onAny(() => {});
    cleanUps.unshift(() => stopped(receiver, clock));
    await receiver.start();
    const paid = async () => {
      const request = signedRequest(fixtures.stripe(), { source: "stripe", timestamp: clock.now() });
      return (await receiver.handle(incomingOf(request))).status;
    };
    await clock.advance(80_000);
    expect(await paid()).toBe(503);
    await clock.advance(11_000);
    expect(await paid()).toBe(200);
  });
}

/** Goes on by itself: where two processes want the inbox at once, one tries again later, by its clock. */
function tickingClock(): FakeClock {
  const clock = createFakeClock(Date.now());
  const ticking = setInterval(() => void clock.advance(20), 20);
  cleanUps.unshift(() => clearInterval(ticking));
  return clock;
}

/** What it waits for meanwhile comes by its clock. */
async function stopped(receiver: { stop(): Promise<unknown> }, clock: FakeClock): Promise<void> {
  const stopping = receiver.stop();
  await clock.advance(60_000);
  await stopping;
}

function messageOf(event: { readonly data?: unknown }): unknown {
  return (event.data as { readonly messageId?: unknown } | undefined)?.messageId;
}
