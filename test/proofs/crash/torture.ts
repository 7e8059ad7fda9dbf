/** Kills a receiver under load, again and again on one inbox, and looks at the file after each kill and at the end. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import Database from "better-sqlite3";
import { seededRandom } from "../../../src/testing/index.ts";
import { lateBills } from "../bills.ts";
import { type Breach, breachesOf, type History } from "../history.ts";
import { type Contents, contentsAsLeft, contentsOf } from "../sqlite-inbox.ts";
import type { Flaw } from "./flaws.ts";
import { Gate } from "./gate.ts";
import { Load } from "./load.ts";
import { type Ready, ReceiverProcess } from "./process.ts";
import { type Recovery, recoveryOf } from "./recovery.ts";

/** Answers before a kill, at most. */
const MOST_ANSWERS = 150;
/** The share of processes that are killed while they recover. */
const CUT_SHORT = 0.1;
/** The share of processes that get time to work. A lease that a kill left is retried alone, so that what is killed again at once works on nothing else. */
const LONG_LIVED = 0.15;
const STUCK_MS = 60_000;

export interface Wishes {
  readonly seed: number;
  readonly kills: number;
  /** Objects of Stripe, each with a lane. */
  readonly lanes: number;
  readonly flaws: readonly Flaw[];
}

export interface Outcome {
  readonly kills: number;
  /** Of them, while the process opened the inbox. */
  readonly cutShort: number;
  readonly acknowledged: number;
  readonly unanswered: number;
  /** Forged deliveries that were refused. */
  readonly refused: number;
  /** Events that were handed out more than once. */
  readonly handedOutAgain: number;
  readonly late: ReturnType<typeof lateBills>;
  readonly breaches: readonly Breach[];
  readonly problems: readonly string[];
  readonly recovery: Recovery;
}

export async function torture({ seed, kills, lanes, flaws }: Wishes): Promise<Outcome> {
  const folder = await mkdtemp(join(tmpdir(), "oncehook-crash-"));
  const start = () => new ReceiverProcess({ path: join(folder, "inbox.db"), flaws });
  const torment = new Torment({ folder, start, seed, lanes });
  try {
    return await torment.run(kills);
  } finally {
    await torment.killAll();
    await rm(folder, { recursive: true, force: true });
  }
}

interface TormentOptions extends Pick<Wishes, "seed" | "lanes"> {
  readonly folder: string;
  readonly start: () => ReceiverProcess;
}

class Torment {
  readonly #path: string;
  readonly #copyPath: string;
  readonly #start: () => ReceiverProcess;
  readonly #random;
  readonly #load: Load;
  readonly #breaches = new Map<string, Breach>();
  readonly #problems: string[] = [];
  readonly #readies: Ready[] = [];
  #cutShort = 0;
  #current: ReceiverProcess;
  #next: ReceiverProcess;
  readonly #gate = new Gate();

  constructor({ folder, start, seed, lanes }: TormentOptions) {
    this.#path = join(folder, "inbox.db");
    this.#copyPath = join(folder, "copy.db");
    this.#start = start;
    this.#random = seededRandom(seed);
    this.#load = new Load(seed, lanes, () => this.#gate.port());
    this.#current = start();
    this.#next = start();
  }

  async run(kills: number): Promise<Outcome> {
    await this.#open();
    const sending = this.#load.run();
    for (let kill = 0; kill < kills; kill++) await this.#cycle();
    await this.#welcome();
    this.#load.finish();
    await inTime(sending, "the sender did not finish");
    const code = await this.#current.end();
    if (code !== 0) this.#problems.push(`the last process ended with ${code}`);
    this.#look(contentsOf(this.#path), "ended");
    return this.#outcome(kills);
  }

  async killAll(): Promise<void> {
    await Promise.all([this.#current.kill(), this.#next.kill()]);
  }

  async #cycle(): Promise<void> {
    if (this.#random() < CUT_SHORT) {
      this.#cutShort += 1;
      await wait(this.#random() * 80);
    } else {
      const { port } = await this.#welcome();
      if (this.#random() < LONG_LIVED) await this.#restFrom(port);
      await inTime(this.#load.more(1 + Math.floor(this.#random() * MOST_ANSWERS)), "no answers come");
      await wait(this.#random() * 20);
    }
    this.#gate.close();
    await this.#current.kill();
    const acknowledged = [...this.#load.acknowledged];
    this.#look(contentsAsLeft(this.#path, this.#copyPath), "running", acknowledged);
    this.#current = this.#next;
    this.#next = this.#start();
    await this.#open();
  }

  /** Lets the current process open the inbox, and send whoever waits for a port to it. */
  async #open(): Promise<void> {
    const opened = this.#current;
    await opened.letGo();
    const isCurrent = () => opened === this.#current && !opened.isKilled;
    opened.ready.then(({ port }) => isCurrent() && this.#gate.open(port)).catch(() => {});
  }

  async #welcome(): Promise<Ready> {
    const ready = await inTime(this.#current.ready, "a process is not ready");
    this.#readies.push(ready);
    return ready;
  }

  /** Nothing is sent for a while. */
  async #restFrom(port: number): Promise<void> {
    this.#gate.close();
    await wait(this.#random() * 1_500);
    this.#gate.open(port);
  }

  #look(contents: Contents, moment: History["moment"], acknowledged: Iterable<string> = this.#load.acknowledged): void {
    const { effects, stored, integrity } = contents;
    const { sent, forged } = this.#load;
    const breaches = breachesOf({
      ...{ sent, forged, acknowledged, replayed: [], effects, stored, moment, everyHandlerWrites: true },
    });
    // A breach stays in the file, and is found after each kill from then on.
    for (const breach of breaches) this.#breaches.set(`${breach.kind} ${breach.event}`, breach);
    if (integrity !== "ok") this.#problems.push(`after a kill the file is damaged: ${integrity}`);
  }

  #outcome(kills: number): Outcome {
    const { acknowledged, unanswered, refused, wrong } = this.#load;
    const { stored, effects } = contentsOf(this.#path);
    const total = totalIn(this.#path);
    if (total !== effects.length) this.#problems.push(`${total} second effects for ${effects.length} first ones`);
    return {
      ...{ kills, cutShort: this.#cutShort, acknowledged: acknowledged.size, unanswered, refused },
      handedOutAgain: stored.filter(({ attempts }) => attempts > 1).length,
      late: lateBills(effects),
      breaches: [...this.#breaches.values()],
      problems: [...this.#problems, ...wrong.slice(0, 20).map((answer) => `an answer was ${answer}`)],
      recovery: recoveryOf(this.#readies),
    };
  }
}

/** How often the second effect of an event happened, which is a number and not a row. */
function totalIn(path: string): number {
  const db = new Database(path, { readonly: true });
  try {
    return Number(db.prepare("select events from total").pluck().get());
  } finally {
    db.close();
  }
}

async function inTime<T>(promise: Promise<T>, complaint: string): Promise<T> {
  const alarm = new AbortController();
  const late = wait(STUCK_MS, undefined, { signal: alarm.signal }).then(() => {
    throw new Error(`For ${STUCK_MS / 1_000} s ${complaint}.`);
  });
  late.catch(() => {});
  try {
    return await Promise.race([promise, late]);
  } finally {
    alarm.abort();
  }
}
