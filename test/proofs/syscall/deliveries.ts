/** What is delivered, by a seed and a phase, so that whoever looks afterwards knows it without being told; and how. */
import { eventIdentity, type KnownEvent, type Receiver } from "../../../src/index.ts";
import type { Clock } from "../../../src/internal/clock.ts";
import { incomingOf, signedRequest } from "../../../src/testing/deliver.ts";
import { lifecycle, seededRandom, shuffled } from "../../../src/testing/scenarios.ts";

export const DAY_MS = 86_400_000;
/** When everything begins, epoch ms: some time ago, for the last phase is a month later. */
export const BEGIN = 1_760_000_000_000;
/** Those of the older inbox, which is there before; two before a month's rest, and one after it. */
export const PHASES = { before: 0, first: 1, second: 2, later: 3 } as const;
export type Phase = (typeof PHASES)[keyof typeof PHASES];

const MESSAGES = 4;
const AT_ONCE = 4;

/** The events of a phase, mixed; some twice. */
export function deliveriesOf(seed: number, phase: Phase): readonly KnownEvent[] {
  const random = seededRandom(seed * 7 + phase);
  const events = Array.from({ length: MESSAGES }, (_, message) =>
    lifecycle({ messageId: `phase-${phase}-message-${message}`, occurredAt: BEGIN }),
  ).flat();
  const repeated = events.filter(() => random() < 0.2);
  return shuffled([...events, ...repeated], random);
}

export function identitiesOf(events: readonly KnownEvent[]): readonly string[] {
  return [...new Set(events.map(identityOfEvent))];
}

export function identityOfEvent(event: KnownEvent): string {
  return eventIdentity(event, new TextEncoder().encode(JSON.stringify(event)));
}

/** Hands deliveries to `receiver`, four at a time, and tells of each answer. */
export async function deliver(
  receiver: Pick<Receiver<never>, "handle">,
  events: readonly KnownEvent[],
  { clock, answered }: { readonly clock: Clock; answered(event: KnownEvent, status: number): void },
): Promise<void> {
  const queue = [...events];
  const send = async () => {
    for (let event = queue.shift(); event !== undefined; event = queue.shift()) {
      const { status } = await receiver.handle(incomingOf(signedRequest(event, { timestamp: clock.now() })));
      answered(event, status);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, send));
}
