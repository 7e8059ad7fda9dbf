/** Rotations under load, hours apart, and what became of the service's events meanwhile. */
import { randomBytes } from "node:crypto";
import { sleep } from "../../src/internal/clock.ts";
import { silentLogger } from "../../src/internal/logger.ts";
import { rotateSecret } from "../../src/messaging/rotation/index.ts";
import { type Verdict, verdictOn } from "./ledger.ts";
import { createScene, type Scene, type Signing } from "./rotations-scene.ts";

export interface Trial {
  readonly signing: Signing;
  readonly rotations: number;
  readonly eventsPerSecond: number;
  /** The service gets each secret two seconds before the receiver, which must be seen. */
  readonly isCareless?: boolean;
}

export interface Outcome extends Verdict {
  readonly rotations: number;
  readonly events: number;
  readonly attempts: number;
  /** Of these, answered with 503 on purpose, and with 401. */
  readonly turnedAway: number;
  readonly unauthorized: number;
  /** Deliveries by the slot of the secret that vouched for them. */
  readonly bySlot: Readonly<Record<"current" | "previous" | "next", number>>;
}

const SECOND_MS = 1_000;
const MINUTE_MS = 60_000;
/** While messages are sent, and while they are not. */
const BUSY_STEP_MS = 250;
const QUIET_STEP_MS = MINUTE_MS;
/** In real time: an answer that takes 100 ms waits for the clock. */
const LOOK_MS = 1;
const LOOKS_A_STEP = 100;
/** The service's own; the rest of what a replaced secret counts for are its retries and the receiver's tolerance. */
const OVERLAP_MS = 30 * MINUTE_MS;
/** An instant message is queued, sent and delivered at once. */
const EVENTS_OF_A_MESSAGE = 3;

export async function rotateUnderLoad(trial: Trial): Promise<Outcome> {
  const scene = await createScene({ signing: trial.signing, overlapMs: OVERLAP_MS, grainMs: QUIET_STEP_MS });
  try {
    for (let rotation = 0; rotation < trial.rotations; rotation++) await oneRotation(scene, trial);
    return outcomeOf(scene, trial.rotations);
  } finally {
    await scene.close();
  }
}

/** Load before, during and after a rotation, and at the end of the service's overlap; then hours until the next may begin. */
async function oneRotation(scene: Scene, { eventsPerSecond, isCareless = false }: Trial): Promise<void> {
  const { clock, receiverClock } = scene;
  receiverClock.grainMs = BUSY_STEP_MS;
  // Timers that were set with the coarse grain ring a last time.
  await quiet(scene, 2 * QUIET_STEP_MS);
  await load(scene, eventsPerSecond, SECOND_MS);
  const rotatedAt = clock.now();
  const rotation = rotate(scene, isCareless);
  const isEnded = endOf(rotation);
  while (!isEnded()) await load(scene, eventsPerSecond, BUSY_STEP_MS);
  const end = await rotation;
  await load(scene, eventsPerSecond, SECOND_MS);
  receiverClock.grainMs = QUIET_STEP_MS;
  await quiet(scene, rotatedAt + OVERLAP_MS - SECOND_MS - clock.now());
  await load(scene, eventsPerSecond, 2 * SECOND_MS);
  await quiet(scene, end - clock.now());
}

/** Until when the replaced secret counts. */
async function rotate(scene: Scene, isCareless: boolean): Promise<number> {
  if (isCareless) return rotateCarelessly(scene);
  const { client, secrets, clock } = scene;
  const result = await rotateSecret({ client, secrets, clock, kind: "delivery", logger: silentLogger });
  if (result.receivers !== 1) throw new Error(`${result.receivers} receivers were waited for`);
  return result.previousValidUntil ?? clock.now();
}

/** The service has the secret before the receiver. */
async function rotateCarelessly({ client, secrets, clock }: Scene): Promise<number> {
  const secret = randomBytes(32).toString("hex");
  await client.webhooks.update("delivery", { signingEnabled: true, secret });
  await sleep(clock, 2 * SECOND_MS);
  const { current = null, revision = 0 } = (await secrets.read("delivery")) ?? {};
  const validUntil = clock.now() + 180 * MINUTE_MS;
  const previous = current === null ? [] : [{ secret: current, validUntil }];
  await secrets.write("delivery", { current: secret, previous, next: null, rotatedAt: null }, revision);
  return validUntil;
}

/** Asks whether the work has ended. */
function endOf(work: Promise<unknown>): () => boolean {
  let isEnded = false;
  const end = () => {
    isEnded = true;
  };
  work.then(end, end);
  return () => isEnded;
}

async function load(scene: Scene, eventsPerSecond: number, ms: number): Promise<void> {
  const recipients = Math.ceil((eventsPerSecond * BUSY_STEP_MS) / SECOND_MS / EVENTS_OF_A_MESSAGE);
  for (let passed = 0; passed < ms; passed += BUSY_STEP_MS) {
    const sent = await scene.client.messages.send({
      sendFrom: scene.emulator.fixtures.numbers.full,
      to: Array.from({ length: recipients }, (_, index) => `+1415555${1_000 + index}`),
      messageType: "SMS",
      text: "hello",
      externalReference: "order-1",
    });
    sent.throwIfRejected();
    await step(scene, BUSY_STEP_MS);
  }
}

async function quiet(scene: Scene, ms: number): Promise<void> {
  for (let left = ms; left > 0; left -= QUIET_STEP_MS) await step(scene, Math.min(left, QUIET_STEP_MS));
}

async function step(scene: Scene, ms: number): Promise<void> {
  await untilIdle(scene);
  await scene.clock.advance(ms);
  await untilIdle(scene);
}

/** All attempts that came due have ended before time goes on, except those that wait for the receiver to read its secrets again. */
async function untilIdle({ emulator, clock }: Scene): Promise<void> {
  const isIdle = endOf(emulator.clock.idle());
  for (let looks = 1; !isIdle(); looks++) {
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
    if (looks % LOOKS_A_STEP === 0) await clock.advance(BUSY_STEP_MS);
  }
}

function outcomeOf({ receiver, front, handled, events, deliveries }: Scene, rotations: number): Outcome {
  const all = [...deliveries.values()];
  const slot = (name: string) => receiver.counters[`slot:service:${name}`] ?? 0;
  return {
    ...verdictOn({ events, deliveries: all }, handled),
    rotations,
    events: events.length,
    attempts: all.reduce((sum, { attempts }) => sum + attempts.length, 0),
    turnedAway: front.turnedAway,
    unauthorized: front.answered.get(401) ?? 0,
    bySlot: { current: slot("current"), previous: slot("previous"), next: slot("next") },
  };
}
