/** The deliveries and the receiver of a point, by a seed and a phase, so that whoever looks afterwards knows them without being told. */
import type { KnownEvent } from "../../src/index.ts";
import type { FakeClock } from "../../src/tools/testing/fake-clock.ts";
import { incomingOf } from "../../src/tools/testing/index.ts";
import { lifecycle, seededRandom, shuffled } from "../../src/tools/testing/scenarios.ts";
import { inTurn } from "./programme.ts";
import { type Receiving, receive } from "./receiving.ts";
import { type Delivery, deliveryOf, requestOf } from "./sender.ts";

export const DAY_MS = 86_400_000;
/** When everything begins, epoch ms: some time ago, for the last phase is a month later. */
export const BEGIN = 1_760_000_000_000;
/** Those of the older inbox, which is there before; two before a month's rest, and one after it. */
export const PHASES = { before: 0, first: 1, second: 2, later: 3 } as const;
export type Phase = (typeof PHASES)[keyof typeof PHASES];

const MESSAGES = 4;
const AT_ONCE = 4;
/** Nothing is pruned but on request. */
const KEEP_MS = 3_650 * DAY_MS;

/** The events of a phase, mixed; some twice. */
export function deliveriesOf(seed: number, phase: Phase): readonly Delivery[] {
  const random = seededRandom(seed * 7 + phase);
  const events = Array.from({ length: MESSAGES }, (_, message) =>
    lifecycle({ messageId: `phase-${phase}-message-${message}`, occurredAt: BEGIN }),
  ).flat();
  const repeated = events.filter(() => random() < 0.2);
  return shuffled([...events, ...repeated], random).map((event: KnownEvent) => deliveryOf(event));
}

/** With a clock that is moved by hand, and handlers that write an effect for each event. */
export function receiverOn(path: string, clock: FakeClock): Receiving {
  const retention = { handledBodiesMs: KEEP_MS, otherBodiesMs: KEEP_MS, identitiesMs: KEEP_MS, deadMs: KEEP_MS };
  return receive({ place: { path }, receiver: { retention } }, { clock });
}

/** Hands deliveries to a receiver, four at a time, and tells of each answer. */
export async function deliver(
  { receiver }: Receiving,
  deliveries: readonly Delivery[],
  { clock, answered }: { readonly clock: FakeClock; answered(delivery: Delivery, status: number): void },
): Promise<void> {
  await inTurn(deliveries, AT_ONCE, async (delivery) => {
    const { status } = await receiver.source("messages").handle(incomingOf(requestOf(delivery, clock.now())));
    answered(delivery, status);
  });
}
