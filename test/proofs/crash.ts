/**
 * `npm run prove -- crash`: a receiver on SQLite is killed under 16-way load, 50 times (`--full` 2,000), each time in the middle of its work.
 * It must be ready again within 1 s, except for the slowest of each 50 starts, which one sync of a shared disk can hold up.
 * What an opening takes of the processor is bounded in all of them.
 */
import { Agent } from "node:http";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { seededRandom } from "../../src/tools/testing/index.ts";
import { lateBills, lateLine } from "./bills.ts";
import type { Ready } from "./child.ts";
import { mostRecoveryMs, type Recovery, recoveryLine, recoveryOf, tooSlow } from "./crash-recovery.ts";
import { type Breach, breachCounts, breachesOf, breachLines, type History } from "./history.ts";
import { type Contents, contentsAsLeft, contentsOf, Look } from "./inbox.ts";
import { Asked, compiled } from "./process.ts";
import { inFolder, missingFrom, type Programme, type Proof, seedOr, sizeOf, type Terms } from "./programme.ts";
import type { Description, Flaw } from "./receiving.ts";
import { Mixture, post, requestOf, Sender } from "./sender.ts";

const SIZES = {
  small: { rounds: 1, kills: 10, lanes: 50, acknowledged: 100 },
  short: { rounds: 1, kills: 50, lanes: 50, acknowledged: 1_000 },
  /** An inbox of its own for each round, so that looking at it after each kill stays quick. */
  full: { rounds: 20, kills: 100, lanes: 1_000, acknowledged: 100_000 },
};
const CARELESS: readonly Flaw[] = ["effect_outside_commit", "answer_before_commit"];
const CARELESS_KILLS = 4;
const PARALLEL = 16;
/** Acknowledgements before a kill, at most. */
const MOST_ANSWERS = 150;
/** The share of processes that are killed while they recover. */
const CUT_SHORT = 0.1;
/** The share of processes that get time to work. A lease that a kill left is retried alone, so that what is killed again at once works on nothing else. */
const LONG_LIVED = 0.15;
const STUCK_MS = 60_000;
const SHOWN = 20;

export const crash: Programme = {
  name: "crash",
  what: "nothing acknowledged is lost, twice in effect or out of order when a receiver on SQLite is killed under load; it is ready within 1 s, but for one start in 50",
  hasSmallForm: true,
  async run(terms): Promise<Proof> {
    const { rounds, kills, lanes, acknowledged } = sizeOf(terms, SIZES);
    const first = seedOr(20_251_120);
    const problems: string[] = [];
    let count = 0;
    for (let seed = first; seed < first + rounds; seed++) {
      const outcome = await torture({ seed, kills, lanes, flaws: [] });
      count += outcome.acknowledged;
      terms.say(`SEED=${seed} ${lineOf(outcome)}`);
      const mostMs = mostRecoveryMs();
      if (mostMs > 1_000) terms.say(`the machine is busy: ${mostMs} ms are granted for a recovery, not 1,000`);
      const found = [...problemsOf(outcome), ...tooSlow(outcome.recovery, mostMs)];
      problems.push(...found.map((problem) => `SEED=${seed} ${problem}`));
    }
    if (count < acknowledged) problems.push(`only ${count} events were acknowledged, of ${acknowledged}`);
    if (!terms.small) problems.push(...(await unseen(first, terms.say)));
    return { count, unit: `acknowledged events over ${rounds * kills} kills`, problems };
  },
};

function problemsOf({ kills, unanswered, handedOutAgain, refused, late, breaches, problems }: Outcome): string[] {
  const shown = {
    [`only ${unanswered} deliveries were cut off`]: unanswered > kills,
    [`only ${handedOutAgain} events were handed out again`]: handedOutAgain > kills,
    "no forged delivery was refused": refused > 0,
    [`only ${late.billing[0]} events were late`]: late.billing[0] > kills / 2,
  };
  return [...breachLines(breaches), ...problems, ...missingFrom(shown)];
}

/** The control: a handler that writes by itself, and a front that answers before it stores. */
async function unseen(seed: number, say: Terms["say"]): Promise<string[]> {
  const careless = await torture({ seed, kills: CARELESS_KILLS, lanes: SIZES.small.lanes, flaws: CARELESS });
  say(`careless ${lineOf(careless)}`);
  const kinds = new Set(careless.breaches.map(({ kind }) => kind));
  return missingFrom({
    "careless: effects outside of ctx.commit were not seen twice": kinds.has("double"),
    "careless: what was acknowledged before it was stored was not seen missing": kinds.has("lost"),
  });
}

function lineOf(outcome: Outcome): string {
  const { kills, cutShort, acknowledged, unanswered, handedOutAgain, refused, late, breaches, recovery } = outcome;
  const traffic = `${kills} kills (${cutShort} in a recovery), ${acknowledged} acknowledged, ${unanswered} cut off`;
  const again = `${handedOutAgain} passed to a handler again, ${refused} forged refused, ${lateLine(late)}`;
  return `${traffic}, ${again}; ${recoveryLine(recovery)}: ${breachCounts(breaches)}`;
}

interface Wishes {
  readonly seed: number;
  readonly kills: number;
  /** Objects of Stripe, each with a lane. */
  readonly lanes: number;
  readonly flaws: readonly Flaw[];
}

interface Outcome {
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

/** Kills a receiver under load, again and again on one inbox, and looks at the file after each kill and at the end. */
function torture({ kills, ...wishes }: Wishes): Promise<Outcome> {
  return inFolder(async (folder) => {
    const torment = new Torment(folder, wishes);
    try {
      return await torment.run(kills);
    } finally {
      await torment.killAll();
    }
  });
}

class Torment {
  readonly #folder: string;
  readonly #description: Description & { readonly place: { readonly path: string } };
  readonly #random;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: PARALLEL });
  readonly #sender: Sender;
  readonly #breaches = new Map<string, Breach>();
  readonly #problems: string[] = [];
  readonly #readies: Ready[] = [];
  #cutShort = 0;
  #current: Asked;
  #ready: Promise<Ready>;
  /** Loads its modules while the current one is at work. */
  #next: Asked;
  /** Of the process that takes deliveries; the senders wait while there is none. */
  #port: Promise<number> = Promise.resolve(0);
  #openGate: ((port: number) => void) | null = null;

  constructor(folder: string, { seed, lanes, flaws }: Omit<Wishes, "kills">) {
    this.#folder = folder;
    this.#description = {
      ...{ place: { path: join(folder, "inbox.db") }, sources: ["messages", "billing", "held"], flaws },
      adds: ["effects"],
    };
    this.#random = seededRandom(seed);
    const mixture = new Mixture({ seed, messages: 8, bills: { objects: 4, lanes }, forges: true, repeated: 0.1 });
    this.#sender = new Sender({
      ...{ parallel: PARALLEL, next: mixture.next, againAfterMs: 0 },
      deliver: async (delivery) =>
        post({ port: await this.#port, path: `/${delivery.source}`, agent: this.#agent }, requestOf(delivery)),
    });
    this.#closeGate();
    this.#current = this.#start();
    this.#next = this.#start();
    this.#ready = this.#open();
  }

  async run(kills: number): Promise<Outcome> {
    const sending = this.#sender.run();
    for (let kill = 0; kill < kills; kill++) await this.#cycle();
    await this.#welcome();
    this.#sender.finish();
    await inTime(sending, "the sender did not finish");
    await this.#current.ask("drain");
    this.#problems.push(...(await this.#current.stop()));
    const contents = contentsOf(this.#description.place.path);
    this.#look(contents, "ended", this.#sender.acknowledged);
    return this.#outcome(kills, contents);
  }

  async killAll(): Promise<void> {
    this.#agent.destroy();
    await Promise.all([this.#current.kill(), this.#next.kill()]);
  }

  async #cycle(): Promise<void> {
    if (this.#random() < CUT_SHORT) {
      this.#cutShort += 1;
      await wait(this.#random() * 80);
    } else {
      const { port } = await this.#welcome();
      if (this.#random() < LONG_LIVED) await this.#restFrom(port);
      await inTime(this.#sender.more(1 + Math.floor(this.#random() * MOST_ANSWERS)), "no answers come");
      await wait(this.#random() * 20);
    }
    this.#closeGate();
    await this.#current.kill();
    const acknowledged = [...this.#sender.acknowledged];
    this.#look(contentsAsLeft(this.#description.place.path, this.#folder), "running", acknowledged);
    this.#current = this.#next;
    this.#next = this.#start();
    this.#ready = this.#open();
  }

  #start(): Asked {
    return new Asked(compiled("child.js"), this.#description);
  }

  /** A gate that is closed stays the same one: senders wait at it, though the process that was to open it is killed before. */
  #closeGate(): void {
    if (this.#openGate !== null) return;
    this.#port = new Promise((resolve) => {
      this.#openGate = (port) => {
        this.#openGate = null;
        resolve(port);
      };
    });
  }

  /** Lets the current process open the inbox, and the senders send to it. */
  #open(): Promise<Ready> {
    const opened = this.#current;
    const ready = opened.ask<Ready>("open");
    ready.then(
      ({ port }) => opened === this.#current && !opened.isKilled && this.#openGate?.(port),
      () => {},
    );
    return ready;
  }

  async #welcome(): Promise<Ready> {
    const ready = await inTime(this.#ready, "a process is not ready");
    this.#readies.push(ready);
    return ready;
  }

  /** Nothing is sent for a while. */
  async #restFrom(port: number): Promise<void> {
    this.#closeGate();
    await wait(this.#random() * 1_500);
    this.#openGate?.(port);
  }

  #look({ effects, stored, integrity }: Contents, moment: History["moment"], acknowledged: Iterable<string>): void {
    const { sent, forged } = this.#sender;
    const known = { sent, forged, acknowledged, replayed: [], effects, stored };
    // A breach stays in the file, and is found after each kill from then on.
    for (const breach of breachesOf({ ...known, moment, everyHandlerWrites: true }))
      this.#breaches.set(`${breach.kind} ${breach.event}`, breach);
    if (integrity !== "ok") this.#problems.push(`after a kill the file is damaged: ${integrity}`);
  }

  async #outcome(kills: number, { stored, effects }: Contents): Promise<Outcome> {
    const { acknowledged, refused } = this.#sender;
    const look = new Look(this.#description.place);
    // How often the second effect of an event happened is a number and not a row.
    const total = await look.number("select total from sum");
    await look.remove();
    if (total !== effects.length) this.#problems.push(`${total} second effects for ${effects.length} first ones`);
    const wrong = this.#sender.wrong([0, 200]).slice(0, SHOWN);
    return {
      ...{ kills, cutShort: this.#cutShort, acknowledged: acknowledged.size, refused },
      unanswered: this.#sender.answers.filter(({ status }) => status === 0).length,
      handedOutAgain: stored.filter(({ attempts }) => attempts > 1).length,
      late: lateBills(effects),
      breaches: [...this.#breaches.values()],
      problems: [...this.#problems, ...wrong.map((answer) => `an answer was ${answer}`)],
      recovery: recoveryOf(this.#readies),
    };
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
