/** Everything that somebody who looks after a receiver asks it, and the errors that a wrong set-up gets. */
import { createReceiver, createVerifier, type Receiver } from "../../../src/index.ts";
import { memoryStore } from "../../../src/stores/memory.ts";
import type { Ears } from "./ears.ts";
import { MARKS, pick } from "./marks.ts";

export async function askEverything(receiver: Receiver<never>, ears: Ears): Promise<void> {
  const { inbox } = receiver;
  const { items } = await inbox.find({ limit: 1_000 });
  for (const { error, errorCode, trace, eventType, state } of items) {
    if (error !== null) ears.hear("stored error", error);
    ears.hear("operator", { errorCode, trace, state, eventType });
  }
  const dead = items.filter(({ state }) => state === "dead");
  for (const { id } of dead.slice(0, 3)) ears.hear("operator", await inbox.replay(id, { by: "maria" }));
  for (const { id } of dead.slice(3, 6)) ears.hear("operator", await inbox.discard(id));
  const quarantined = await inbox.findQuarantined({ limit: 5 });
  for (const { id, reason, slot, kinds } of quarantined.items) {
    ears.hear("operator", { reason, slot, kinds });
    ears.hearError(await inbox.replayQuarantined(id).catch((error: unknown) => error));
  }
  ears.hear("operator", await inbox.erase({ peer: pick(MARKS.numbers, 1) }));
  ears.hear("operator", [await inbox.stats(), await inbox.audit(), await inbox.groupByError()]);
  ears.hear("operator", [await receiver.health(), receiver.counters, receiver.key]);
}

/** Secrets that are wrong in every way must not stand in the error that says so. */
export function constructionErrors(ears: Ears): void {
  const [one, two] = [pick(MARKS.secrets, 0), pick(MARKS.secrets, 1)];
  const wrong: unknown[] = [
    ...["", one.slice(0, 8), `${one}\n`, { current: one, previous: one }, { current: one, nxt: two }, [one, two]],
    ...[
      { current: one, previous: { secret: two, validUntil: 8e15 } },
      { delivery: one, inboud: two },
      new Map([[one, two]]),
    ],
  ];
  const store = memoryStore({ volatile: true });
  for (const secrets of wrong as never[]) {
    for (const make of [() => createReceiver({ secrets, store }), () => createVerifier({ secrets })]) {
      try {
        make();
      } catch (error) {
        ears.hearError(error);
      }
    }
  }
}
