/** Moves an inbox from one store to another, such as from a SQLite file to Postgres. */
import { createHash, type Hash, hash } from "node:crypto";
import { setImmediate } from "node:timers/promises";
import { SetupError, StoreError } from "../errors.ts";
import { type Clock, systemClock } from "../internal/clock.ts";
import { silentLogger } from "../internal/logger.ts";
import { booleanOption, refuseUnknownOptions } from "../internal/options.ts";
import { thisInstance } from "../internal/process.ts";
import type {
  AuditRecord,
  EventState,
  ImportAnswer,
  ImportPage,
  QuarantineRecord,
  TransferredEvent,
  TransferredLane,
} from "./record.ts";
import type { InboxStore, Page } from "./store.ts";
import { MOST_BYTES, plainText, RECENTLY_MS } from "./store-rules.ts";

export interface CopyOptions {
  /** The old inbox, without a receiver. It is only read, and marked by `move`. Pass it unopened; it is closed at the end. */
  readonly from: CopyStore;
  /** An empty inbox, or one with an unfinished copy of the same source. Pass it unopened; it is closed at the end. */
  readonly to: CopyStore;
  /**
   * Marks the old inbox once both were compared: nobody opens it any more by mistake (`inbox_moved`), so nothing is handled in both. No process
   * may have it open then. Default false: it is not changed, and can be used and copied again.
   */
  readonly move?: boolean;
  /** Called after each page. If it throws, the copy ends; it can continue later. */
  readonly onProgress?: (progress: CopyProgress) => void;
  /** Ends the copy after the current page, with the signal's reason. It can continue later. */
  readonly signal?: AbortSignal;
}

/** How far a copy has come. */
export interface CopyProgress {
  /** First everything is copied, then both inboxes are read again and compared. */
  readonly phase: "copy" | "compare";
  /** Read in this phase by this call. */
  readonly lanes: number;
  readonly events: number;
}

/** What both inboxes hold now. */
export interface CopyResult extends InboxContent {
  /** Lanes that an earlier call had copied. */
  readonly lanesBefore: number;
  /** Whether the old inbox was marked. */
  readonly moved: boolean;
}

const OPTIONS = ["from", "to", "move", "onProgress", "signal"];

/**
 * Copies an inbox: lanes with their cursors, gaps and events (pending, done, dead, late, discarded), bodies, attempts, conflicts,
 * quarantined bodies, the audit and the counters. Leases, the list of processes and sealed secrets are not copied. At the end it reads
 * both inboxes and compares them. You can stop it at any point and call it again: it continues, and copies nothing twice.
 *
 * Stop every receiver first, and start them with the new store once this has resolved. Until then the target refuses to open
 * (`copy_unfinished`). With `move: true` the source refuses to open from then on.
 *
 * @throws SetupError `copy_refused` if a receiver still works on either inbox, the target holds something else, or the audit has more
 *   than 1,000,000 rows; `no_inbox`, `wrong_receiver_name`; and any error of opening
 * @throws StoreError `copy_differs` if the two are not the same at the end
 *
 * @example
 * import { copyInbox, createReceiver } from "oncehook";
 * import { memoryStore } from "oncehook/memory";
 *
 * const from = memoryStore({ volatile: true });
 * const receiver = createReceiver({ secrets: "whsec_example_0123456789abcdef", store: from }).onAny(() => {});
 * await receiver.start();
 * await receiver.stop();
 * const result = await copyInbox({ from, to: memoryStore({ volatile: true }) });
 * console.log(result.events); // 0
 */
export async function copyInbox(options: CopyOptions): Promise<CopyResult> {
  refuseUnknownOptions("copyInbox()", options, OPTIONS);
  booleanOption("move", options.move, false);
  const { from, to } = options;
  const context = { clock: systemClock, logger: silentLogger, migrate: "auto" } as const;
  const rules = await from.open({ ...context, rules: "recorded", movedTo: to.location, instance: thisInstance() });
  try {
    await to.open({ ...context, rules, copying: true, instance: thisInstance() });
    try {
      return await copyOpen(options, systemClock);
    } finally {
      await to.close();
    }
  } finally {
    await from.close();
  }
}

/** Between stores that are open. */
export async function copyOpen(options: CopyOptions, clock: Clock): Promise<CopyResult> {
  const { from, to } = options;
  if (Object.is(from, to)) throw refused("The two stores are one", from);
  for (const store of [from, to]) await refuseWorking(store, clock);
  const before = await from.stats();
  const start = await importInto(options, {});
  if (!start.finished) await copyContent(options, start.lastLane);
  const { content, lanesBefore } = await compare(options, start);
  if (options.move === true) await mark(options);
  const { counters, newestSignedAt, serviceResigns } = await from.stats();
  if (!sameNumbers(counters, before.counters)) {
    if (options.move === true) await from.markMoved(null);
    throw refused("A receiver worked on it during the copy", from);
  }
  // After this a store imports nothing more, and opens. A copy that ends between the mark and this can continue.
  await importInto(options, { totals: { counters, newestSignedAt, serviceResigns } });
  return { ...content, lanesBefore, moved: options.move === true };
}

async function mark({ from, to }: CopyOptions): Promise<void> {
  const others = await from.markMoved(to.location);
  if (others.length === 0) return;
  throw refused(
    `Everything is copied, but a process has it open (${others.join(", ")}): stop it, and copy again`,
    from,
  );
}

/**
 * Removes the mark of a move. Whatever the other inbox accepted or handled since is unknown to this one.
 *
 * @throws any error of opening
 */
export async function reopenMoved(store: CopyStore): Promise<void> {
  const context = { clock: systemClock, logger: silentLogger, migrate: "check", rules: "recorded" } as const;
  await store.open({ ...context, movedTo: true, instance: thisInstance() });
  try {
    await store.markMoved(null);
  } finally {
    await store.close();
  }
}

async function copyContent(options: CopyOptions, after: number): Promise<void> {
  const report = reporter(options, "copy");
  // A name keeps its source in the target too, and processes that know no other sources are refused there.
  await options.to.admit(await options.from.admit([]));
  // First, so that an audit that is refused is refused before the lanes have taken their time.
  await importInto(options, { audit: await auditRows(options.from) });
  for await (const lanes of lanePages(options.from, after)) {
    await importInto(options, { lanes });
    report(lanes);
  }
  for await (const quarantined of quarantinePages(options.from)) {
    await importInto(options, { quarantined });
    report([]);
  }
}

async function importInto({ from, to }: CopyOptions, part: Partial<ImportPage>): Promise<Taken> {
  const page = { source: from.location, lanes: [], quarantined: [], audit: [], totals: null };
  const answer = await to.import({ ...page, ...part });
  if (answer.ok) return answer;
  throw refused(`It holds something that does not come from ${from.location}`, to);
}

type Taken = Extract<ImportAnswer, { readonly ok: true }>;

/** Reads both. A difference means that a receiver wrote to one of them, or that the copy is wrong. */
async function compare(options: CopyOptions, { lastLane: copiedBefore, finished }: Taken) {
  const report = reporter(options, "compare");
  const [source, target] = [new ContentReader(), new ContentReader()];
  let lanesBefore = 0;
  for (const [store, reader] of [[options.from, source] as const, [options.to, target] as const]) {
    for await (const lanes of lanePages(store, 0)) {
      for (const lane of lanes) reader.addLane(lane);
      if (store === options.to) lanesBefore += lanes.filter(({ id }) => id <= copiedBefore).length;
      report(lanes);
    }
    for await (const rows of quarantinePages(store)) for (const row of rows) reader.addQuarantined(row);
    for (const row of await auditRows(store)) reader.addAudit(row);
  }
  const { content } = target;
  if (!sameNumbers(source.content, content) || source.digest() !== target.digest())
    throw differs(options, source.content, content, finished);
  return { content, lanesBefore };
}

/** Reports the progress, and stops between two pages if the signal aborts. */
function reporter({ onProgress, signal }: CopyOptions, phase: CopyProgress["phase"]) {
  let [lanes, events] = [0, 0];
  signal?.throwIfAborted();
  return (page: readonly { readonly events: readonly unknown[] }[]) => {
    lanes += page.length;
    events += page.reduce((sum, lane) => sum + lane.events.length, 0);
    onProgress?.({ phase, lanes, events });
    signal?.throwIfAborted();
  };
}

async function refuseWorking(store: CopyStore, clock: Clock): Promise<void> {
  const { instances } = await store.stats();
  const alive = instances.filter(({ seenAt }) => seenAt > clock.now() - RECENTLY_MS);
  if (alive.length === 0) return;
  const pids = alive.map(({ pid }) => pid).join(", ");
  throw refused(
    `A receiver works on it, or did a minute ago (process ${pids}): stop it, and wait for a minute if it was killed`,
    store,
  );
}

function sameNumbers(a: object, b: object): boolean {
  const others = new Map<string, unknown>(Object.entries(b));
  return Object.entries(a).every(([name, count]) => others.get(name) === count);
}

/** @param finished - an earlier call had come to the end: receivers may use the target since, and it must not be emptied */
function differs({ from, to }: CopyOptions, source: InboxContent, target: InboxContent, finished: boolean): StoreError {
  const found = Object.entries(source).flatMap(([name, count]) => {
    const other = target[name as keyof InboxContent];
    return count === other ? [] : [`${name} ${count} and ${other}`];
  });
  const what = found.length === 0 ? "the same numbers, but not the same content" : found.join(", ");
  const fix = finished
    ? "The copy had ended before: use only the one that receivers have worked on since, and keep what it holds."
    : "Keep using the source, empty the target, and copy again.";
  const message = `${from.location} and ${to.location} hold ${what}: a receiver worked on one of them. ${fix}`;
  return new StoreError("copy_differs", message);
}

/** The parts of a store that a copy uses. */
export type CopyStore = Pick<
  InboxStore,
  | "location"
  | "open"
  | "close"
  | "admit"
  | "export"
  | "import"
  | "findQuarantined"
  | "quarantined"
  | "audit"
  | "stats"
  | "markMoved"
>;

/** The number of each kind. */
export interface InboxContent extends Readonly<Record<EventState, number>> {
  readonly lanes: number;
  readonly events: number;
  /** Bodies that were neither pruned nor erased. */
  readonly bodies: number;
  readonly gaps: number;
  readonly attempts: number;
  readonly conflicts: number;
  readonly quarantined: number;
  readonly audit: number;
}

const LANES_PER_PAGE = 250;
const QUARANTINED_PER_PAGE = 100;
const MOST_AUDIT_ROWS = 1_000_000;

async function* lanePages(store: CopyStore, after: number): AsyncGenerator<readonly TransferredLane[]> {
  for (let last = after; ; ) {
    const lanes = await store.export(last, LANES_PER_PAGE);
    const next = lanes.at(-1)?.id;
    if (next === undefined) return;
    yield lanes;
    last = next;
  }
}

/** All rows of a query that is read page by page. The event loop runs between two pages. */
export async function* allPages<Row>(
  read: (page: { readonly after?: number }) => Promise<Page<Row>>,
): AsyncGenerator<Row> {
  for (let after: number | null | undefined; after !== null; ) {
    const page: Page<Row> = await read(after === undefined ? {} : { after });
    yield* page.items;
    after = page.next;
    await setImmediate();
  }
}

/** All rows of the quarantine, newest first, each with its body. */
export async function* quarantinedRows(
  store: Pick<InboxStore, "findQuarantined" | "quarantined">,
): AsyncGenerator<QuarantineRecord> {
  for await (const { id } of allPages((page) => store.findQuarantined({ limit: QUARANTINED_PER_PAGE, ...page }))) {
    const row = await store.quarantined(id);
    if (row !== null) yield row;
    // Reading many must not hold up the event loop.
    await setImmediate();
  }
}

/** They are imported together, so their bodies are bounded. */
export async function* quarantinePages(store: CopyStore): AsyncGenerator<readonly QuarantineRecord[]> {
  let page: QuarantineRecord[] = [];
  let bytes = 0;
  for await (const row of quarantinedRows(store)) {
    page.push(row);
    bytes += row.raw?.byteLength ?? 0;
    if (page.length < QUARANTINED_PER_PAGE && bytes < MOST_BYTES) continue;
    yield page;
    [page, bytes] = [[], 0];
  }
  yield page;
}

/**
 * In ascending order.
 *
 * @throws SetupError `copy_refused` if there are too many rows to read at once: the oldest would be lost
 */
async function auditRows(store: CopyStore): Promise<readonly AuditRecord[]> {
  const rows = await store.audit(MOST_AUDIT_ROWS + 1);
  if (rows.length > MOST_AUDIT_ROWS) throw refused("Its audit has more rows than the 1,000,000 that are copied", store);
  return rows.toReversed();
}

function refused(why: string, { location }: CopyStore): SetupError {
  return new SetupError("copy_refused", `${why}: ${location}. Nothing was lost; see docs/moving-to-postgres.md.`);
}

/** Counts the content of an inbox, and computes a digest of it that does not depend on the store. */
export class ContentReader {
  readonly #content = {
    ...{ lanes: 0, events: 0, bodies: 0, gaps: 0, attempts: 0, conflicts: 0, quarantined: 0, audit: 0 },
    ...{ pending: 0, done: 0, dead: 0, late: 0, discarded: 0 },
  };
  readonly #digest: Hash = createHash("sha256");

  get content(): InboxContent {
    return { ...this.#content };
  }

  /** Call it once, at the end. */
  digest(): string {
    return this.#digest.digest("hex");
  }

  addLane({ events, gaps, attempts, ...lane }: TransferredLane): void {
    const content = this.#content;
    content.lanes++;
    content.events += events.length;
    content.gaps += gaps.length;
    content.attempts += attempts.length;
    for (const event of events) {
      content[event.state]++;
      if (event.raw !== null) content.bodies++;
      if (event.conflicting !== null) content.conflicts++;
    }
    const { id, key, cursor, status, readyAt, gapSince, peer, externalReference } = lane;
    this.#add(
      [id, key.source, key.tenant, key.name, key.order, cursor, status, readyAt, gapSince, peer, externalReference],
      events.map(eventFacts),
      gaps.map(({ from, to, skippedAt, filledAt }) => [from, to, skippedAt, filledAt]),
      attempts.map((a) => [a.eventId, a.attempt, a.at, Math.round(a.durationMs), plain(a.errorCode), plain(a.error)]),
    );
  }

  addQuarantined(row: QuarantineRecord): void {
    this.#content.quarantined++;
    const {
      id,
      reason,
      slot,
      signer,
      source,
      tenant,
      kinds,
      state,
      replayedAs,
      signedAt,
      acceptedAt,
      trace,
      digest,
      raw,
      head,
    } = row;
    this.#add(
      id,
      reason,
      slot,
      signer,
      source,
      tenant,
      kinds,
      state,
      replayedAs,
      signedAt,
      acceptedAt,
      trace,
      hex(digest),
      bodyOf(raw),
      ...(head === null ? [] : [head]),
      ...(row.untimed ? ["untimed"] : []),
    );
  }

  addAudit({ id, at, by, act, detail }: AuditRecord): void {
    this.#content.audit++;
    this.#add(id, at, plain(by), act, plain(detail));
  }

  #add(...facts: readonly unknown[]): void {
    this.#digest.update(JSON.stringify(facts));
  }
}

function eventFacts(event: TransferredEvent): readonly unknown[] {
  const { id, sequence, eventType, state, outcome, late, forced, gapWaitMs, conflicting, attempts } = event;
  const conflict = conflicting === null ? null : [hex(conflicting.digest), conflicting.signedAt, conflicting.at];
  return [
    ...[id, sequence, eventType, state, outcome, late, forced, gapWaitMs, attempts, event.duplicates, event.conflict],
    ...[event.occurredAt, event.signedAt, event.acceptedAt, event.startedAt, event.finishedAt, event.trace],
    ...[plain(event.errorCode), plain(event.error), hex(event.digest), bodyOf(event.raw)],
    ...(event.head === null ? [] : [event.head]),
    ...(event.untimed ? ["untimed"] : []),
    ...(event.ownId === null ? [] : [event.ownId]),
    ...[conflict, bodyOf(conflicting?.raw ?? null)],
  ];
}

function plain(text: string | null): string | null {
  return text === null ? null : plainText(text);
}

function bodyOf(raw: Uint8Array | null): string | null {
  return raw === null ? null : hash("sha256", raw);
}

function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("hex");
}
