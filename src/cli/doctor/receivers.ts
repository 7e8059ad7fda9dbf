/** Whether receivers work on the inbox, with one and the right keyring, and what they refuse. */
import type { InstanceRecord } from "../../inbox/store.ts";
import { type Clock, sleep } from "../../internal/clock.ts";
import type { Inbox } from "../../receiver/open-inbox.ts";
import { compileKeyring } from "../../signature/keyring.ts";
import { counted } from "../inbox/printable.ts";
import { type Finding, lasting, ok, problem, skipped, warning } from "./finding.ts";
import type { Opened } from "./store-open.ts";

/** A receiver says every 10 seconds that it lives; a rotation counts those that did so within this time. */
const ALIVE_MS = 90_000;
/** An event that is due is begun within milliseconds. */
const IDLE_MS = 60_000;
const WATCH_MS = 2_000;

const START = "Call receiver.start() once at start-up, or receiver.drain() from a cron; oncehook listen does.";
/** Of a process that lives nobody else can tell. */
const ASK =
  "Ask the receiver, by /readyz or receiver.health(): it has paused its worker, after failures or by pause(), or start() was never called.";

/** @param secret - the one that receivers should have; null when it is not known */
export async function receiverFindings(opened: Opened, clock: Clock, secret: string | null): Promise<Finding[]> {
  const { stats } = opened;
  const alive = stats.instances.filter(({ seenAt }) => seenAt > clock.now() - ALIVE_MS);
  return [
    ...runningFindings(opened, alive, clock.now()),
    ...(await workerFindings(opened, alive, clock)),
    ...keyringFindings(alive, secret, clock.now()),
    ...refusalFindings(alive),
  ];
}

function runningFindings({ stats }: Opened, alive: readonly InstanceRecord[], now: number): Finding[] {
  if (alive.length > 0) return [ok("receivers", `${counted(alive.length, "receiver")} reported within 90 seconds.`)];
  const seen = Math.max(...stats.instances.map(({ seenAt }) => seenAt));
  const ago = Number.isFinite(seen) ? `; the last one did ${lasting(now - seen)} ago` : "";
  const fix = "Start it. The service repeats for 81 minutes what gets no answer, and then never again.";
  return [problem("no_receiver", `No receiver has reported within 90 seconds${ago}.`, fix)];
}

/** Something has been due for a minute, and in two seconds nothing becomes of it. */
async function workerFindings(
  { store, inbox, stats }: Opened,
  alive: readonly InstanceRecord[],
  clock: Clock,
): Promise<Finding[]> {
  const { oldestPendingAt } = stats;
  if (oldestPendingAt === null || oldestPendingAt > clock.now() - IDLE_MS || (await store.nextDue()) !== 0)
    return [ok("worker", "Nothing that is due waits for a worker.")];
  await sleep(clock, WATCH_MS);
  const later = await store.stats();
  const moved = (["handled", "unhandled", "retried", "deadLettered"] as const).some(
    (name) => later.counters[name] !== stats.counters[name],
  );
  if (moved || (await store.nextDue()) !== 0) return [ok("worker", "Events that are due are being handled.")];
  if (alive.length > 0 && (await isBusy(inbox, clock)))
    return [ok("worker", "Events that are due wait for handlers that are busy.")];
  const fix = alive.length > 0 ? ASK : START;
  return [problem("worker_not_running", "Events are due, and no worker handles them.", fix)];
}

/** Whether a worker holds a message. A lease that has run out was left behind by one that is gone. */
async function isBusy(inbox: Inbox, clock: Clock): Promise<boolean> {
  const { items } = await inbox.findLanes({ statuses: ["leased"], limit: 1_000 });
  return items.some(({ readyAt }) => readyAt !== null && readyAt > clock.now());
}

function keyringFindings(alive: readonly InstanceRecord[], secret: string | null, now: number): Finding[] {
  const versions = new Set(alive.map(({ keyringVersion }) => keyringVersion));
  if (versions.size === 0) return [];
  if (versions.size > 1) {
    const fix = "Give all of them the same secrets, best by a secret store (docs/guides/rotation.md).";
    return [warning("keyrings_differ", `Receivers hold ${versions.size} different sets of secrets.`, fix)];
  }
  if (secret === null) return [];
  if (versionsOf(secret, now).some((version) => versions.has(version)))
    return [ok("keyring", "The receivers hold this secret, and no other.")];
  const fix = "Compare by hand, or send a message: oncehook doctor then sees what was refused.";
  return [skipped("keyring", "The receivers hold another secret than this one, or this one with others.", fix)];
}

/** As a receiver names its secrets that has this one for both kinds, said once or for each. */
function versionsOf(secret: string, now: number): string[] {
  try {
    const shapes = [secret, { inbound: secret, delivery: secret }];
    return shapes.map((shape) => compileKeyring(shape, now).version);
  } catch {
    // Too short, or blank: the check of the secret says so.
    return [];
  }
}

/** Refusals of one reason that are no noise of the internet, since the receiver was started. */
const MANY = 3;

const REFUSALS: readonly (readonly [reason: string, what: string, fix: string])[] = [
  [
    "signature_mismatch",
    "their signature is of another secret, or the body was changed on its way",
    "Compare the secret with the service's; oncehook verify explains a captured request.",
  ],
  ["out_of_scope", "their webhook kind, or API client, has no secret here", "Give each kind its secret."],
  ["already_parsed", "a body parser ran before the webhook route", "Mount the webhook before express.json()."],
  ["timestamp_in_future", "this machine's clock is behind", "Set the clock by NTP."],
  ["timestamp_too_old", "this machine's clock is ahead, or they came too late", "Set the clock by NTP."],
  ["too_large", "their body is larger than maxBodyBytes", "Raise maxBodyBytes."],
  ["encoding", "their body is compressed", "Let no proxy compress requests."],
];

function refusalFindings(alive: readonly InstanceRecord[]): Finding[] {
  const sum = (matches: (name: string) => boolean) =>
    alive
      .flatMap(({ counters }) => Object.entries(counters))
      .reduce((total, [name, count]) => total + (matches(name) ? count : 0), 0);
  const verified = sum((name) => name.startsWith("slot:"));
  return REFUSALS.flatMap(([reason, cause, fix]) => {
    const refused = sum((name) => name === `refused:${reason}`);
    // A forger's share is small beside what the service sends.
    if (refused < MANY || refused < verified / 10) return [];
    const what = `${counted(refused, "delivery", "deliveries")} refused since start-up: ${cause}.`;
    return [verified === 0 ? problem(reason, what, fix) : warning(reason, what, fix)];
  });
}
