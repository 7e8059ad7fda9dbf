/**
 * The process that is killed at one of its system calls, of a later version: opens (or makes, or migrates) the inbox, accepts and
 * handles, copies its log into the file, prunes what is a month old, and closes. It says on its standard output what it acknowledged.
 */
import { writeSync } from "node:fs";
import { createFakeClock } from "../../../src/testing/fake-clock.ts";
import { becomeLater } from "../../support/later-version.ts";
import { BEGIN, DAY_MS, deliver, deliveriesOf, identityOfEvent, PHASES, type Phase } from "./deliveries.ts";
import type { ChildOptions } from "./point.ts";
import { receiverOn } from "./receiver.ts";

/** After which the log is copied into the file, and after which it is emptied. */
const IDLE_MS = 300;
const LONG_IDLE_MS = 125_000;
const PRUNING = { handledBodiesMs: 0, otherBodiesMs: 0, identitiesMs: 30 * DAY_MS, deadMs: 90 * DAY_MS, batch: 20 };

const { path, seed, answersFirst } = JSON.parse(process.argv[2] ?? "{}") as ChildOptions;
becomeLater();
const clock = createFakeClock(BEGIN);
const { store, receiver } = receiverOn(path, clock);

/** One write to a pipe: what is said before a kill has been said. */
const say = (line: string) => writeSync(1, `${line}\n`);

async function play(phase: Phase): Promise<void> {
  const events = deliveriesOf(seed, phase);
  if (answersFirst) for (const event of events) say(`acknowledged ${identityOfEvent(event)}`);
  await deliver(receiver, events, {
    clock,
    answered(event, status) {
      say(status === 200 ? `acknowledged ${identityOfEvent(event)}` : `answered ${status}`);
    },
  });
  await receiver.drain();
}

await receiver.start();
say("working");
await play(PHASES.first);
say("copying");
await clock.advance(IDLE_MS);
say("working");
await play(PHASES.second);
say("copying");
await clock.advance(LONG_IDLE_MS);
clock.set(BEGIN + 31 * DAY_MS);
say("working");
await play(PHASES.later);
say("pruning");
for (let more = true; more; ) ({ more } = await store.prune(PRUNING));
say("closing");
await receiver.stop();
say("closed");
