/** Looks at the inbox once a second while there are viewers, once for all of them, and keeps samples for the charts. */
import { explained, placeFields } from "../inbox/masking.ts";
import type { InboxStats } from "../inbox/record.ts";
import type { Clock, Timer } from "../internal/clock.ts";
import type { Logger } from "../internal/logger.ts";
import type { InboxOperator } from "../receiver/operator.ts";
import type { History, Overview, Sample } from "./api.ts";

/** What every viewer gets. The viewer's name and rights are added for each. */
export interface Look {
  /**
   * Grows when a gauge or a counter of the inbox changes, and by `touch`. The start of an attempt and some acts of other processes change
   * none: they are not noticed.
   */
  readonly changed: number;
  readonly overview: Omit<Overview, "access" | "by">;
  readonly sample: Sample;
}

export interface Watch {
  /** The newest look if it is less than a second old, otherwise a new one. */
  look(): Promise<Look>;
  history(): History;
  /** Each look from now on, until `signal` aborts. Some time after the last viewer has left, looking ends. */
  looks(signal: AbortSignal): AsyncIterable<Look>;
  /** The number of viewers. */
  readonly watching: number;
  /** The inspector changed the inbox: the next look comes sooner, and counts as a change. */
  touch(): void;
  close(): void;
}

/** While there are viewers. A look that is not older than this is shared. */
const WATCHED_EVERY_MS = 1_000;
/** Without viewers, for a while: so the charts have no hole when a viewer comes back. */
const UNWATCHED_EVERY_MS = 5_000;
const UNWATCHED_FOR_MS = 10 * 60_000;
/** Bulk work makes hundreds of acts; a look after each of them would be wasted. */
const SOONEST_MS = 250;
const TELL_EVERY_MS = 60_000;

interface Watched {
  readonly inbox: Pick<InboxOperator, "stats"> & { readonly location?: string };
  readonly clock: Clock;
  readonly logger: Logger;
}

export function watchInbox(watched: Watched): Watch {
  return new InboxWatch(watched);
}

class InboxWatch implements Watch {
  readonly #watched: Watched;
  readonly #viewers = new Set<Viewer>();
  readonly #samples = new Samples();
  /** All times in this class are of the monotonic clock. */
  #wantedAt = Number.NEGATIVE_INFINITY;
  #newest: { readonly look: Look; readonly at: number } | null = null;
  /** The look in progress, if a caller who asks now may share it. */
  #looking: Promise<Look> | null = null;
  #startedAt = Number.NEGATIVE_INFINITY;
  /** Looks are numbered as they begin. Looks up to this number are outdated. */
  #settled = 0;
  #begun = 0;
  #changed = 0;
  #fingerprint: string | null = null;
  #timer: { readonly timer: Timer; readonly dueAt: number } | null = null;
  #toldAt = Number.NEGATIVE_INFINITY;
  #isClosed = false;

  constructor(watched: Watched) {
    this.#watched = watched;
  }

  get watching(): number {
    return this.#viewers.size;
  }

  async look(): Promise<Look> {
    const now = this.#now();
    this.#wantedAt = now;
    if (this.#newest === null || now - this.#newest.at >= WATCHED_EVERY_MS) return this.#looking ?? this.#begin();
    this.#plan();
    return this.#newest.look;
  }

  history(): History {
    this.#wantedAt = this.#now();
    this.#plan();
    return { everyMs: WATCHED_EVERY_MS, samples: this.#samples.list(this.#now()) };
  }

  looks(signal: AbortSignal): AsyncIterableIterator<Look> {
    const viewer = new Viewer(signal, () => this.#leave(viewer));
    if (this.#isClosed || signal.aborted) {
      viewer.end();
      return viewer;
    }
    this.#viewers.add(viewer);
    const isFresh = this.#newest !== null && this.#now() - this.#newest.at < WATCHED_EVERY_MS;
    if (isFresh && this.#newest !== null) viewer.offer(this.#newest.look);
    this.#plan(isFresh ? WATCHED_EVERY_MS : 0);
    return viewer;
  }

  touch(): void {
    this.#newest = null;
    this.#looking = null;
    this.#fingerprint = null;
    this.#settled = this.#begun;
    if (this.#viewers.size === 0) this.#plan();
    else this.#plan(Math.max(0, this.#startedAt + SOONEST_MS - this.#now()));
  }

  close(): void {
    this.#isClosed = true;
    this.#timer?.timer.cancel();
    for (const viewer of this.#viewers) viewer.end();
  }

  #now(): number {
    return this.#watched.clock.monotonic();
  }

  #leave(viewer: Viewer): void {
    if (this.#viewers.delete(viewer)) this.#wantedAt = this.#now();
  }

  #begin(): Promise<Look> {
    this.#begun += 1;
    this.#startedAt = this.#now();
    const looking = this.#read(this.#begun).finally(() => {
      if (this.#looking !== looking) return;
      this.#looking = null;
      this.#plan();
    });
    this.#looking = looking;
    return looking;
  }

  async #read(number: number): Promise<Look> {
    const { inbox, clock } = this.#watched;
    const stats = await inbox.stats();
    const fingerprint = fingerprintOf(stats);
    const isNews = number > this.#settled;
    if (isNews && fingerprint !== this.#fingerprint) this.#changed += 1;
    const overview = overviewOf(stats, { now: clock.now(), location: inbox.location ?? null });
    const look: Look = { changed: this.#changed, overview, sample: sampleOf(overview) };
    // A look that was overtaken, or that began before an act, only answers the caller who asked for it.
    if (!isNews) return look;
    this.#settled = number;
    this.#fingerprint = fingerprint;
    this.#newest = { look, at: this.#now() };
    this.#samples.add(look.sample, this.#now());
    for (const viewer of this.#viewers) viewer.offer(look);
    return look;
  }

  /** Plans the next look, in `ms` at the latest; none if there was no viewer for a while. */
  #plan(ms = this.#viewers.size > 0 ? WATCHED_EVERY_MS : UNWATCHED_EVERY_MS): void {
    const now = this.#now();
    if (this.#isClosed || (this.#timer !== null && this.#timer.dueAt <= now + ms)) return;
    this.#timer?.timer.cancel();
    this.#timer = null;
    if (this.#viewers.size === 0 && now - this.#wantedAt >= UNWATCHED_FOR_MS) return;
    this.#timer = { timer: this.#watched.clock.setTimeout(() => this.#due(), ms), dueAt: now + ms };
  }

  #due(): void {
    this.#timer = null;
    // The end of the look in progress plans the next one.
    if (this.#looking !== null) return;
    this.#begin().catch((error: unknown) => this.#tell(error));
  }

  #tell(error: unknown): void {
    if (this.#now() - this.#toldAt < TELL_EVERY_MS) return;
    this.#toldAt = this.#now();
    const said = explained("The inspector cannot read the inbox; it keeps trying.", error);
    this.#watched.logger.warn(placeFields(error), said);
  }
}

interface Seen {
  readonly now: number;
  readonly location: string | null;
}

function overviewOf(stats: InboxStats, { now, location }: Seen): Look["overview"] {
  const { gauges, counters, oldestPendingAt, newestSignedAt, serviceResigns, instances } = stats;
  return {
    ...{ now, location, gauges, counters, oldestPendingAt, newestSignedAt, serviceResigns, instances },
    slots: sumsOf(stats, "slot:"),
    rejections: sumsOf(stats, "refused:"),
  };
}

function sampleOf({ now, gauges, counters, oldestPendingAt, rejections }: Look["overview"]): Sample {
  return {
    at: now,
    pending: gauges.pending,
    oldestWaitingMs: oldestPendingAt === null ? 0 : Math.max(0, now - oldestPendingAt),
    dead: gauges.dead,
    quarantined: gauges.quarantined,
    accepted: counters.accepted,
    handled: counters.handled,
    late: counters.late,
    gapsSkipped: counters.gapsSkipped,
    rejected: Object.values<number>(rejections).reduce((sum, count) => sum + count, 0),
  };
}

/** Two looks have the same fingerprint if nothing changed between them. The time when an instance was last seen does not count. */
function fingerprintOf({ gauges, counters, newestSignedAt, instances }: InboxStats): string {
  return JSON.stringify([gauges, counters, newestSignedAt, instances.map(({ id, counters }) => [id, counters])]);
}

/** Sums of the instances' counters with this prefix, by the rest of the name. Without a prototype, because the names come from a store. */
function sumsOf({ instances }: InboxStats, prefix: string): Record<string, number> {
  const sums: Record<string, number> = Object.create(null);
  for (const { counters } of instances) {
    for (const [counter, count] of Object.entries(counters)) {
      const name = counter.slice(prefix.length);
      if (counter.startsWith(prefix)) sums[name] = (sums[name] ?? 0) + count;
    }
  }
  return sums;
}

const KEPT_MS = 15 * 60_000;
/** One a second, and some for looks that came sooner. */
const MOST = 1_000;

/** The samples of the last 15 minutes, by the monotonic clock: `Sample.at` may jump. */
class Samples {
  readonly #kept: { readonly at: number; readonly sample: Sample }[] = [];

  add(sample: Sample, at: number): void {
    this.#kept.push({ at, sample });
    this.#forget(at);
  }

  /** The oldest first. */
  list(now: number): readonly Sample[] {
    this.#forget(now);
    return this.#kept.map(({ sample }) => sample);
  }

  #forget(now: number): void {
    const firstKept = this.#kept.findIndex(({ at }) => at > now - KEPT_MS);
    const tooOld = firstKept === -1 ? this.#kept.length : firstKept;
    this.#kept.splice(0, Math.max(tooOld, this.#kept.length - MOST));
  }
}

/** A viewer gets the newest look when it is ready for one. A slow viewer misses some, so nothing piles up. */
class Viewer implements AsyncIterableIterator<Look> {
  readonly #signal: AbortSignal;
  readonly #left: (viewer: Viewer) => void;
  readonly #end = () => this.end();
  #newest: Look | null = null;
  #hasEnded = false;
  #wake: () => void = () => {};

  /** @param left - called once, when the viewer has ended */
  constructor(signal: AbortSignal, left: (viewer: Viewer) => void) {
    this.#signal = signal;
    this.#left = left;
    signal.addEventListener("abort", this.#end, { once: true });
  }

  offer(look: Look): void {
    this.#newest = look;
    this.#wake();
  }

  end(): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#signal.removeEventListener("abort", this.#end);
    this.#left(this);
    this.#wake();
  }

  async next(): Promise<IteratorResult<Look, undefined>> {
    if (this.#newest === null && !this.#hasEnded)
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    const look = this.#newest;
    this.#newest = null;
    return look === null || this.#hasEnded ? { done: true, value: undefined } : { done: false, value: look };
  }

  async return(): Promise<IteratorResult<Look, undefined>> {
    this.end();
    return { done: true, value: undefined };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }
}
