/** Whether two and four processes on one inbox add up: to twice and four times one, or to what as many do that share nothing. */
import { availableParallelism } from "node:os";
import { join } from "node:path";
import type { InboxStore } from "../src/inbox/store.ts";
import { startPostgres } from "../test/stores/postgres/server.ts";
import { median } from "../test/support/statistics.ts";
import { inDirectory } from "./http.ts";
import { processorOf } from "./processor.ts";
import { type Group, grouped, type Limit, type Row, ratioOf, row } from "./rows.ts";
import { BATCH, HANDLERS, type Inbox, type Inboxes, type Pace, pacesOf, WAIT_MS, WORKING_MS } from "./scale-pace.ts";
import { MESSAGES, openPostgres, openStore, turnOf } from "./store.ts";

/** Enough that no process is ever without work. */
const FILLED = ((1 + 2 + 4) * HANDLERS * WORKING_MS) / WAIT_MS;
const FILL_BATCH = 256;

/** How many processes a row has. */
type Count = 2 | 4;

type Rounds = readonly Pace[];

interface Scaling {
  /** One process, and two and four on the same inbox. */
  readonly together: Readonly<Record<1 | Count, Rounds>>;
  /** What two and four are held against: what they would do if sharing an inbox cost nothing. */
  readonly standard: Readonly<Record<Count, Rounds>>;
}

interface Compared {
  readonly limit: Limit;
  readonly count: Count;
  /** What the row calls its standard. */
  readonly standardName: string;
}

const linear = () => "linear";

/**
 * Handlers that wait leave the cores free, so that nothing but the inbox can keep processes from adding up, and an inbox that
 * wastes their time must not be excused by it: linear growth is asked for.
 */
export const scaleHandleGroups: readonly Group[] = [
  group(`SQLite, handlers that wait ${WAIT_MS} ms`, linear, () =>
    inDirectory(async (directory) => {
      const location = join(directory, "inbox.db");
      await fill(await openStore(location));
      return handle({ location, serverProcessor: () => 0 });
    }),
  ),
  group(`Postgres, handlers that wait ${WAIT_MS} ms`, linear, () =>
    onPostgres(async (inbox) => {
      await fill(await openPostgres(inbox.location));
      return handle(inbox);
    }),
  ),
];

/**
 * Nothing waits here but for the disk, so that the cores are soon full, and on full cores an event takes more of them, whether or
 * not its process shares an inbox. So what it would be without sharing is measured: as many processes with a server and an inbox
 * each, which grow linearly while there are cores for it. How much an event takes is for other rows: here it slows both.
 */
export const scaleAcceptGroup: Group = group(
  `Postgres, accept, ${BATCH} a batch`,
  (count) => `${count} with an inbox each`,
  () => onPostgres((inbox) => onServers(3, (others) => accept(inbox, others))),
);

function group(what: string, standardNameOf: (count: Count) => string, measure: () => Promise<Scaling>): Group {
  const compared = ([2, 4] as const).map((count): Compared => {
    const standardName = standardNameOf(count);
    const name = `${what}: ${count} processes / ${standardName}`;
    return { limit: { name, target: 0.8, bound: "at least" }, count, standardName };
  });
  return {
    names: compared.map(({ limit }) => limit.name),
    async run(wanted) {
      const scaling = await measure();
      return compared.filter(({ limit }) => wanted.has(limit.name)).map((one) => compare(one, scaling));
    },
  };
}

function compare({ limit, count, standardName }: Compared, scaling: Scaling): Row {
  const [together, standard] = [scaling.together[count], scaling.standard[count]];
  const each = (paces: Rounds, what: keyof Pace) => paces.map((pace) => pace[what]);
  const pace = (paces: Rounds) => grouped(median(each(paces, "perSecond")));
  const cost = (paces: Rounds) =>
    [each(paces, "workers"), each(paces, "servers")].map((seconds) => (median(seconds) * 1e6).toFixed(0)).join(" + ");
  const others = (paces: Rounds) => Math.max(0, median(each(paces, "others"))).toFixed(2);
  const detail = [
    `1, 2, 4 processes: ${Object.values(scaling.together).map(pace).join(", ")} events/s, ${standardName}: ${pace(standard)}`,
    `an event takes ${cost(together)} µs of worker + server, ${standardName}: ${cost(standard)}`,
    `${availableParallelism()} cores, ${others(together)} of them busy with others, ${standardName}: ${others(standard)}`,
  ].join("; ");
  return row(limit, ratioOf(each(together, "perSecond"), each(standard, "perSecond")), detail);
}

async function handle(inbox: Inbox): Promise<Scaling> {
  const { one, two, four } = await pacesOf("handle", {
    one: [inbox],
    two: [inbox, inbox],
    four: [inbox, inbox, inbox, inbox],
  });
  const times = (count: Count) => one.map((pace) => ({ ...pace, perSecond: count * pace.perSecond }));
  return { together: { 1: one, 2: two, 4: four }, standard: { 2: times(2), 4: times(4) } };
}

async function accept(inbox: Inbox, others: Inboxes): Promise<Scaling> {
  const apart = [inbox, ...others];
  const { one, two, twoApart, four, fourApart } = await pacesOf("accept", {
    one: [inbox],
    two: [inbox, inbox],
    twoApart: apart.slice(0, 2),
    four: [inbox, inbox, inbox, inbox],
    fourApart: apart,
  });
  return { together: { 1: one, 2: two, 4: four }, standard: { 2: twoApart, 4: fourApart } };
}

async function fill<Db>(store: InboxStore<Db>): Promise<void> {
  for (let filled = 0; filled < FILLED; filled += FILL_BATCH) {
    const accepts = Array.from({ length: FILL_BATCH }, () => MESSAGES.ordered.event(1));
    await store.step(turnOf<Db>({ accepts }, 0));
  }
  await store.close();
}

async function onServers<T>(count: number, use: (inboxes: Inboxes) => Promise<T>): Promise<T> {
  if (count === 0) return use([]);
  return onPostgres((inbox) => onServers(count - 1, (others) => use([inbox, ...others])));
}

async function onPostgres<T>(use: (inbox: Inbox) => Promise<T>): Promise<T> {
  const server = await startPostgres({ inMemory: false });
  try {
    return await use({ location: server.url, serverProcessor: () => processorOf(server) });
  } finally {
    await server.stop();
  }
}
