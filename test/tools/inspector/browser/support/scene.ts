/** An inbox in which everything has happened that the inspector shows, made by a real receiver on a clock that is moved. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createReceiver, type Receiver } from "../../../../../src/index.ts";
import { silentLogger } from "../../../../../src/internal/logger.ts";
import { KNOWN_EVENT_TYPES } from "../../../../../src/sources/messaging/parse.ts";
import { type SqliteDatabase, sqliteStore } from "../../../../../src/stores/sqlite.ts";
import {
  createFakeClock,
  type FakeClock,
  incomingOf,
  seededRandom,
  signedRequest,
  TEST_SECRET,
} from "../../../../../src/tools/testing/index.ts";
import { type Arrival, BLOCKING, MESSAGES, STORY, STORY_MINUTES, storyHandler } from "./stories.ts";

const MINUTE_MS = 60_000;
const PREVIOUS_SECRET = "whsec_before_rotation_0123456789";
/** Between two looks at what has come due, when nothing arrives. */
const STEP_MINUTES = 1;

export type SceneReceiver = Receiver<SqliteDatabase>;

/** A folder for `use`, gone after it. */
export async function newFolder(): Promise<{ path: string; remove(): Promise<void> }> {
  const path = await mkdtemp(join(tmpdir(), "oncehook-inspector-"));
  return { path, remove: () => rm(path, { recursive: true, force: true }) };
}

/** Fills the inbox at `path` with the story of the last hour. */
export async function fillWithStories(path: string): Promise<void> {
  const clock = createFakeClock(Date.now() - STORY_MINUTES * MINUTE_MS);
  const startedAt = clock.now();
  const blocking = storyReceiver(path, clock, "block");
  await play(blocking, clock, { arrivals: BLOCKING, startedAt, untilMinute: 2 });
  await blocking.stop();
  const receiver = storyReceiver(path, clock, "continue");
  await play(receiver, clock, { arrivals: STORY, startedAt, untilMinute: STORY_MINUTES });
  await discardOne(receiver);
  await receiver.stop();
}

/** The receiver of the present: its handlers do as they did in the story. */
export function liveReceiver(path: string, secret: string = TEST_SECRET): SceneReceiver {
  return withHandlers(
    createReceiver({
      secrets: { current: secret, previous: { secret: PREVIOUS_SECRET, validUntil: Date.now() + 86_400_000 } },
      store: sqliteStore(path),
      logger: silentLogger,
    }),
    async () => {},
  );
}

/** Deliveries that a live receiver refuses, and some that only the previous secret vouches for: for its gauges. */
export async function refuseSome(receiver: SceneReceiver): Promise<void> {
  const hourAgo = Date.now() - 2 * 3_600_000;
  const signings = [
    { secret: "whsec_of_somebody_else_012345678" },
    { timestamp: hourAgo },
    { secret: PREVIOUS_SECRET },
  ];
  for (const [index, signing] of signings.entries()) {
    for (let repeat = 0; repeat <= index; repeat++)
      await receiver.handle(incomingOf(signedRequest({ eventType: "message.read", n: `${index}.${repeat}` }, signing)));
  }
}

function storyReceiver(path: string, clock: FakeClock, onDead: "block" | "continue"): SceneReceiver {
  const random = seededRandom(7);
  const receiver = createReceiver({
    secrets: TEST_SECRET,
    store: sqliteStore(path),
    onDead,
    clock,
    random,
    maxAttempts: 4,
    concurrency: 1,
    logger: silentLogger,
  });
  // A handler's work takes its time on the story's clock.
  return withHandlers(receiver, () => clock.advance(15 + Math.floor(random() * 400)));
}

function withHandlers(receiver: SceneReceiver, work: () => Promise<void>): SceneReceiver {
  return receiver.on(KNOWN_EVENT_TYPES, storyHandler(work));
}

interface Played {
  readonly arrivals: readonly Arrival[];
  readonly startedAt: number;
  readonly untilMinute: number;
}

async function play(receiver: SceneReceiver, clock: FakeClock, { arrivals, startedAt, untilMinute }: Played) {
  const moveTo = async (minute: number) => {
    const ms = startedAt + minute * MINUTE_MS - clock.now();
    if (ms > 0) await clock.advance(ms);
    await receiver.drain();
  };
  const steps = Array.from({ length: untilMinute / STEP_MINUTES }, (_, index) => ({
    atMinute: (index + 1) * STEP_MINUTES,
  }));
  const agenda: readonly (Arrival | { readonly atMinute: number })[] = [...arrivals, ...steps];
  for (const item of agenda.toSorted((a, b) => a.atMinute - b.atMinute)) {
    await moveTo(item.atMinute);
    if (!("content" in item)) continue;
    const request = signedRequest(dated(item.content, startedAt), { timestamp: clock.now() });
    if (item.trace !== undefined) request.headers.traceparent = item.trace;
    await receiver.handle(incomingOf(request));
    await receiver.drain();
  }
}

/** The story counts its times from its beginning. */
function dated(content: object | string, startedAt: number): object | string {
  if (typeof content === "string" || !("occurredAt" in content)) return content;
  return { ...content, occurredAt: startedAt + Number(content.occurredAt) };
}

async function discardOne({ inbox }: SceneReceiver): Promise<void> {
  const { items } = await inbox.find({ lane: MESSAGES.discarded, states: ["dead"] });
  for (const { id } of items) await inbox.discard(id, { by: "sam" });
}
