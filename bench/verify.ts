/** Verification in one thread: our function against a bare HMAC and against the libraries of other services. */
import { createHmac, timingSafeEqual } from "node:crypto";
import { parseEvent, signPayload, verifySignature } from "../src/index.ts";
import { median } from "../test/support/statistics.ts";
import { bodyOf, nextMessageId, SECRET } from "./deliveries.ts";
import { importPeer, peerPackages } from "./peer-packages.ts";
import { type Group, grouped, type Limit, type Row, ratioOf, row } from "./rows.ts";

const ROUNDS = 15;
/** Calls in one measurement, each with a body of its own. */
const BODIES = 1_000;
const REPEATS = 10;
const WARM_UP_ROUNDS = 10;

/** Signs `body` as its service would, and returns what the receiving side then has to do for each request; a promise is awaited. */
type Peer = (body: Buffer) => () => unknown;

interface Peers {
  readonly bare: Peer;
  readonly stripe: Peer;
  readonly standardwebhooks: Peer;
  readonly svix: Peer;
  readonly octokit: Peer;
}

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

/** The few functions of each library that are called here. */
interface Stripe {
  new (
    key: string,
  ): {
    readonly webhooks: {
      constructEvent(body: Buffer, header: string, secret: string): unknown;
      generateTestHeaderString(options: { payload: string; secret: string }): string;
    };
  };
}
interface StandardWebhook {
  new (
    secret: string,
  ): {
    sign(id: string, timestamp: Date, body: string): string;
    verify(body: Buffer, headers: Record<string, string>): unknown;
  };
}
/** Of `@octokit/webhooks-methods`, which verifies and leaves the parsing to its caller. */
type OctokitVerify = (secret: string, body: string, signature: string) => Promise<boolean>;

async function loadPeers(): Promise<Peers> {
  const require = peerPackages();
  const octokit = await importPeer("@octokit/webhooks-methods/dist-node/index.js");
  return {
    bare,
    stripe: stripePeer(require("stripe")),
    standardwebhooks: standardPeer(require("standardwebhooks").Webhook, "webhook"),
    svix: standardPeer(require("svix").Webhook, "svix"),
    octokit: octokitPeer(octokit.verify as OctokitVerify),
  };
}

/** The least that verifies this service's signature: no header is checked, and no age. */
const bare: Peer = (body) => {
  const timestamp = `${Date.now()}`;
  const signature = createHmac("sha256", SECRET).update(`${timestamp}.`).update(body).digest("hex");
  return () => {
    const expected = createHmac("sha256", SECRET).update(`${timestamp}.`).update(body).digest();
    return timingSafeEqual(expected, Buffer.from(signature, "hex"));
  };
};

function stripePeer(Stripe: Stripe): Peer {
  const { webhooks } = new Stripe("sk_test_none");
  return (body) => {
    const header = webhooks.generateTestHeaderString({ payload: body.toString(), secret: SECRET });
    return () => webhooks.constructEvent(body, header, SECRET);
  };
}

function standardPeer(Webhook: StandardWebhook, prefix: string): Peer {
  const webhook = new Webhook(`whsec_${Buffer.from(SECRET).toString("base64")}`);
  return (body) => {
    const now = new Date();
    const headers = {
      [`${prefix}-id`]: "msg_1",
      [`${prefix}-timestamp`]: `${Math.floor(now.getTime() / 1000)}`,
      [`${prefix}-signature`]: webhook.sign("msg_1", now, body.toString()),
    };
    return () => webhook.verify(body, headers);
  };
}

/** It takes text only; what arrives are bytes. */
function octokitPeer(verify: OctokitVerify): Peer {
  return (body) => {
    const signature = `sha256=${createHmac("sha256", SECRET).update(body).digest("hex")}`;
    return async () => {
      if (!(await verify(SECRET, body.toString(), signature))) throw new Error("octokit refused its own signature.");
    };
  };
}
