/** Which events `oncehook trigger` sends, in which order: made of the fixtures that tests use. */
import { type Random, systemClock } from "../../internal/clock.ts";
import { suggestion } from "../../internal/options.ts";
import { isRecord } from "../../internal/type-guards.ts";
import { type FixtureOptions, fixtures } from "../../testing/fixtures.ts";
import { duplicated, lifecycle, shuffled } from "../../testing/scenarios.ts";
import { CommandError, USAGE_MISTAKE } from "../failure.ts";

/** What is asked for. */
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
