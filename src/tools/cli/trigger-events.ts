/** The events of `oncehook trigger`, in their order, and one delivery of each over HTTP. */
import { type Clock, type Random, sleep, systemClock } from "../../internal/clock.ts";
import { BAD_PORT, isBadPort } from "../../internal/network.ts";
import { isRecord, suggestion } from "../../internal/options.ts";
import { signedRequest } from "../testing/deliver.ts";
import { type FixtureOptions, fixtures } from "../testing/fixtures.ts";
import { duplicated, lifecycle, shuffled } from "../testing/scenarios.ts";
import { CommandError, FAILURE, isSystemError, USAGE_MISTAKE } from "./exit.ts";

// Which events `oncehook trigger` sends, in which order: made of the fixtures that tests use.

/** The events to make. */
export interface Wish {
  /** `queued`, `message.queued`, `lifecycle`, or a type that the specification does not list. */
  readonly type: string;
  /** Id of the message; of several, what their ids begin with. */
  readonly message: string;
  readonly sequence?: number | undefined;
  /** `data.body=Hello` each. */
  readonly set?: readonly string[] | undefined;
  readonly count: number;
  /** Of a lifecycle. */
  readonly order?: readonly string[] | undefined;
  readonly shuffle: boolean;
  readonly duplicate: boolean;
}

const SHORT_NAMES = ["queued", "sent", "delivery", "failed", "inbound"] as const;
type ShortName = (typeof SHORT_NAMES)[number];

/** @throws CommandError for what does not go together, or is none of these */
export function plan(wish: Wish, random: Random): readonly object[] {
  const changes = (wish.set ?? []).map(changeOf);
  const ids = Array.from({ length: wish.count }, (_, at) =>
    wish.count === 1 ? wish.message : `${wish.message}-${at + 1}`,
  );
  const events = ids.flatMap((messageId) => eventsOf(wish, { messageId, occurredAt: systemClock.now() }));
  for (const event of events) for (const { path, value } of changes) setAt(event, path, value);
  const ordered = wish.shuffle ? shuffled(events, random) : events;
  return wish.duplicate ? duplicated(ordered, random) : ordered;
}

function eventsOf(wish: Wish, options: FixtureOptions): object[] {
  const { type, sequence, order } = wish;
  if (type === "lifecycle") return lifecycleOf(wish, options);
  if (order !== undefined) throw mistake("--order goes with lifecycle.");
  const name = type.replace(/^message\./, "");
  const own = sequence === undefined ? {} : { sequence };
  if (isShortName(name)) {
    if (name !== "inbound") return [fixtures[name]({ ...options, ...own })];
    if (sequence !== undefined) throw mistake("message.inbound has no sequence.");
    return [fixtures.inbound(options)];
  }
  if (!/^[\w-]+(?:\.[\w-]+)+$/.test(type)) {
    throw mistake(`There is no event "${name}". ${suggestion(name, [...SHORT_NAMES, "lifecycle"])}`);
  }
  // Of a type that this version does not know, the message is all that its lane needs (RCV-11).
  return [fixtures.unknown({ ...options, ...own, eventType: type })];
}

/** The sequences are those of the usual path, whatever the order in which the events are sent. */
function lifecycleOf({ sequence, order }: Wish, options: FixtureOptions): object[] {
  if (sequence !== undefined) throw mistake("--sequence goes with a single event; a lifecycle has its own.");
  if (order === undefined) return lifecycle(options);
  const names = order.map((name) => name.replace(/^message\./, ""));
  const ending = names.includes("failed") ? "failed" : "delivery";
  const events = lifecycle({ ...options, ending });
  return names.map((name) => {
    const event = events.find(({ eventType }) => eventType === `message.${name}`);
    if (event !== undefined) return structuredClone(event);
    throw mistake(`--order takes queued, sent, and delivery or failed, separated by commas; not "${name}".`);
  });
}

function isShortName(name: string): name is ShortName {
  return (SHORT_NAMES as readonly string[]).includes(name);
}

interface FieldChange {
  readonly path: readonly string[];
  readonly value: unknown;
}

/** `sequence=7` and `data.error=null` are JSON; what is none is a text. */
function changeOf(text: string): FieldChange {
  const [, path = "", value = ""] = /^([^=]*)=(.*)$/s.exec(text) ?? [];
  const names = path.split(".");
  if (names.includes("") || names.includes("__proto__"))
    throw mistake('--set takes PATH=VALUE, such as "data.body=Hello".');
  try {
    return { path: names, value: JSON.parse(value) };
  } catch {
    return { path: names, value };
  }
}

function setAt(event: object, path: readonly string[], value: unknown): void {
  const [name = "", ...rest] = path;
  if (rest.length === 0) {
    Object.defineProperty(event, name, { value, enumerable: true, configurable: true, writable: true });
    return;
  }
  const inner = Object.getOwnPropertyDescriptor(event, name)?.value;
  const next = isRecord(inner) ? inner : {};
  if (next !== inner) setAt(event, [name], next);
  setAt(next, rest, value);
}

function mistake(message: string): CommandError {
  return new CommandError(message, USAGE_MISTAKE);
}

// One delivery as the service makes it, over HTTP, and what became of it.

export interface Delivered {
  readonly eventType: string;
  readonly messageId: string | null;
  readonly sequence: number | null;
  /** HTTP status. */
  readonly status: number;
  readonly durationMs: number;
  /** `accepted`, `duplicate`, …, or `unauthorized`: the one word of a receiver's answer; null where there is none. */
  readonly outcome: string | null;
}

/** Where to, and signed with what. */
export interface Target {
  readonly url: string;
  readonly secret: string;
}

/** As long as the service waits. */
const TIMEOUT_MS = 10_000;
/** Of an answer nothing more is read. */
const MOST_BYTES = 16_384;

/** @throws CommandError when no answer comes */
export async function deliverTo(
  { url, secret }: Target,
  event: object,
  clock: Clock = systemClock,
): Promise<Delivered> {
  const startedAt = clock.monotonic();
  const ending = new AbortController();
  const waited = new AbortController();
  void sleep(clock, TIMEOUT_MS, waited.signal).then(() => ending.abort());
  try {
    const request = signedRequest(event, { secret });
    const response = await fetch(url, { ...request, redirect: "manual", signal: ending.signal });
    const outcome = outcomeOf(await beginningOf(response));
    const durationMs = Math.round(clock.monotonic() - startedAt);
    return { ...namesOf(event), status: response.status, durationMs, outcome };
  } catch (error) {
    throw unanswered(error, ending.signal.aborted);
  } finally {
    waited.abort();
  }
}

async function beginningOf(response: Response): Promise<string> {
  const parts: Uint8Array[] = [];
  let size = 0;
  for await (const part of response.body ?? []) {
    parts.push(part);
    size += part.length;
    if (size > MOST_BYTES) break;
  }
  return Buffer.concat(parts).toString("utf8", 0, MOST_BYTES);
}

/** A receiver of oncehook answers with one word. Other texts are not shown. */
function outcomeOf(text: string): string | null {
  try {
    const answer: unknown = JSON.parse(text);
    const word = isRecord(answer) ? (answer.outcome ?? answer.error) : undefined;
    return typeof word === "string" && /^[a-z_]{1,40}$/.test(word) ? word : null;
  } catch {
    return null;
  }
}

function namesOf(event: object): Pick<Delivered, "eventType" | "messageId" | "sequence"> {
  const { eventType, messageId, sequence, data }: { [name: string]: unknown } = { ...event };
  const id = messageId ?? (isRecord(data) ? data.messageId : undefined);
  return {
    eventType: String(eventType),
    messageId: typeof id === "string" ? id : null,
    sequence: typeof sequence === "number" ? sequence : null,
  };
}

function unanswered(error: unknown, isLate: boolean): CommandError {
  if (isLate) return new CommandError(`No answer came within ${TIMEOUT_MS / 1000} s.`, FAILURE, { cause: error });
  const cause = error instanceof Error ? error.cause : undefined;
  const code = isSystemError(cause) ? cause.code : undefined;
  const otherwise = isBadPort(error) ? BAD_PORT : "the connection failed";
  const why = code === "ECONNREFUSED" ? "nothing listens there; is the receiver running?" : (code ?? otherwise);
  return new CommandError(`No answer came: ${why}`.replace(/(?<![.?])$/, "."), FAILURE, { cause: error });
}
