/** The watch over an inbox: looks on a timer, kept as samples, and shown to all who watch. */
import { explained, placeFields } from "../inbox/masking.ts";
import type { Clock, Timer } from "../internal/clock.ts";
import type { Logger } from "../internal/logger.ts";
import type { InboxOperator } from "../receiver/operator.ts";
import type { History } from "./api.ts";
import { fingerprintOf, overviewOf, sampleOf } from "./look.ts";
import { Samples } from "./samples.ts";
import { Viewer } from "./viewer.ts";
import type { Look, Watch } from "./watch.ts";

/** While somebody watches; also how old a look may be that somebody else gets. */
const WATCHED_EVERY_MS = 1_000;
/** While nobody does, so that the charts of whoever comes back have no hole. */
const UNWATCHED_EVERY_MS = 5_000;
const UNWATCHED_FOR_MS = 10 * 60_000;
/** Acts come in hundreds; a look after each would be work for nothing. */
const SOONEST_MS = 250;
const TELL_EVERY_MS = 60_000;

export interface Watched {
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
  /** All instants of this class are of the monotonic clock. */
  #wantedAt = Number.NEGATIVE_INFINITY;
  #newest: { readonly look: Look; readonly at: number } | null = null;
  /** The look under way that whoever asks now may have. */
  #looking: Promise<Look> | null = null;
  #startedAt = Number.NEGATIVE_INFINITY;
  /** Looks are numbered as they begin; those up to this one tell nothing new any more. */
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
    // One that was overtaken, or began before an act, is for whoever asked for it, and for nobody else.
    if (!isNews) return look;
    this.#settled = number;
    this.#fingerprint = fingerprint;
    this.#newest = { look, at: this.#now() };
    this.#samples.add(look.sample, this.#now());
    for (const viewer of this.#viewers) viewer.offer(look);
    return look;
  }

  /** Sees to it that there is a next look, after `ms` at the latest; none is wanted when nobody has looked for a while. */
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
    // Its end plans the next one.
    if (this.#looking !== null) return;
    this.#begin().catch((error: unknown) => this.#tell(error));
  }

  #tell(error: unknown): void {
    if (this.#now() - this.#toldAt < TELL_EVERY_MS) return;
    this.#toldAt = this.#now();
    const said = explained("The inspector cannot read the inbox; it goes on trying.", error);
    this.#watched.logger.warn(placeFields(error), said);
  }
}
