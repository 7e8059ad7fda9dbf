/**
 * Random deliveries to two processes of one inbox, whose handlers differ. A model says what is answered and who handles what. It knows of no
 * restart and of no process that remembers what the inbox knows. A suite: on each store the same.
 */
import { createHmac } from "node:crypto";
import fc from "fast-check";
import { expect, it } from "vitest";
import {
  createReceiver,
  type HandlerContext,
  type InboxStore,
  type IncomingWebhook,
  type LaneKey,
} from "../../src/index.ts";
import { silentLogger } from "../../src/internal/logger.ts";
import { github, hmacSource, standardWebhooks, stripe } from "../../src/sources/index.ts";
import { incomingOf, signedRequest, TEST_SECRETS } from "../../src/tools/testing/index.ts";

/** An inbox of its own for one run. */
export interface Place {
  /** A store on it, for one process. */
  open(): InboxStore<never>;
  dispose(): Promise<unknown>;
}

const SECOND = 1_760_000_000;
const HIGHEST = 10;
const TYPES = ["a", "b", "c", "of no handler"] as const;
/** The first process has no `onLate`, and a handler of states. */
const PROCESSES = [
  { on: ["a", "b"], skip: ["c"], onLate: false },
  { on: ["b", "c"], skip: [], onLate: true },
] as const;
const PINGS_SECRET = "the secret of the pings";

const pings = hmacSource<{ readonly type: string }>({
  ...{ preset: "pings", header: "x-signature", signed: "{header:x-id}.{body}", lastRetryMs: 0 },
  ...{ identity: { header: "x-id" }, type: { body: "type" } },
});

const secretOf = (tenant: string) => `whsec_${Buffer.from(tenant.padEnd(32, "_")).toString("base64")}`;

const SOURCES = {
  billing: stripe({ secrets: TEST_SECRETS.stripe }),
  orders: standardWebhooks({
    secrets: ({ tenant = "" }) => ({ secret: secretOf(tenant), tenant }),
    lane: ({ data }) => `${data}`,
  }),
  code: github({ secrets: TEST_SECRETS.github, lane: ({ owner, object }) => JSON.stringify([owner, object]) }),
  pings: pings({ secrets: PINGS_SECRET }),
};
const ENTRIES = ["billing", "orders", "code", "pings"] as const satisfies readonly (keyof typeof SOURCES)[];
/** Where nothing is late. */
const UNORDERED = ["orders", "code", "pings"] as const;

const process = fc.nat({ max: 1 });
/** Mostly the first, so that most deliveries are equal in all parts but one or two. */
const mostly = <T>(first: T, ...others: readonly T[]) =>
  fc.oneof({ weight: 3, arbitrary: fc.constant(first) }, { weight: 2, arbitrary: fc.constantFrom(first, ...others) });
const deliveryOf = (entry: (typeof ENTRIES)[number]) =>
  fc.record({
    ...{ entry: fc.constant(entry), type: fc.constantFrom(...TYPES), owner: mostly("acct_1", "acct_2") },
    ...{ object: mostly(0, 1), id: fc.nat({ max: 2 }), position: fc.nat({ max: 2 }), note: mostly(0, 1) },
  });
const stepOf = (entries: readonly (typeof ENTRIES)[number][]) =>
  fc.record({
    /** Which processes restart before it. */
    restarts: fc.uniqueArray(process, { maxLength: 2 }),
    /** Which process gets the deliveries. They come at once. */
    at: process,
    deliveries: fc.array(fc.oneof(...entries.map(deliveryOf)), { minLength: 1, maxLength: 3 }),
    /** Which processes then handle the due events, one after the other. */
    drains: fc.uniqueArray(process, { maxLength: 2 }),
  });
/** Most can go wrong in an order by position. */
const course = fc
  .uniqueArray(fc.constantFrom("billing", ...ENTRIES), { minLength: 1, maxLength: 2 })
  .chain((entries) => fc.array(stepOf(entries), { minLength: 1, maxLength: 12 }));

type Delivery = ReturnType<typeof deliveryOf> extends fc.Arbitrary<infer T> ? T : never;
type Step = ReturnType<typeof stepOf> extends fc.Arbitrary<infer T> ? T : never;

interface Written extends Pick<Delivery, "entry" | "type"> {
  readonly incoming: IncomingWebhook;
  readonly identity: string;
  readonly lane: string;
  /** 0 in the order of arrival. */
  readonly position: number;
  /** All that a handler can know it by. */
  readonly label: string;
}

/** A delivery as its provider sends it. An id that comes back with another object, so in another lane, is a repeat. */
function write(delivery: Delivery): Written {
  const { entry, type, owner, object, position } = delivery;
  const { identity, content, name = "", tenant, headers } = FORMS[entry](delivery);
  const body = Buffer.from(JSON.stringify(content));
  const incoming = incomingOf({ method: "POST", headers: headers(body), body });
  const lane = entry === "pings" ? identity : `${owner} ${object}`;
  return {
    ...{ entry, type, incoming: tenant === undefined ? incoming : { ...incoming, tenant } },
    ...{ identity: `${entry} ${identity}`, lane: `${entry} ${lane}`, position: entry === "billing" ? position : 0 },
    label: [tenant === undefined ? entry : `${entry}:${tenant}`, type, name, body].join(" "),
  };
}

interface Form {
  readonly identity: string;
  readonly content: object;
  /** The id in a header. */
  readonly name?: string;
  readonly tenant?: string;
  headers(body: Uint8Array): Record<string, string>;
}

const FORMS: Readonly<Record<Delivery["entry"], (delivery: Delivery) => Form>> = {
  billing({ type, owner, object, id, position, note }) {
    const identity = `evt_${owner}_${id}`;
    const event = { id: identity, type, created: SECOND + position, account: owner };
    const content = { ...event, data: { object: { id: `${object}`, note } } };
    return { identity, content, headers: (body) => signedRequest(body, { source: "stripe" }).headers };
  },
  orders({ type, owner, object, id, note }) {
    const name = `msg_${id}`;
    const signing = { source: "standard-webhooks", id: name, secret: secretOf(owner) } as const;
    const headers = (body: Uint8Array) => signedRequest(body, signing).headers;
    return { identity: `${owner} ${name}`, content: { type, data: object, note }, name, tenant: owner, headers };
  },
  code({ type, owner, object, id, note }) {
    const content = { owner, object, note };
    const headers = (body: Uint8Array) => signedRequest(body, { source: "github", type, id: `${id}` }).headers;
    return { identity: JSON.stringify(content), content, name: `${id}`, headers };
  },
  pings({ type, id, note }) {
    const sign = (body: Uint8Array) => createHmac("sha256", PINGS_SECRET).update(`${id}.`).update(body).digest("hex");
    const headers = (body: Uint8Array) => ({ "x-id": `${id}`, "x-signature": sign(body) });
    return { identity: `${id}`, content: { type, note }, name: `${id}`, headers };
  },
};

/** What became of an event. */
interface Row {
  readonly label: string;
  outcome: "handled" | "unhandled" | null;
  duplicates: number;
}

interface Lane {
  pending: Written[];
  cursor: number;
  readonly seen: string[];
}

/** The rules of an inbox, by which process handles what. */
class Model {
  readonly rows = new Map<string, Row>();
  readonly lanes = new Map<string, Lane>();

  accept(written: Written): string {
    const known = this.rows.get(written.identity);
    if (known !== undefined) {
      known.duplicates += 1;
      return '200 {"outcome":"duplicate"}';
    }
    this.rows.set(written.identity, { label: written.label, outcome: null, duplicates: 0 });
    const lane = this.lanes.get(written.lane) ?? { pending: [], cursor: 0, seen: [] };
    lane.pending.push(written);
    this.lanes.set(written.lane, lane);
    return written.position < lane.cursor ? '200 {"outcome":"late"}' : '200 {"outcome":"accepted"}';
  }

  drain(process: number): void {
    for (const lane of this.lanes.values()) while (lane.pending.length > 0) this.#end(lane, process);
  }

  /** The lowest position first, and what is late last. What no handler of the process takes ends, and makes nothing late. */
  #end(lane: Lane, process: number): void {
    const isLate = ({ position }: Written) => position < lane.cursor;
    const rank = (written: Written) => (isLate(written) ? HIGHEST : 0) + written.position;
    const head = lane.pending.reduce((least, other) => (rank(other) < rank(least) ? other : least));
    lane.pending = lane.pending.filter((other) => other !== head);
    const late = isLate(head);
    const { on, skip, onLate } = PROCESSES[process] ?? PROCESSES[0];
    const taken: readonly string[] = late ? on : [...on, ...skip];
    const isTaken = (late && onLate) || taken.includes(head.type);
    const row = this.rows.get(head.identity);
    if (row !== undefined) row.outcome = isTaken ? "handled" : "unhandled";
    if (!isTaken) return;
    lane.cursor = Math.max(lane.cursor, head.position);
    lane.seen.push(seenText(process, late && onLate ? "onLate" : "on", late, head.label));
  }
}

function seenText(process: number, how: "on" | "onLate", late: boolean, label: string): string {
  return `${process} ${how}${late ? " late" : ""}: ${label}`;
}

type Owner = Pick<LaneKey, "source" | "tenant">;

/** What a handler, or a list of events, shows of one. */
function labelOf(
  { source, tenant }: Owner,
  type: string,
  header: (name: string) => string | undefined,
  body: Uint8Array,
): string {
  const name = [":proven", "x-github-delivery", "x-id"].map((one) => header(one) ?? "").join("");
  const client = tenant === null ? source : `${source}:${tenant}`;
  return [client, type, name, Buffer.from(body)].join(" ");
}

function receiverOf(store: InboxStore<never>, process: number, seen: string[]) {
  const receiver = createReceiver({ store, sources: SOURCES, ack: "stored", logger: silentLogger });
  const { on, skip, onLate } = PROCESSES[process] ?? PROCESSES[0];
  const see = (how: "on" | "onLate") => (_event: object, ctx: HandlerContext<never>) => {
    const label = labelOf(ctx.meta, ctx.meta.eventType, (name) => ctx.header(name), ctx.rawBody);
    seen.push(seenText(process, how, ctx.late, label));
  };
  for (const entry of ENTRIES) receiver.source(entry).on(on, see("on"));
  if (skip.length > 0) receiver.source("billing").on(skip, see("on"), { late: "skip" });
  if (skip.length > 0) for (const entry of UNORDERED) receiver.source(entry).on(skip, see("on"));
  if (onLate) receiver.source("billing").onLate(see("onLate"));
  return receiver;
}

interface Result {
  readonly answers: readonly string[];
  /** What handlers saw, one lane after the other. */
  readonly seen: readonly string[];
  readonly rows: readonly Row[];
}

/** After all of them the second process handles the rest. */
function expected(steps: readonly Step[]): Result {
  const model = new Model();
  const answers = steps.flatMap(({ deliveries, drains }) => {
    const answered = deliveries.map((one) => model.accept(write(one)));
    for (const process of drains) model.drain(process);
    return answered;
  });
  model.drain(1);
  return { answers, seen: [...model.lanes.values()].flatMap(({ seen }) => seen), rows: [...model.rows.values()] };
}

async function actual({ open }: Place, steps: readonly Step[], restarts: boolean): Promise<Result> {
  const seen: string[] = [];
  const answers: string[] = [];
  const receivers = PROCESSES.map((_, process) => receiverOf(open(), process, seen));
  for (const step of steps) {
    for (const process of restarts ? step.restarts : []) {
      await receivers[process]!.stop();
      receivers[process] = receiverOf(open(), process, seen);
    }
    const at = receivers[step.at]!;
    const sending = step.deliveries.map(write).map(({ entry, incoming }) => at.source(entry).handle(incoming));
    for (const { status, body } of await Promise.all(sending)) answers.push(`${status} ${body}`);
    for (const process of step.drains) await receivers[process]!.drain();
  }
  await receivers[1]!.drain();
  const { items } = await receivers[1]!.inbox.find({ order: "oldest" });
  const bodies = await receivers[1]!.inbox.bodies(items.map(({ id }) => id));
  const rows = items.map(({ id, lane, eventType, outcome, duplicates }) => {
    const { head = null, raw = Buffer.from("") } = bodies.get(id) ?? {};
    const kept: Readonly<Record<string, string>> = JSON.parse(head ?? "{}");
    const label = labelOf(lane, eventType, (name) => kept[name], raw);
    return { label, outcome: outcome as Row["outcome"], duplicates };
  });
  for (const receiver of receivers) await receiver.stop();
  return { answers, seen, rows };
}

/** Lanes are handled side by side, so only the order within each is compared. */
function byLane({ answers, seen, rows }: Result, steps: readonly Step[]): Result {
  const lanes = new Map(steps.flatMap(({ deliveries }) => deliveries.map(write)).map((one) => [one.label, one.lane]));
  const laneOf = (label: string) => lanes.get(label) ?? "";
  const compare = (one: string, other: string) => laneOf(one).localeCompare(laneOf(other));
  const labelIn = (text: string) => text.slice(text.indexOf(": ") + 2);
  return {
    answers,
    seen: seen.toSorted((one, other) => compare(labelIn(one), labelIn(other))),
    rows: rows.toSorted((one, other) => compare(one.label, other.label)),
  };
}

/** @param runs - of how many random courses; each is run without restarts, and with them */
export function restartProperty(makePlace: () => Promise<Place>, runs: number): void {
  it("answers and handles the same with and without a restart before any delivery", { timeout: 600_000 }, async () => {
    const holds = fc.asyncProperty(course, async (steps) => {
      for (const restarts of [false, true]) {
        const place = await makePlace();
        try {
          expect(byLane(await actual(place, steps, restarts), steps)).toEqual(byLane(expected(steps), steps));
        } finally {
          await place.dispose();
        }
      }
    });
    await fc.assert(holds, { numRuns: runs });
  });
}
