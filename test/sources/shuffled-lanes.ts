/** Stripe's events of many objects, shuffled within the hold-back and beyond it, as a suite: on each store the same. */
import { expect, it, onTestFinished } from "vitest";
import { createReceiver, type HandlerContext, type InboxStore } from "../../src/index.ts";
import { silentLogger } from "../../src/internal/logger.ts";
import { stripe } from "../../src/sources/index.ts";
import {
  createFakeClock,
  fixtures,
  incomingOf,
  seededRandom,
  shuffled,
  signedRequest,
  TEST_SECRETS,
} from "../../src/tools/testing/index.ts";
import { sized } from "../setup/form.ts";

/** An inbox, and the table beside it in which handlers keep the last state of each object. */
export interface Place<Tx> {
  readonly store: InboxStore<Tx>;
  write(ctx: HandlerContext<Tx>, object: string, state: string): void;
  read(): Promise<ReadonlyMap<string, string>>;
}

interface Sent {
  readonly id: string;
  readonly object: string;
  /** When it happened, seconds. */
  readonly created: number;
  /** When it comes, seconds. Those of one second come in the order of the list. */
  readonly arrives: number;
}

const LANES = sized({ quick: 100, full: 1_000 });
const EVENTS = 6;
const SECONDS = 5;
const LONGEST_DELAY = 5;
const HOUR_MS = 3_600_000;

/** Two events or more of each object share a second. */
function deliveries(): readonly Sent[] {
  const random = seededRandom(20_261_202);
  const sent = Array.from({ length: LANES * EVENTS }, (_, index): Sent => {
    const created = Math.floor(random() * SECONDS);
    const arrives = created + Math.floor(random() * (LONGEST_DELAY + 1));
    return { id: `evt_${index}`, object: `sub_${index % LANES}`, created, arrives };
  });
  return shuffled(sent, random).toSorted((a, b) => a.arrives - b.arrives);
}

/** What the handlers of an object must receive: `on` by `created` and then by arrival, and `onLate` what came after a newer one was due. */
function truthOf(sent: readonly Sent[], holdBackMs: number) {
  const isLate = (event: Sent) =>
    sent.some(
      ({ created, arrives }) => created > event.created && arrives + Math.ceil(holdBackMs / 1_000) < event.arrives,
    );
  const inTurn = sent.filter((event) => !isLate(event)).toSorted((a, b) => a.created - b.created);
  const late = sent.filter(isLate).toSorted((a, b) => a.arrives - b.arrives || a.created - b.created);
  return { on: inTurn.map(({ id }) => id), late: late.map(({ id }) => id) };
}

/** @param open - makes a place of its own for each test */
export function shuffledLanes<Tx>(open: () => Promise<Place<Tx>>): void {
  it.each([0, 2_500])(
    `has the right last state in each of ${LANES} lanes with holdBackMs: %i`,
    { timeout: 120_000 },
    async (holdBackMs) => {
      const { store, write, read } = await open();
      const clock = createFakeClock();
      const start = clock.now() / 1_000;
      const source = stripe({ secrets: TEST_SECRETS.stripe, holdBackMs, toleranceMs: { past: HOUR_MS } });
      const receiver = createReceiver({ store, source, clock, ack: "stored", logger: silentLogger });
      onTestFinished(() => receiver.stop());
      const seen = new Map<string, { readonly on: string[]; readonly late: string[] }>();
      const seenOf = (object: string) => seen.get(object) ?? seen.set(object, { on: [], late: [] }).get(object)!;
      receiver.onAny(({ id }, ctx) => {
        const object = ctx.meta.lane ?? "";
        seenOf(object).on.push(id);
        write(ctx, object, id);
      });
      receiver.onLate(({ id }, ctx) => void seenOf(ctx.meta.lane ?? "").late.push(id));

      const all = deliveries();
      for (let second = 0; second <= SECONDS + LONGEST_DELAY + holdBackMs / 1_000; second++) {
        const due = all.filter(({ arrives }) => arrives === second);
        // One after the other: deliveries under way at once may be stored in any order.
        for (const { id, object, created } of due) {
          const event = { ...fixtures.stripe({ id }), created: start + created, data: { object: { id: object } } };
          await receiver.handle(incomingOf(signedRequest(event, { source: "stripe", timestamp: clock.now() })));
        }
        // Within a budget that ends before anything else is due.
        await receiver.drain({ budgetMs: 1 });
        await clock.advance(1_000);
      }

      const objects = [...new Set(all.map(({ object }) => object))];
      const truths = new Map(
        objects.map((object) => [
          object,
          truthOf(
            all.filter((event) => event.object === object),
            holdBackMs,
          ),
        ]),
      );
      expect(seen).toEqual(truths);
      expect(await read()).toEqual(new Map([...truths].map(([object, { on }]) => [object, on.at(-1)])));
      const late = [...truths.values()].filter((truth) => truth.late.length > 0).length;
      expect(late).toBeGreaterThan(LANES / 10);
      expect(late).toBeLessThan(LANES);
    },
  );
}
