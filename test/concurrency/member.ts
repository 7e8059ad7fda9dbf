/** What processes of a test that share an inbox do alike: they talk to their parent, note their handlers, and stumble at random. */
import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import { appendFileSync } from "node:fs";
import type { Answer, HandlerContext, IncomingWebhook, PrunePolicy } from "../../src/index.ts";
import { RetryAfter } from "../../src/index.ts";
import { incomingOf } from "../../src/testing/deliver.ts";
import type { SourceName } from "../proofs/sources.ts";
import type { Answered, Request } from "./family.ts";

export const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
export const PRUNING: PrunePolicy = {
  ...{ handledBodiesMs: 0, otherBodiesMs: 0 },
  ...{ identitiesMs: 30 * DAY_MS, deadMs: 90 * DAY_MS, batch: 50 },
};

/** What the parent asks of each member. */
interface MemberOptions {
  /** Where it writes the starts and ends of its handlers. */
  readonly log: string;
  readonly seed: number;
  /** The share of attempts that fail, 0 to 1. */
  readonly failures: number;
}

/** A parent that is gone hears nothing. */
export function tellParent(message: Answered): void {
  process.send?.(message, undefined, undefined, () => {});
}

/** Answers the parent's requests: deliveries to `receiver`, and what else it asks by `others`. */
export function answerParent(
  receiver: { handle(incoming: IncomingWebhook, source: SourceName): Promise<Answer> },
  others: (request: Exclude<Request, { kind: "deliver" }>) => Promise<void>,
): void {
  const deliver = async ({ id, source, headers, text }: Extract<Request, { kind: "deliver" }>) => {
    const incoming = incomingOf({ method: "POST", headers, body: Uint8Array.from(Buffer.from(text)) });
    const { status, body } = await receiver.handle(incoming, source);
    tellParent({ id, status, outcome: (JSON.parse(body) as { readonly outcome?: string }).outcome ?? "" });
  };
  process.on("message", (request: Request) => {
    void (request.kind === "deliver" ? deliver(request) : others(request));
  });
  process.on("disconnect", () => process.exit(1));
}

/** Runs a handler's `work` between a line for its start and one for its end. */
export async function noted<Tx>(
  { log }: MemberOptions,
  ctx: HandlerContext<Tx>,
  work: () => Promise<void>,
): Promise<void> {
  const note = (mark: "S" | "E") => {
    const { eventId, laneId, sequence } = ctx.meta;
    const facts = [laneId, sequence, eventId, ctx.attempt, ctx.outOfOrder ? 1 : 0];
    // The monotonic clock, which all processes of a machine share.
    appendFileSync(log, `${[mark, process.hrtime.bigint(), ...facts].join(" ")}\n`);
  };
  note("S");
  try {
    await work();
  } finally {
    note("E");
  }
}

/** Fails some attempts, and takes a few turns of the event loop for the others. */
export async function stumble<Tx>({ seed, failures }: MemberOptions, ctx: HandlerContext<Tx>): Promise<void> {
  // A number that hangs on the attempt alone, so that a seed repeats its failures whoever has the event.
  const dice = createHash("sha256").update(`${seed} ${ctx.identity} ${ctx.attempt}`).digest();
  if (dice.readUInt8(0) < 256 * failures) throw new RetryAfter(dice.readUInt8(1) / 4);
  for (let turns = dice.readUInt8(2) % 4; turns > 0; turns--) await new Promise((resolve) => setImmediate(resolve));
}

/** The row that an effect writes: pid, message, sequence, event, attempt, late. */
export function effectRow<Tx>({ meta, attempt, outOfOrder }: HandlerContext<Tx>) {
  return [process.pid, meta.lane.messageId, meta.sequence, meta.eventId, attempt, outOfOrder ? 1 : 0];
}

/** Message ids say what their handlers do, in words with dashes between them. */
export function wordsOf(event: object): string[] {
  return "messageId" in event && typeof event.messageId === "string" ? event.messageId.split("-") : [];
}
