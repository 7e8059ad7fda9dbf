/** Verification in one thread: our function against a bare HMAC and against the libraries of other services. */
import { parseEvent, signPayload, verifySignature } from "../src/index.ts";
import { median } from "../test/support/statistics.ts";
import { bodyOf, nextMessageId, SECRET } from "./deliveries.ts";
import { loadPeers, type Peer, type Peers } from "./peers.ts";
import { type Group, grouped, type Limit, type Row, ratioOf, row } from "./rows.ts";

const ROUNDS = 15;
/** Calls in one measurement, each with a body of its own. */
const BODIES = 1_000;
const REPEATS = 10;
const WARM_UP_ROUNDS = 10;

interface Comparison {
  readonly limit: Limit;
  readonly ours: Peer;
  readonly theirs: (peers: Peers) => Peer;
}

/** The headers that come with a delivery beside those of its signature. */
const USUAL_HEADERS = { host: "127.0.0.1", "content-type": "application/json", "user-agent": "service/1.0" };

const verifyOnly: Peer = (body) => {
  const headers = { ...USUAL_HEADERS, "content-length": `${body.length}`, ...signPayload({ body, secret: SECRET }) };
  return () => expectTrue(verifySignature({ headers, body, secrets: SECRET }).ok);
};

/** What the others' one call is compared with: verified, parsed, every field checked. */
const toEvent: Peer = (body) => {
  const verify = verifyOnly(body);
  return () => {
    verify();
    const parsed = parseEvent(body);
    expectTrue(parsed.ok);
    return parsed;
  };
};

const COMPARISONS: readonly Comparison[] = [
  {
    limit: { name: "verifySignature: time / bare HMAC and compare", target: 1.1, bound: "at most" },
    ours: verifyOnly,
    theirs: (peers) => peers.bare,
  },
  {
    limit: { name: "validated event: speed / stripe constructEvent", target: 1, bound: "at least" },
    ours: toEvent,
    theirs: (peers) => peers.stripe,
  },
  {
    limit: { name: "validated event: speed / standardwebhooks", target: 2, bound: "at least" },
    ours: toEvent,
    theirs: (peers) => peers.standardwebhooks,
  },
  {
    limit: { name: "validated event: speed / svix", target: 2, bound: "at least" },
    ours: toEvent,
    theirs: (peers) => peers.svix,
  },
  {
    limit: { name: "verifySignature: speed / octokit verify", target: 1, bound: "at least" },
    ours: verifyOnly,
    theirs: (peers) => peers.octokit,
  },
];

export const verifyGroup: Group = {
  names: COMPARISONS.map(({ limit }) => limit.name),
  async run(wanted) {
    const peers = await loadPeers();
    const rows: Row[] = [];
    for (const { limit, ours, theirs } of COMPARISONS) {
      if (wanted.has(limit.name)) rows.push(await compare(limit, ours, theirs(peers)));
    }
    return rows;
  },
};

async function compare(limit: Limit, ours: Peer, theirs: Peer): Promise<Row> {
  const bodies = Array.from({ length: BODIES }, () => bodyOf(nextMessageId()));
  const calls = { ours: bodies.map(ours), theirs: bodies.map(theirs) };
  const times: { ours: number[]; theirs: number[] } = { ours: [], theirs: [] };
  for (let round = -WARM_UP_ROUNDS; round < ROUNDS; round++) {
    for (const side of ["ours", "theirs"] as const) {
      const time = await timeOf(calls[side]);
      if (round >= 0) times[side].push(time);
    }
  }
  const slower = ratioOf(times.ours, times.theirs);
  const perSecond = (values: readonly number[]) => grouped(1e9 / median(values));
  const detail = `${perSecond(times.ours)} / ${perSecond(times.theirs)} a second`;
  return row(limit, limit.bound === "at most" ? slower : 1 / slower, detail);
}

/** Nanoseconds of processor time of one call, on average: other work on the machine takes the clock's time, but not this. */
async function timeOf(calls: readonly (() => unknown)[]): Promise<number> {
  const start = process.cpuUsage();
  for (let repeat = 0; repeat < REPEATS; repeat++) {
    for (const call of calls) {
      const result = call();
      if (result instanceof Promise) await result;
    }
  }
  const { user, system } = process.cpuUsage(start);
  return ((user + system) * 1000) / (calls.length * REPEATS);
}

function expectTrue(ok: boolean): void {
  if (!ok) throw new Error("A delivery of the benchmark was refused.");
}
