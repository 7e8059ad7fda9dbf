/** The answer with `ack: "handled"`: the request drives its own lane and waits for the handlers, within bounds. */
import type { EventId, LaneId } from "../inbox/record.ts";
import type { Ending } from "../inbox/settlement.ts";
import * as answers from "./answers.ts";
import type { Engine, StoredAcceptance } from "./engine.ts";
import type { Answer } from "./incoming.ts";

/** Two seconds short of the service's own time-out (DLV-19). */
const DEADLINE_MS = 8_000;
/** Deliveries that may wait for one event: the first and four duplicates; beyond them the service's retry asks again. */
const MOST_WAITING = 5;

export async function whenHandled<Tx>(engine: Engine<Tx>, acceptance: StoredAcceptance): Promise<Answer> {
  const durable = engine.options.store.capabilities.durable;
  if (acceptance.outcome === "duplicate" && acceptance.state !== "pending") {
    return acceptance.state === "dead" && !durable ? answers.UNAVAILABLE : answers.accepted("duplicate");
  }
  if (acceptance.outcome === "late" && engine.lateEvents === "record") return answers.accepted("late");
  if (engine.waiters.count(acceptance.event) >= MOST_WAITING) return answers.UNAVAILABLE;
  const ending = await driven(engine, acceptance.lane, acceptance.event);
  if (ending === "done") return answers.accepted("handled");
  return ending === "dead" && durable ? answers.accepted("dead") : answers.UNAVAILABLE;
}

/** A gap, a backoff or the deadline end the wait as `put_back`: the event is kept, and the service's retry drives it on. */
function driven<Tx>(engine: Engine<Tx>, lane: LaneId, event: EventId): Promise<Ending> {
  return new Promise((resolve) => {
    const finish = (ending: Ending) => {
      stopWaiting();
      timer.cancel();
      resolve(ending);
    };
    const stopWaiting = engine.waiters.add(event, finish);
    const timer = engine.options.clock.setTimeout(() => finish("put_back"), DEADLINE_MS);
    engine.worker.drive(lane, event, () => finish("put_back"));
  });
}
