/** Lifecycles of many messages, shuffled and repeated, sent to several processes at once. */
import type { KnownEvent } from "../../src/index.ts";
import { lifecycle, type SignedRequest, seededRandom, shuffled, signedRequest } from "../../src/testing/index.ts";
import { isOfStripe, pushDelivery, type SourceName } from "../proofs/sources.ts";
import type { Child } from "./family.ts";

/** How many answers of a kind there were. */
export interface Answers {
  accepted: number;
  duplicate: number;
  late: number;
  /** Answered 503, or not at all, and sent again. */
  repeated: number;
}

export interface Delivery {
  readonly source: SourceName;
  readonly event: object;
  readonly child: Child;
  /** 0 for the first. */
  readonly copy: number;
}

/** Messages mixed with others this many at a time. */
const MIXED = 40;
const STREAMS = 4;
const PARALLEL = 24;

export function message(messageId: string, ending: "delivery" | "failed" = "delivery"): KnownEvent[] {
  return lifecycle({ messageId, occurredAt: Date.now(), ending });
}

/** A repeat of an event is written in other words that mean the same; that of a push comes under another id and type. */
export function requestOf({ source, event, copy }: Omit<Delivery, "child">): SignedRequest {
  const inOtherWords = JSON.stringify(event, null, copy === 1 ? 1 : undefined);
  if (source === "messages") return signedRequest(inOtherWords);
  if (isOfStripe(source)) return signedRequest(inOtherWords, { source: "stripe" });
  const body = JSON.stringify(event);
  return signedRequest(body, pushDelivery(body, copy));
}

/** Every event two or three times, each time to another process; the events of some messages at a time in any order. */
export function spread(
  messages: readonly (readonly object[])[],
  children: readonly Child[],
  seed: number,
  source: SourceName = "messages",
): Delivery[] {
  const random = seededRandom(seed);
  const deliveries: Delivery[] = [];
  for (let from = 0; from < messages.length; from += MIXED) {
    const mixed = messages.slice(from, from + MIXED).flatMap((events) =>
      events.flatMap((event): Delivery[] => {
        const first = Math.floor(random() * children.length);
        return Array.from({ length: 2 + Math.floor(random() * 2) }, (_, copy) => ({
          ...{ source, event, copy },
          child: children[(first + copy) % children.length]!,
        }));
      }),
    );
    deliveries.push(...shuffled(mixed, random));
  }
  return deliveries;
}

/** Sends all, neighbours in the list by different streams; each until it is answered with 200. */
export async function send(deliveries: readonly Delivery[]): Promise<Answers> {
  const answers: Answers = { accepted: 0, duplicate: 0, late: 0, repeated: 0 };
  const streams = Array.from({ length: STREAMS }, (_, stream) =>
    deliveries.filter((_, index) => index % STREAMS === stream),
  );
  const senders = streams.flatMap((stream) =>
    Array.from({ length: PARALLEL }, async () => {
      for (let next = stream.shift(); next !== undefined; next = stream.shift()) await deliver(next, answers);
    }),
  );
  await Promise.all(senders);
  return answers;
}

async function deliver({ child, ...rest }: Delivery, answers: Answers): Promise<void> {
  for (;;) {
    const { status, outcome } = await child.pass(rest.source, requestOf(rest));
    if (status === 200 && (outcome === "accepted" || outcome === "duplicate" || outcome === "late")) {
      answers[outcome] += 1;
      return;
    }
    if (status !== 503) throw new Error(`A delivery was answered with ${status} ${outcome}.`);
    answers.repeated += 1;
  }
}
