/** One run: our client sends, the service delivers, our receiver handles, and secrets are rotated three times meanwhile. */
import { sleep } from "../../../src/internal/clock.ts";
import { silentLogger } from "../../../src/internal/logger.ts";
import { rotateSecret } from "../../../src/messaging/rotation/index.ts";
import type { WebhookKind } from "../../../src/sources/messaging/webhook-kind.ts";
import { createFakeClock, type FakeClock, seededRandom } from "../../../src/tools/testing/index.ts";
import { type Verdict, verdictOn } from "../ledger.ts";
import { rotateCarelessly } from "./careless.ts";
import type { Reading } from "./readings.ts";
import { type Flaw, Receiving } from "./receiving.ts";
import { createService, type Service } from "./service.ts";
import { type Time, timeOf, withCoarseTimers } from "./time.ts";

export interface Run {
  readonly reading: Reading;
  readonly messages: number;
  /** What is wrong on purpose, to see it found. Default: nothing. */
  readonly flaws?: readonly Flaw[];
}

export interface Outcome extends Verdict {
  readonly reading: Reading;
  readonly messages: number;
  readonly events: number;
  /** Of these, how many customers' messages. */
  readonly inbound: number;
  /** HTTP attempts, with how many of them failed. */
  readonly attempts: number;
  readonly failedAttempts: number;
  /** Of both kinds together. */
  readonly rotations: number;
  /** Deliveries that a previous or next secret vouched for. */
  readonly signedOtherwise: number;
}

const MINUTE_MS = 60_000;
const START = Date.UTC(2026, 0, 1);
const KINDS: readonly WebhookKind[] = ["delivery", "inbound"];
/** Of messages; each but the first with a rotation, so three. */
const ROUNDS = 4;
/** Beyond the service's overlap. Receivers count a replaced secret for longer, so the second and third rotation are forced. */
const ROUND_MS = 60 * MINUTE_MS;
/** Within it some of the first half's retries are still to come when the secret changes. */
const BEFORE_ROTATION_MS = 4 * MINUTE_MS;
/** So far apart that no event meets both with its attempts. */
const AWAY_ROUNDS: readonly number[] = [1, 3];
const AWAY_MS = 5 * MINUTE_MS;
/** How long a half of a round's messages takes: the second one goes on before, between and after the rotations of both kinds. */
const FIRST_HALF_MS = 20_000;
const SECOND_HALF_MS = 150_000;
/** The receiver's wait for a sequence that never comes. */
const GAP_WAIT_MS = 85 * MINUTE_MS;

interface Scene {
  readonly clock: FakeClock;
  readonly time: Time;
  readonly service: Service;
  readonly receiving: Receiving;
  readonly flaws: readonly Flaw[];
}

export async function run({ reading, messages, flaws = [] }: Run): Promise<Outcome> {
  const scene = await createScene(reading, flaws);
  try {
    await scene.time.passUntil(configure(scene));
    let rotations = 0;
    for (let round = 0; round < ROUNDS; round++) {
      const numbers = numbersOf(messages, round);
      const half = Math.ceil(numbers.length / 2);
      const end = scene.clock.now() + ROUND_MS;
      await scene.time.passUntil(sendAll(scene, numbers.slice(0, half), FIRST_HALF_MS));
      await scene.time.pass(BEFORE_ROTATION_MS);
      const rotating = round === 0 ? Promise.resolve(0) : rotateAll(scene, round);
      const sending = sendAll(scene, numbers.slice(half), SECOND_HALF_MS);
      const [rotated] = await scene.time.passUntil(Promise.all([rotating, sending]));
      rotations += rotated;
      if (AWAY_ROUNDS.includes(round)) await beAway(scene);
      await scene.time.pass(end - scene.clock.now());
    }
    await passTheRest(scene);
    await scene.time.passUntil(scene.receiving.stop());
    return { reading, messages, rotations, ...outcomeOf(scene) };
  } finally {
    await scene.time.passUntil(scene.receiving.dispose());
    await scene.service.emulator.close();
  }
}

async function createScene(reading: Reading, flaws: readonly Flaw[]): Promise<Scene> {
  const clock = createFakeClock(START);
  const service = await createService(reading, clock);
  const receiving = await Receiving.create({ clock: withCoarseTimers(clock), random: seededRandom(1), flaws });
  return { clock, time: timeOf(clock, service.emulator), service, receiving, flaws };
}

/** As an application is set up for the first time: our own secrets, known to the receiver first. */
async function configure({ service, receiving }: Scene): Promise<void> {
  const { secrets } = receiving;
  for (const kind of KINDS) {
    const secret = secretFor(kind, 0);
    await secrets.write(kind, { current: secret, previous: [], next: null, rotatedAt: null }, 0);
    await service.client.webhooks.update(kind, {
      endpointUrl: receiving.url,
      enabled: true,
      signingEnabled: true,
      secret,
    });
  }
  await receiving.start();
}

async function sendAll({ clock, service }: Scene, numbers: readonly number[], withinMs: number): Promise<void> {
  for (const number of numbers) {
    await service.send(number);
    await sleep(clock, withinMs / numbers.length);
  }
}

/** How many were rotated. */
async function rotateAll({ clock, service, receiving, flaws }: Scene, round: number): Promise<number> {
  const { secrets } = receiving;
  const { client } = service;
  for (const kind of KINDS) {
    if (flaws.includes("secret_after_the_service")) {
      await rotateCarelessly({ clock, client, kind, secrets, secret: secretFor(kind, round) });
    } else {
      await rotateSecret({ clock, client, kind, secrets, force: round > 1, logger: silentLogger });
    }
  }
  return KINDS.length;
}

/** The receiver is stopped, and starts again on the same inbox; messages are sent and retries come meanwhile. */
async function beAway({ time, receiving }: Scene): Promise<void> {
  await time.passUntil(receiving.stop());
  await time.pass(AWAY_MS);
  await time.passUntil(receiving.start());
}

async function passTheRest({ time, service }: Scene): Promise<void> {
  const { control } = service.emulator;
  while (control.deliveries({ state: "pending", limit: 1 }).length > 0) await time.pass(MINUTE_MS);
  await time.pass(GAP_WAIT_MS + MINUTE_MS);
}

function outcomeOf({ service, receiving }: Scene): Omit<Outcome, "reading" | "messages" | "rotations"> {
  const { control } = service.emulator;
  const events = control.events({ limit: 10_000 });
  const deliveries = control.deliveries({ limit: 10_000 });
  const attempts = deliveries.flatMap((delivery) => delivery.attempts);
  return {
    ...verdictOn({ events, deliveries }, receiving.handled()),
    events: events.length,
    inbound: events.filter(({ kind }) => kind === "inbound").length,
    attempts: attempts.length,
    failedAttempts: attempts.filter(({ status }) => status !== 200).length,
    signedOtherwise: receiving.counted("slot:service:previous") + receiving.counted("slot:service:next"),
  };
}

/** Every fourth number, so that each round has some of all kinds. */
function numbersOf(messages: number, round: number): number[] {
  return Array.from({ length: messages }, (_, number) => number).filter((number) => number % ROUNDS === round);
}

const secretFor = (kind: WebhookKind, round: number) => `secret ${round} of ${kind} webhooks, 32 bytes or more`;
