/** `npm run prove -- clock`: wall clocks that jump under load, by an injected clock and, where it is installed, by libfaketime. */
import { existsSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type InboxStore, type KnownEvent, PermanentError, type PrunePolicy } from "../../src/index.ts";
import {
  createFakeClock,
  incomingOf,
  lifecycle,
  type SignedRequest,
  seededRandom,
  shuffled,
  signedRequest,
} from "../../src/tools/testing/index.ts";
import { MEMORY_DISK } from "../support/memory-disk.ts";
import { type Pattern, patterns } from "./clock-patterns.ts";
import { breachCounts, breachesOf, breachLines } from "./history.ts";
import { contentsOf } from "./inbox.ts";
import { inFolder, missingFrom, type Programme, type Proof, seedOr, type Terms } from "./programme.ts";
import { type Receiving, receive } from "./receiving.ts";
import { deliveryOf } from "./sender.ts";
import { type Judged, Subject } from "./subject.ts";

const SHORT = 5;
const FULL = 30;
const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;
/** For each setting of the clock. */
const MESSAGES = 12;
const SETTING_MS = 30 * MINUTE_MS;
/** A retry of the service comes so much later. */
const AGAIN_AFTER_MS = 5 * MINUTE_MS;
const MOST_AGAIN = 20;
const LIBRARY = "faketime/libfaketimeMT.so.1";
/** Of libfaketime, in real time. */
const FAKED_SETTING_MS = 500;

interface Outcome extends Judged {
  /** Deliveries that came again: old ones with their own timestamps, or those that a wrong clock had refused. */
  readonly again: number;
}

export const clockJumps: Programme = {
  name: "clock",
  what: "whatever the wall clock does, no identity goes early, no replay is handled twice and nothing is stuck",
  hasSmallForm: true,
  async run({ full, small, say }: Terms): Promise<Proof> {
    const seed = seedOr(20_261_122);
    const all = patterns(full ? FULL : SHORT, seed);
    say(`SEED=${seed}`);
    const problems: string[] = [];
    let count = 0;
    const tell = (form: string, { name }: Pattern, outcome: Outcome) => {
      count += 1;
      say(`${form.padEnd(12)} ${name.padEnd(24)} ${lineOf(outcome)}`);
      const found = [
        ...[...breachLines(outcome.breaches), ...outcome.problems.slice(0, 10)],
        ...missingFrom({ "nothing was acknowledged": outcome.acknowledged > 0 }),
      ];
      problems.push(...found.map((problem) => `${form}, ${name}: ${problem}`));
    };
    for (const pattern of all) tell("injected", pattern, await throughPattern(pattern, seed));
    if (small) return { count, unit: "patterns, by an injected clock", problems };
    const library = fakeTimeLibrary();
    if (library === null) say(`libfaketime  left out: ${all.length} patterns, since it is not installed`);
    else for (const pattern of all) tell("libfaketime", pattern, await throughFakedPattern(pattern, library));
    problems.push(...(await unseen(all, seed, say)));
    return { count, unit: `patterns${library === null ? " (without libfaketime)" : " in two forms"}`, problems };
  },
};

/** The control: pruning by the wall clock, ten years ahead. */
async function unseen(all: readonly Pattern[], seed: number, say: Terms["say"]): Promise<string[]> {
  const pattern = all.find(({ name }) => name === "ten years ahead");
  if (pattern === undefined) return ["there is no pattern for the control"];
  const careless = await throughPattern(pattern, seed, true);
  say(`prunes by the wall clock: ${lineOf(careless)}`);
  const isSeen = careless.breaches.some(({ kind }) => kind === "lost");
  return missingFrom({ "pruning by the wall clock was not seen": isSeen });
}

function lineOf({ breaches, problems, acknowledged, again }: Outcome): string {
  return `${acknowledged} acknowledged, ${again} came again, ${problems.length} strange: ${breachCounts(breaches)}`;
}

/** The library's path; null where it is not installed. */
function fakeTimeLibrary(): string | null {
  const folders = ["/usr/lib", "/usr/local/lib", "/usr/lib64"].filter((folder) => existsSync(folder));
  const places = folders.flatMap((folder) => [folder, ...readdirSync(folder).map((name) => join(folder, name))]);
  return places.map((place) => join(place, LIBRARY)).find((file) => existsSync(file)) ?? null;
}

function throughFakedPattern(pattern: Pattern, library: string): Promise<Outcome> {
  return inFolder(async (folder) => {
    const control = join(folder, "time");
    const set = (aheadMs: number) =>
      writeFileSync(control, `${aheadMs < 0 ? "-" : "+"}${Math.abs(aheadMs) / 1_000}s\n`);
    set(0);
    const subject = await Subject.start(
      join(folder, "inbox.db"),
      { store: { busyTimeoutMs: 1_000 } },
      // The monotonic clock goes on as it does when a machine's time is set.
      {
        ...{ LD_PRELOAD: library, FAKETIME_TIMESTAMP_FILE: control, FAKETIME_NO_CACHE: "1" },
        ...{ FAKETIME_DONT_FAKE_MONOTONIC: "1", DONT_FAKE_MONOTONIC: "1" },
      },
    );
    for (const aheadMs of [0, ...pattern.settings, 0]) {
      set(aheadMs);
      await sleep(FAKED_SETTING_MS);
    }
    const judged = await subject.end([200, 401]);
    const again = subject.sender.count(401);
    // An hour or two ahead a timestamp may still be within its tolerance; years it is not.
    const mustRefuse = pattern.settings.some((aheadMs) => Math.abs(aheadMs) > 2 * 60 * MINUTE_MS);
    const isRefused = missingFrom({ "nothing was refused: the clock did not jump": again > 0 || !mustRefuse });
    return { ...judged, problems: [...judged.problems, ...isRefused], again };
  });
}

/** A receiver whose clock is given to it: days of deliveries in moments, with replays of old ones, and what is left at the end. */
function throughPattern(pattern: Pattern, seed: number, prunesByWallClock = false): Promise<Outcome> {
  return inFolder(async (folder) => {
    const path = join(folder, "inbox.db");
    const machine = new Machine(path, seed, prunesByWallClock);
    for (const aheadMs of [0, ...pattern.settings, 0, 0]) await machine.during(aheadMs);
    await machine.rest();
    const { effects, stored } = contentsOf(path);
    const { sent, acknowledged, strange, replays } = machine;
    const known = { sent, forged: [], acknowledged, replayed: [], effects, stored };
    const breaches = breachesOf({ ...known, moment: "ended", everyHandlerWrites: true });
    return { breaches, problems: strange, acknowledged: acknowledged.size, again: replays };
  }, MEMORY_DISK);
}

class Machine {
  readonly sent: string[] = [];
  readonly acknowledged = new Set<string>();
  readonly strange: string[] = [];
  replays = 0;
  readonly #clock = createFakeClock();
  readonly #random: () => number;
  readonly #path: string;
  readonly #prunesByWallClock: boolean;
  readonly #delivered: SignedRequest[] = [];
  readonly #waiting: KnownEvent[] = [];
  #receiving: Receiving;
  #aheadMs = 0;
  #messages = 0;
  #attempts = 0;

  constructor(path: string, seed: number, prunesByWallClock: boolean) {
    this.#random = seededRandom(seed);
    this.#path = path;
    this.#prunesByWallClock = prunesByWallClock;
    this.#receiving = this.#newReceiving();
  }

  /** As in a new process, which remembers nothing of what the last one was sent. */
  #newReceiving(): Receiving {
    const clock = { ...this.#clock, now: () => this.#clock.now() + this.#aheadMs };
    return receive(
      { place: { path: this.#path } },
      {
        ...{ clock, random: this.#random },
        wrap: (store) => {
          const used: InboxStore<unknown> = { ...store, onWake: () => () => {} };
          return this.#prunesByWallClock ? pruningByWallClock(used, () => this.#aheadMs) : used;
        },
        before: () => {
          this.#attempts += 1;
          if (this.#attempts % 7 === 0) throw new Error("It is tried again.");
          if (this.#attempts % 11 === 0) throw new PermanentError("It is a dead letter.");
        },
      },
    );
  }

  /** A setting of the clock, and a process that starts with it: new events, those that were refused before, and old deliveries again. */
  async during(aheadMs: number): Promise<void> {
    this.#aheadMs = aheadMs;
    await this.#receiving.receiver.start();
    const events = Array.from({ length: MESSAGES }, () =>
      lifecycle({ messageId: `msg_${++this.#messages}`, occurredAt: this.#clock.now() }),
    ).flat();
    for (const event of events) this.sent.push(deliveryOf(event).identity);
    const due = shuffled([...this.#waiting.splice(0), ...events], this.#random);
    for (const event of due) {
      await this.#deliver(event);
      if (this.#random() < 0.3) await this.#replay();
      await this.#clock.advance(Math.floor(SETTING_MS / due.length));
    }
    await this.#stop();
    this.#receiving = this.#newReceiving();
  }

  /** The service's retries, while the clock is right again, and time for every gap; then what is past its retention goes. */
  async rest(): Promise<void> {
    this.#aheadMs = 0;
    await this.#receiving.receiver.start();
    for (let round = 0; this.#waiting.length > 0 && round < MOST_AGAIN; round++) {
      await this.#clock.advance(AGAIN_AFTER_MS);
      for (const event of this.#waiting.splice(0)) await this.#deliver(event);
    }
    if (this.#waiting.length > 0) this.strange.push(`${this.#waiting.length} events were never taken`);
    await this.#clock.advance(DAY_MS / 8);
    for (let index = 0; index < MESSAGES; index++) await this.#replay();
    await this.#clock.advance(MINUTE_MS);
    await this.#stop();
  }

  async #stop(): Promise<void> {
    const stopped = this.#receiving.receiver.stop({ timeoutMs: 0 });
    await this.#clock.advance(MINUTE_MS);
    await stopped;
  }

  async #deliver(event: KnownEvent): Promise<void> {
    const request = signedRequest(event, { timestamp: this.#clock.now() });
    const status = await this.#statusOf(request);
    const isWrong = Math.abs(this.#aheadMs) > MINUTE_MS;
    if (status === 200) {
      this.acknowledged.add(deliveryOf(event).identity);
      this.#delivered.push(request);
    } else {
      this.#waiting.push(event);
      // By a clock that is an hour fast, an honest timestamp is old but not too old.
      if (status !== 401 || !isWrong)
        this.strange.push(`${status} for a delivery while the clock is ${this.#aheadMs} ms ahead`);
    }
  }

  /** Somebody who recorded a delivery sends it again: whatever the answer, it has no effect. */
  async #replay(): Promise<void> {
    const old = this.#delivered[Math.floor(this.#random() * this.#delivered.length)];
    if (old === undefined) return;
    this.replays += 1;
    const status = await this.#statusOf(old);
    if (status !== 200 && status !== 401) this.strange.push(`${status} for a replayed delivery`);
  }

  async #statusOf(request: SignedRequest): Promise<number> {
    const answered = this.#receiving.receiver.source("messages").handle(incomingOf(request));
    await this.#clock.advance(1);
    return (await answered).status;
  }
}

/** As if the cut-off were the wall clock's, and not the newest verified timestamp's. */
function pruningByWallClock(store: InboxStore<unknown>, aheadMs: () => number): InboxStore<unknown> {
  const sooner = ({ batch, ...ages }: PrunePolicy): PrunePolicy => {
    const by = Math.max(0, aheadMs());
    const { handledBodiesMs, otherBodiesMs, identitiesMs, deadMs } = ages;
    return {
      ...{ handledBodiesMs: handledBodiesMs - by, otherBodiesMs: otherBodiesMs - by, batch },
      ...{ identitiesMs: identitiesMs - by, deadMs: deadMs - by },
    };
  };
  return { ...store, prune: (policy) => store.prune(sooner(policy)) };
}
