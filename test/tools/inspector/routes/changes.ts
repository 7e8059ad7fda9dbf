/** What changes the number of `GET api/overview`: everything that a view shows, whichever process did it. */
import { hash } from "node:crypto";
import { describe, expect, it, onTestFinished } from "vitest";
import { createReceiver, type InboxStore, PermanentError, type Receiver, RetryAfter } from "../../../../src/index.ts";
import { createInspector, type Overview } from "../../../../src/tools/inspector/index.ts";
import { incoming, recordedLog, SECRET } from "../../../receiver/bench.ts";
import { inbound, outbound } from "../../../receiver/events.ts";
import { turn } from "../../../stores/sqlite-turns.ts";
import { mounted } from "../support/mounted.ts";
import { newestOf } from "./scene.ts";

interface Acting {
  readonly inbox: Receiver<never>["inbox"];
  deliver(body: string): Promise<unknown>;
  /** Handles the events that are due. */
  drain(): Promise<unknown>;
  quarantine(body: string): Promise<unknown>;
  laneOf(messageId: string): Promise<number>;
  eventOf(messageId: string): Promise<number>;
}

type Step = readonly [what: string, act: (acting: Acting) => Promise<unknown>];

const handleDue = ({ drain }: Acting) => drain();
const of = (messageId: string) => (kind: Parameters<typeof outbound>[0]) =>
  outbound(kind, { messageId, to: "+15550100002" });

/** In their order: each finds what the ones before it left. */
const STEPS: readonly Step[] = [
  ["an event was accepted", ({ deliver }) => deliver(of("msg_1")("queued"))],
  ["it was handled", handleDue],
  ["it came again", ({ deliver }) => deliver(of("msg_1")("queued"))],
  ["an event came for a handler that is not well", ({ deliver }) => deliver(of("msg_retry")("queued"))],
  ["it is retried later", handleDue],
  ["it was discarded", async ({ inbox, eventOf }) => inbox.discard(await eventOf("msg_retry"))],
  ["an event came that no handler can do", ({ deliver }) => deliver(of("msg_dead")("queued"))],
  ["it is a dead letter, and blocks its message", handleDue],
  ["the message was unblocked", async ({ inbox, laneOf }) => inbox.unblock(await laneOf("msg_dead"))],
  ["the dead letter was replayed", async ({ inbox, eventOf }) => inbox.replay(await eventOf("msg_dead"))],
  ["a handled event was replayed", async ({ inbox, eventOf }) => inbox.replay(await eventOf("msg_1"))],
  ["an event came that waits for another", ({ deliver }) => deliver(of("msg_gap")("delivery"))],
  ["its wait was ended", async ({ inbox, laneOf }) => inbox.releaseGap(await laneOf("msg_gap"))],
  ["what was due was handled", handleDue],
  ["an event came late", ({ deliver }) => deliver(of("msg_gap")("sent"))],
  ["a body was quarantined", ({ deliver }) => deliver("junk")],
  ["a body that can be read was quarantined", ({ quarantine }) => quarantine(inbound({ messageId: "msg_in" }))],
  ["a body was revealed", ({ inbox }) => inbox.revealQuarantined(1)],
  ["a body was discarded", ({ inbox }) => inbox.discardQuarantined(1)],
  ["a body was replayed", ({ inbox }) => inbox.replayQuarantined(2)],
  ["a message was revealed", async ({ inbox, laneOf }) => inbox.reveal(await laneOf("msg_1"))],
  ["a person was erased", ({ inbox }) => inbox.erase({ peer: "+15550100002" })],
];

/**
 * The inspector is of the first store, and the last one acts: another connection to the same inbox, if there is one.
 *
 * @param handlesAlone - the receiver handles an event without being started or drained
 */
export function changesSuite(
  name: string,
  makeStores: () => readonly InboxStore<never>[],
  { handlesAlone = false } = {},
): void {
  describe(`the change number on ${name}`, () => {
    it("is another one after each change, and the same without one", async () => {
      const { number, acting, start } = await open(makeStores());
      let before = await number();
      for (const [what, act] of STEPS) {
        if (handlesAlone && act === handleDue) continue;
        expect(await number(), `before ${what}`).toBe(before);
        const done = await act(acting);
        if (typeof done === "object" && done !== null && "ok" in done) expect(done, what).toMatchObject({ ok: true });
        if (handlesAlone) await acting.drain();
        // Repeats are counted a while later.
        await expect.poll(number, { message: what, timeout: 5_000 }).not.toBe(before);
        before = await number();
      }
      await acting.drain();
      const last = await number();
      await start();
      for (let asking = 0; asking < 3; asking++) expect(await number()).toBe(last);
    });
  });
}

async function open(stores: readonly InboxStore<never>[]) {
  const { logger } = recordedLog();
  const receivers = stores.map((store) => {
    const receiver = createReceiver<never>({ secrets: SECRET, logger, store, onDead: "block" });
    onTestFinished(() => receiver.stop());
    receiver.onAny((event) => {
      const { messageId } = event as { messageId?: string };
      if (messageId === "msg_retry") throw new RetryAfter(3_600_000, "It does not answer.");
      if (messageId === "msg_dead") throw new PermanentError("There is no such order.");
    });
    return receiver;
  });
  const [inspected, acting] = [receivers[0], receivers.at(-1)];
  const store = stores.at(-1);
  if (inspected === undefined || acting === undefined || store === undefined) throw new Error("There is no store.");
  const { inbox } = inspected;
  const server = await mounted((origin) =>
    createInspector({ inbox, authorize: () => "read", origins: [origin], logger }),
  );
  const number = async () => ((await server.ask({ url: "/inspector/api/overview" })).json() as Overview).changed;
  return { number, acting: actingOn(acting, store), start: () => acting.start() };
}

function actingOn(receiver: Receiver<never>, store: InboxStore<never>): Acting {
  const { inbox } = receiver;
  const eventOf = async (messageId: string) => {
    const newest = await newestOf(inbox, messageId);
    if (newest === undefined) throw new Error(`${messageId} is not in the inbox.`);
    return newest;
  };
  return {
    inbox,
    deliver: (body) => receiver.handle(incoming(body, Date.now())),
    drain: () => receiver.drain(),
    async quarantine(body) {
      const raw = Buffer.from(body);
      const origin = { source: "service", tenant: null, slot: "current", signer: "s" } as const;
      const facts = { ...origin, reason: "invalid_json", signedAt: Date.now(), trace: null };
      const digest = hash("sha256", raw, "buffer");
      await store.step(turn<never>({ quarantines: [{ ...facts, kinds: [], digest, raw }] }));
    },
    laneOf: async (messageId) => (await eventOf(messageId)).laneId,
    eventOf: async (messageId) => (await eventOf(messageId)).id,
  };
}
