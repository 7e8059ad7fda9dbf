/** What is known of the server that is attacked: its time-outs, and how long each sort of attacker can hold a connection at most. */

/** `none`: a receiver behind its adapter; the others are the controls. */
export type Flaw = "none" | "slots first" | "no bounds";
export type Adapter = "node" | "express" | "fastify";

export interface ServerOptions {
  readonly adapter: Adapter;
  readonly path: string;
  readonly flaw: Flaw;
  /** `large`: the source is GitHub, with bodies of up to 25 MiB. */
  readonly bodies: "small" | "large";
}

/** A connection as the server sees it. */
export interface Connected {
  /** Of its other side; the kernel gives it out again later. */
  readonly port: number;
  /** Epoch milliseconds. */
  readonly since: number;
  readonly ms: number;
}

/** What a server's process says of its memory, MiB. */
export interface Memory {
  /** When it was told to note it, or started. */
  readonly idle: number;
  readonly peak: number;
}

/** The server's own, which the application sets; Node's defaults are 60 s, 30 s and 5 s, and Fastify's last one 72 s. */
export const TIMEOUTS = { headersTimeout: 3_000, connectionsCheckingInterval: 500, keepAliveTimeout: 5_000 } as const;

/** A body below a byte a millisecond is cut after 3 s, any after 10 s; it is looked every half second. */
const RATE_MS = 3_500;
const DEADLINE_MS = 10_500;
/** A connection that was refused and says nothing more. */
const REFUSED_IDLE_MS = 1_000;
/** A connection that was refused and goes on: so many chunks of it are read. */
const REFUSED_CHUNKS = 64;
/** Node adds it to the time for which a connection is kept. */
const KEEP_ALIVE_GRACE_MS = 1_000;
/** An answer that nobody takes, and requests until none is taken any more: some megabytes of answers, which the kernel keeps. */
const UNTAKEN_MS = 10_000;
const STUCK_WITHIN_MS = 25_000;

/** The path names the tenant. Only this one has secrets; to say that it does not know another takes the provider so long. */
export const TENANT = "known";
export const LOOK_UP_MS = 200;
/** A request that no secret fits waits for a look-up that began after it came, which decides; they are this far apart at least. */
const NEXT_LOOK_UP_MS = 2_000;
/** How long one attacker invents tenants, and how often. */
export const FLOOD_MS = 3_000;
export const INVENT_EVERY_MS = 500;

/** Between two bytes of who drips. */
export const DRIP_EVERY_MS = 50;

/** How long each sort holds a connection at most, ms. */
export const HELD_AT_MOST = {
  "slow headers": TIMEOUTS.headersTimeout + TIMEOUTS.connectionsCheckingInterval,
  "dripping body": RATE_MS + REFUSED_CHUNKS * DRIP_EVERY_MS,
  "stalled body": DEADLINE_MS + REFUSED_IDLE_MS,
  "stalled start": DEADLINE_MS + REFUSED_IDLE_MS,
  "body of crumbs": DEADLINE_MS + REFUSED_IDLE_MS,
  "steady body": DEADLINE_MS + REFUSED_IDLE_MS,
  "slow reader": NEXT_LOOK_UP_MS + TIMEOUTS.keepAliveTimeout + KEEP_ALIVE_GRACE_MS,
  "stuck reader": STUCK_WITHIN_MS + UNTAKEN_MS,
  "invented tenant": FLOOD_MS + NEXT_LOOK_UP_MS + LOOK_UP_MS + TIMEOUTS.keepAliveTimeout + KEEP_ALIVE_GRACE_MS,
} as const;

export type Sort = keyof typeof HELD_AT_MOST;

export const NOBODY: Readonly<Record<Sort, number>> = {
  "slow headers": 0,
  "dripping body": 0,
  "stalled body": 0,
  "stalled start": 0,
  "body of crumbs": 0,
  "steady body": 0,
  "slow reader": 0,
  "stuck reader": 0,
  "invented tenant": 0,
};
