/** Whether two and four processes on one inbox do twice and four times what one does. */
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import type { InboxStore } from "../src/inbox/store.ts";
import { type PostgresServer, startPostgres } from "../test/postgres/server.ts";
import { median } from "../test/support/statistics.ts";
import { startChild } from "./child.ts";
import { inDirectory } from "./http.ts";
import { processorOf, processorOfAll } from "./processor.ts";
import { type Group, grouped, type Limit, type Row, ratioOf, row } from "./rows.ts";
import { BATCH, HANDLERS, type Progress, WAIT_MS, type Work, type WorkerQuestion } from "./scale-work.ts";
import { MESSAGES, openPostgres, openStore, turnOf } from "./store.ts";

const PROCESSES = [1, 2, 4] as const;
const ROUNDS = 3;
const WARM_UP_MS = 700;
const MEASURED_MS = 2_500;
/** Enough that no process is ever without work: starting and stopping takes a second or two. */
const FILLED = (ROUNDS * 7 * HANDLERS * (WARM_UP_MS + MEASURED_MS + 2_500)) / WAIT_MS;
const FILL_BATCH = 256;

type Count = (typeof PROCESSES)[number];

interface Inbox {
  readonly location: string;
  /** Seconds of processor time that its server has used. */
  serverProcessor(): number;
}

/** What a number of processes did, a value for each round. */
interface Pace {
  readonly perSecond: number[];
  /** Seconds of processor time for an event, of the workers and of the server. */
  readonly workers: number[];
  readonly server: number[];
  /** Cores that were busy with something else, which a result has to be read with. */
  readonly others: number[];
}

/** What must not be less: as many times one process, or that as long as there are cores for it. */
type Measure = "linear" | "linear, or the cores";

type Scaling = Readonly<Record<Count, Pace>>;

/**
 * Handlers that wait leave the cores free, so that nothing but the inbox can keep processes from adding up, and an inbox that
 * wastes their time must not be excused by it.
 */
export const scaleHandleGroups: readonly Group[] = [
  group(`SQLite, handlers that wait ${WAIT_MS} ms`, "linear", (use) =>
    inDirectory(async (directory) => {
      const location = join(directory, "inbox.db");
      const store = await openStore(location);
      await fill(store);
      return use({ location, serverProcessor: () => 0 }, "handle");
    }),
  ),
  group(`Postgres, handlers that wait ${WAIT_MS} ms`, "linear", (use) =>
    onPostgres(async (inbox) => {
      await fill(await openPostgres(inbox.location));
      return use(inbox, "handle");
    }),
  ),
];

/** Nothing waits here but for the disk, so that the cores are the limit soon. */
export const scaleAcceptGroup: Group = group(`Postgres, accept, ${BATCH} a batch`, "linear, or the cores", (use) =>
  onPostgres((inbox) => use(inbox, "accept")),
);

type Prepare = (use: (inbox: Inbox, work: Work) => Promise<Scaling>) => Promise<Scaling>;

function group(what: string, measured: Measure, prepare: Prepare): Group {
  const limits = ([2, 4] as const).map((count) => ({ count, limit: limitOf(what, count, measured) }));
  return {
    names: limits.map(({ limit }) => limit.name),
    async run(wanted) {
      const scaling = await prepare(measure);
      return limits
        .filter(({ limit }) => wanted.has(limit.name))
        .map(({ count, limit }) => compare(limit, scaling, { count, measured }));
    },
  };
}

function limitOf(what: string, count: Count, measured: Measure): Limit {
  return { name: `${what}: ${count} processes / ${measured}`, target: 0.8, bound: "at least" };
}

async function onPostgres<T>(use: (inbox: Inbox) => Promise<T>): Promise<T> {
  const server: PostgresServer = await startPostgres({ inMemory: false });
  try {
    return await use({ location: server.url, serverProcessor: () => processorOf(server) });
  } finally {
    await server.stop();
  }
}

async function fill<Db>(store: InboxStore<Db>): Promise<void> {
  for (let filled = 0; filled < FILLED; filled += FILL_BATCH) {
    const accepts = Array.from({ length: FILL_BATCH }, () => MESSAGES.ordered.event(1));
    await store.step(turnOf<Db>({ accepts }, 0));
  }
  await store.close();
}

async function measure(inbox: Inbox, work: Work): Promise<Scaling> {
  const pace = (): Pace => ({ perSecond: [], workers: [], server: [], others: [] });
  const scaling: Scaling = { 1: pace(), 2: pace(), 4: pace() };
  for (let round = 0; round < ROUNDS; round++) {
    for (const count of PROCESSES) await measureOnce(inbox, { work, count, pace: scaling[count] });
  }
  return scaling;
}

async function measureOnce(
  inbox: Inbox,
  { work, count, pace }: { readonly work: Work; readonly count: Count; readonly pace: Pace },
): Promise<void> {
  const workers = Array.from({ length: count }, () => startChild("scale-worker", [work, inbox.location]));
  const askAll = (ask: WorkerQuestion) => Promise.all(workers.map((worker) => worker.ask<Progress>({ ask })));
  const look = async () => {
    const progress = await askAll("progress");
    const sum = (of: (one: Progress) => number) => progress.reduce((total, one) => total + of(one), 0);
    const ours = { done: sum(({ done }) => done), workers: sum(({ processor }) => processor) };
    return { ...ours, server: inbox.serverProcessor(), all: processorOfAll(), at: performance.now() };
  };
  try {
    await look();
    await wait(WARM_UP_MS);
    const before = await look();
    await wait(MEASURED_MS);
    const after = await look();
    const since = (what: keyof typeof before) => after[what] - before[what];
    if (since("done") === 0) throw new Error("The processes had nothing to do.");
    const seconds = since("at") / 1000;
    pace.perSecond.push(since("done") / seconds);
    pace.workers.push(since("workers") / since("done"));
    pace.server.push(since("server") / since("done"));
    pace.others.push((since("all") - since("workers") - since("server")) / seconds);
    await askAll("stop");
  } finally {
    await Promise.all(workers.map((worker) => worker.stop()));
  }
}

/** As many times what one process does; with the cores, no more than all of them can do when an event costs what it costs with one. */
function allowed({ perSecond, workers, server }: Pace, { count, measured }: Asked): readonly number[] {
  return perSecond.map((pace, round) => {
    const linear = count * pace;
    const spent = (workers[round] ?? Number.NaN) + (server[round] ?? Number.NaN);
    // Where the server's part is not known, linear is what is asked for.
    return measured === "linear" || Number.isNaN(spent) ? linear : Math.min(linear, availableParallelism() / spent);
  });
}

interface Asked {
  readonly count: Count;
  readonly measured: Measure;
}

function compare(limit: Limit, scaling: Scaling, asked: Asked): Row {
  const { count } = asked;
  const [one, many] = [scaling[1], scaling[count]];
  const most = allowed(one, asked);
  const paces = PROCESSES.map((processes) => grouped(median(scaling[processes].perSecond))).join(", ");
  const microseconds = ({ workers, server }: Pace) =>
    [workers, server].map((seconds) => (median(seconds) * 1e6).toFixed(0)).join(" + ");
  const others = Math.max(0, median(many.others)).toFixed(2);
  const used = `${availableParallelism()} cores, ${others} of them busy with others; an event takes ${microseconds(one)} µs of worker + server with 1 process, ${microseconds(many)} with ${count}`;
  const bound = median(most) < count * median(one.perSecond) ? "cores" : "linear growth";
  const detail = `1, 2, 4 processes: ${paces} events/s, limit ${grouped(median(most))} by ${bound}; ${used}`;
  return row(limit, ratioOf(many.perSecond, most), detail);
}
