/** The inbox: where it lies, whether it opens, who works on it, and what waits in it. */
import { statfsSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { openInbox } from "../../../create.ts";
import { OncehookError } from "../../../errors.ts";
import type { InboxStats, InstanceRecord } from "../../../inbox/record.ts";
import type { InboxStore } from "../../../inbox/store.ts";
import { type Clock, sleep, systemClock } from "../../../internal/clock.ts";
import { lasting } from "../../../internal/lasting.ts";
import { silentLogger } from "../../../internal/logger.ts";
import type { Inbox } from "../../../receiver/open-inbox.ts";
import { compileKeys } from "../../../sources/keys.ts";
import { STRICT_RULES } from "../../../sources/secret.ts";
import { type Kept, lookForPooler } from "../../../stores/postgres/open.ts";
import { loadPool, PgStatements, withSession } from "../../../stores/postgres/session.ts";
import { cautionsAbout, type FileSystemType } from "../../../stores/sqlite/connection.ts";
import { counted } from "../terminal.ts";
import { clockFinding, type Finding, ok, problem, sentence, skipped, warning } from "./finding.ts";

// The file of a SQLite inbox, looked at without opening it: where it lies, who may read it, and the room next to it.

const MIB = 1024 * 1024;
/** The default of `minFreeBytes`: with less, nothing is accepted. */
const LEAST_FREE = 64 * MIB;
const LITTLE_FREE = 1024 * MIB;

/** Calls of the operating system; tests replace them. */
export interface Disk {
  readonly freeBytes: (folder: string) => number;
  readonly typeOf?: FileSystemType;
}

const thisDisk: Disk = {
  freeBytes(folder) {
    const { bavail, bsize } = statfsSync(folder);
    return bavail * bsize;
  },
};

/** Nothing where there is no file: opening it tells that better. */
export function fileFindings(file: string, disk: Disk = thisDisk): Finding[] {
  if (statSync(file, { throwIfNoEntry: false }) === undefined) return [];
  const cautions = cautionsAbout(file, disk.typeOf).map(({ code, message }) => {
    const at = message.lastIndexOf(": ");
    return warning(code, `${message.slice(0, at)}.`, sentence(message.slice(at + 2)));
  });
  return [...cautions, roomFinding(dirname(file), disk)];
}

function roomFinding(folder: string, { freeBytes }: Disk): Finding {
  const free = freeBytes(folder);
  const what = `${Math.floor(free / MIB).toLocaleString("en-US")} MiB are free in ${folder}`;
  const fix = "Free some, or prune: oncehook inbox prune.";
  if (free < LEAST_FREE) return problem("disk_full", `${what}; below 64 MiB every delivery gets 503.`, fix);
  if (free < LITTLE_FREE) return warning("disk_low", `${what}; below 64 MiB every delivery gets 503.`, fix);
  return ok("disk", `${what}.`);
}

// Opens the inbox as an operator does, and says why that cannot be done.

/** An open inbox, with what it holds at this moment. */
interface Opened {
  readonly store: InboxStore<never>;
  readonly inbox: Inbox;
  readonly stats: InboxStats;
}

const FIXES: Readonly<Record<string, string>> = {
  no_inbox: "Check --store and --schema; if they are right, start the receiver: it makes the inbox.",
  migration_needed: 'Run "oncehook inbox migrate" on it, or start a receiver of this version.',
  inbox_too_new: "Upgrade oncehook to the version of the receivers.",
  copy_unfinished: 'Run the same "oncehook inbox copy" again.',
  inbox_moved: "Point the receivers, and --store, at the inbox that is named.",
  missing_peer: "Install it next to oncehook.",
  incompatible_peer: "Install the version that is named, or upgrade the server.",
  not_durable: "Correct the named setting: until then an answer of 200 promises nothing.",
  unsafe_location:
    "Do what is said there. The file belongs in a directory of its own on a local disk, to the user that runs the receiver. Run this command as that user.",
  store_unavailable: "Check that it is there, that this user may read and write it, and that nobody locks it.",
};

/** The inbox, or what is wrong with it. */
export async function openStore(store: InboxStore<never>): Promise<Opened | Finding> {
  try {
    const inbox = await openInbox({ store, migrate: "check", logger: silentLogger });
    return { store, inbox, stats: await inbox.stats() };
  } catch (error) {
    // Closing what could not be opened is harmless.
    await store.close();
    if (error instanceof OncehookError) return refusedBy(error);
    throw error;
  }
}

export function isOpened(answer: Opened | Finding): answer is Opened {
  return "inbox" in answer;
}

/** What an open one shows: a store refuses to open an inbox whose settings do not read back. */
export function openFindings({ inbox }: Opened): Finding[] {
  const { location, rules } = inbox;
  const settings = location.startsWith("sqlite:")
    ? "synchronous reads FULL and journal_mode WAL"
    : "fsync and full_page_writes are on, and each commit waits for the disk";
  return [
    ok("store", `${location} is open, of the receiver "${rules.name}", and its schema is of this version.`),
    ok("durability", `What is acknowledged survives a power cut: ${settings}.`),
  ];
}

function refusedBy({ code, message, fields, cause }: OncehookError): Finding {
  const reason = typeof fields.sqliteCode === "string" || !(cause instanceof Error) ? "" : codeOf(cause);
  return problem(code, `${message}${reason}`, FIXES[code] ?? "See docs/operations.md.");
}

/** The system's own word for it, such as ECONNREFUSED; a message could hold an address. */
function codeOf(cause: Error): string {
  return "code" in cause && typeof cause.code === "string" ? ` (${cause.code})` : "";
}

// Whether receivers work on the inbox, with one and the right keyring, and what they refuse.

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
    return shapes.map((shape) => compileKeys(shape, STRICT_RULES, now).version);
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
    // A forger's share is small next to what the service sends.
    if (refused < MANY || refused < verified / 10) return [];
    const what = `${counted(refused, "delivery", "deliveries")} refused since start-up: ${cause}.`;
    return [verified === 0 ? problem(reason, what, fix) : warning(reason, what, fix)];
  });
}

// What waits in the inbox: for a worker longer than it should, or for a person.

/** No gap is waited for any longer; what failed is retried meanwhile. */
const LONGEST_WAIT_MS = 90 * 60_000;
/** By the default of `retention.deadMs`. */
const KEPT_DAYS = 90;

export async function waitingFindings({ inbox, stats }: Opened, clock: Clock): Promise<Finding[]> {
  const { gauges, oldestPendingAt } = stats;
  const age = (acceptedAt: number | undefined) =>
    acceptedAt === undefined ? "" : `; the oldest was accepted ${lasting(Math.max(0, clock.now() - acceptedAt))} ago`;
  const findings: Finding[] = [];
  if (oldestPendingAt !== null && oldestPendingAt < clock.now() - LONGEST_WAIT_MS) {
    const what = `${counted(gauges.pending, "event")} pending${age(oldestPendingAt)}.`;
    const fix =
      'Look why: "oncehook inbox ls --state pending --oldest". Handlers may be too slow, failing, or not running.';
    findings.push(problem("backlog", what, fix));
  }
  if (gauges.dead > 0) {
    const { items } = await inbox.find({ states: ["dead"], order: "oldest", limit: 1 });
    const what = `${counted(gauges.dead, "dead letter")}${age(items[0]?.acceptedAt)}; kept for ${KEPT_DAYS} days.`;
    const fix =
      '"oncehook inbox ls --group-by error", fix the cause, then "oncehook inbox replay --all --skip-superseded".';
    findings.push(problem("dead_letters", what, fix));
  }
  if (gauges.blockedLanes > 0) {
    const what = `${counted(gauges.blockedLanes, "lane")} blocked by a dead letter.`;
    const fix = 'Fix the cause, then "oncehook inbox replay" the dead letters, or "oncehook inbox unblock".';
    findings.push(problem("blocked_lanes", what, fix));
  }
  if (gauges.quarantined > 0) {
    const what = `${counted(gauges.quarantined, "signed body", "signed bodies")} in quarantine: no event could be read from them.`;
    const fix = '"oncehook inbox quarantine ls"; upgrade oncehook if the service sends something new, then replay.';
    findings.push(problem("quarantined", what, fix));
  }
  if (findings.length > 0) return findings;
  return [ok("inbox", `${counted(gauges.pending, "event")} pending; nothing waits for a person.`)];
}

// Whether a retry of the service still passes: it does if it is signed anew, or if the tolerance covers the schedule.

/** From the first attempt to the last. */
const SCHEDULE_MS = 81 * 60_000;
/** The default of `toleranceMs.future`; what is recorded is the sum of past and future. */
const FUTURE_MS = 5 * 60_000;

export function resigningFindings({ stats, inbox }: Opened): Finding[] {
  const { toleranceMs } = inbox.rules;
  if (stats.serviceResigns) return [ok("retries", "The service signs its retries anew.")];
  if (toleranceMs - FUTURE_MS >= SCHEDULE_MS)
    return [ok("retries", "Not seen that the service signs retries anew; the tolerance covers its last one.")];
  const what = `Not seen that the service signs retries anew, and the tolerance of ${lasting(toleranceMs)} ends before its last retry.`;
  return [warning("tolerance_short", what, "Leave toleranceMs.past at 90 minutes.")];
}

// What only a Postgres server can tell: its clock, what it does with commits that are not ours, and whether a pooler stands before it.

const ASKED = `select (extract(epoch from clock_timestamp()) * 1000)::float8 as now,
  current_setting('synchronous_commit') as commit, pg_backend_pid() as pid`;

interface Asked {
  readonly now: string;
  readonly commit: string;
  readonly pid: number;
}

const CONNECT_MS = 5_000;

/** @param address - of a server that an inbox was just opened at */
export async function postgresFindings(address: string, clock: Clock = systemClock): Promise<Finding[]> {
  const Pool = await loadPool();
  const settings = {
    max: 2,
    connectionTimeoutMillis: CONNECT_MS,
    keepAlive: false,
    application_name: "oncehook doctor",
  };
  const pool = new Pool({ connectionString: address, ...settings });
  pool.on("error", () => {});
  const access = { pool, clock, schema: "", statements: new PgStatements("", false) };
  try {
    return await withSession(access, async (session) => {
      const asked = clock.now();
      const [row] = await session.rows<Asked>(null, ASKED);
      const answered = clock.now();
      if (row === undefined) throw new Error("The server answered nothing.");
      const reading = { aheadMs: (asked + answered) / 2 - Number(row.now), unsureMs: (answered - asked) / 2 };
      const kept = await lookForPooler(access, session, row.pid);
      return [clockFinding("the database's", reading), commitFinding(row.commit), ...poolerFindings(kept)];
    });
  } catch {
    // The inbox is open, so the server is there.
    return [
      skipped(
        "clock",
        "The database gave no second connection to ask for its clock.",
        "Allow its role one connection more.",
      ),
    ];
  } finally {
    await pool.end();
  }
}

/** Ours say for themselves that they wait for the disk; the application's own tables depend on it. */
function commitFinding(commit: string): Finding {
  if (commit !== "off") return ok("commits", `synchronous_commit is ${commit}.`);
  const what = "synchronous_commit is off: the inbox sets it for itself, but what the application writes may be lost.";
  return warning("commits_asynchronous", what, "alter database … set synchronous_commit = on");
}

function poolerFindings({ statements, listening }: Kept): Finding[] {
  if (statements && listening) return [];
  const lost = statements ? "LISTEN" : "prepared statements and LISTEN";
  const options = statements ? "listen: false" : "prepare: false, listen: false";
  const what = `A transaction pooler stands before the server and does not keep ${lost}: receivers do without.`;
  const fix = `Pass { ${options} } to postgresStore() if it does not get that already, or connect to the server directly.`;
  return [warning("transaction_pooler", what, fix)];
}
