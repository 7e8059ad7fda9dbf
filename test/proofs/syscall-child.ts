/**
 * The process that is killed at one of its system calls, of a later version: opens (or makes, or migrates) the inbox, accepts and
 * handles, copies its log into the file, prunes what is a month old, and closes. It says on its standard output what it acknowledged.
 */
import { writeSync } from "node:fs";
import { createFakeClock } from "../../src/tools/testing/fake-clock.ts";
import { becomeLater } from "../support/later-version.ts";
import { givenOptions } from "./process.ts";
import type { ChildOptions } from "./syscall.ts";
import { BEGIN, DAY_MS, deliver, deliveriesOf, PHASES, type Phase, receiverOn } from "./syscall-deliveries.ts";

/** After which the log is copied into the file, and after which it is emptied. */
const IDLE_MS = 300;
const LONG_IDLE_MS = 125_000;
const PRUNING = { handledBodiesMs: 0, otherBodiesMs: 0, identitiesMs: 30 * DAY_MS, deadMs: 90 * DAY_MS, batch: 20 };

const { path, seed, answersFirst } = givenOptions<ChildOptions>();
becomeLater();
const clock = createFakeClock(BEGIN);
const receiving = receiverOn(path, clock);
const { receiver, store } = receiving;

/** One write to a pipe: what is said before a kill has been said. */
const say = (line: string) => writeSync(1, `${line}\n`);

async function play(phase: Phase): Promise<void> {
  const deliveries = deliveriesOf(seed, phase);
  if (answersFirst) for (const { identity } of deliveries) say(`acknowledged ${identity}`);
  await deliver(receiving, deliveries, {
    clock,
    answered: ({ identity }, status) => say(status === 200 ? `acknowledged ${identity}` : `answered ${status}`),
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
