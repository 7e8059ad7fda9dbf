/** `npm run prove -- power`: the disk as a power cut leaves it at each of 100 acknowledgements (`--full` 2,000), rebuilt from what was synced. */
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import { seededRandom } from "../../src/tools/testing/index.ts";
import { Disk } from "./power-disk.ts";
import { RECORDED_CALLS, RECORDING, Recording } from "./power-recording.ts";
import { inFolder, missingFrom, type Programme, type Proof, seedOr, sizeOf, type Terms, within } from "./programme.ts";
import { straceIsMissing, TracedReceiver } from "./strace.ts";

interface Size {
  /** One after the other, on the same inbox. */
  readonly processes: number;
  /** To each of them. */
  readonly deliveries: number;
}

const SIZES = {
  small: { processes: 1, deliveries: 40 },
  short: { processes: 2, deliveries: 50 },
  full: { processes: 20, deliveries: 100 },
};
/** In a rest the log is copied into the file, for the first time in a process. */
const LONGEST_REST_MS = 10_000;
/** Parts of a process's deliveries, with a rest between: the log is begun anew after it. */
const BURSTS = 2;
/** The share of other operations at which the power is cut as well. */
const BETWEEN = 0.15;

interface Outcome {
  /** Cuts at an acknowledgement, and at other operations. */
  readonly cuts: number;
  readonly between: number;
  /** Disks that were built and looked at. */
  readonly disks: number;
  readonly syncs: number;
  /** Copies of the log into the file after the first acknowledgement, by the syncs of the latter. */
  readonly checkpoints: number;
  /** Acknowledged deliveries that a disk did not hold. */
  readonly lost: readonly string[];
  readonly damaged: readonly string[];
  /** Files that are not as the recording says: then it left something out. */
  readonly unlike: readonly string[];
}

export const power: Programme = {
  name: "power",
  what: "a disk that holds what was synced before a 2xx, and any part of what was not, holds every acknowledged event",
  hasSmallForm: true,
  async run(terms): Promise<Proof> {
    const unit = "power cuts at an acknowledgement";
    const missing = straceIsMissing();
    if (missing !== null) return { count: 0, unit, problems: [`left out: ${missing}`] };
    const seed = seedOr(20_251_120);
    const size = sizeOf(terms, SIZES);
    const outcome = await cutPower(seed, size);
    terms.say(`SEED=${seed} ${lineOf(outcome)}`);
    const found = [...problemsOf(outcome), ...shortcomings(outcome, size)];
    const problems = found.map((problem) => `SEED=${seed} ${problem}`);
    if (!terms.small) problems.push(...(await unseen(seed, terms.say)));
    return { count: outcome.cuts, unit, problems };
  },
};

/** The control: a driver that only says `FULL`. */
async function unseen(seed: number, say: Terms["say"]): Promise<string[]> {
  const control = await cutPower(seed, SIZES.small, "NORMAL");
  say(`NORMAL ${lineOf(control)}`);
  return missingFrom({ "with NORMAL nothing was seen lost": control.lost.length > 0 });
}

function problemsOf({ lost, damaged, unlike }: Outcome): string[] {
  return [
    ...lost.slice(0, 20).map((marker) => `lost ${marker}`),
    ...damaged.slice(0, 20),
    ...unlike.map((name) => `the recording of ${name} does not make the file that is there`),
  ];
}

/** What must have happened for the outcome to say something. */
function shortcomings({ cuts, between, checkpoints }: Outcome, { processes, deliveries }: Size): string[] {
  return missingFrom({
    [`only ${cuts} acknowledgements were seen`]: cuts === processes * deliveries,
    [`only ${between} cuts fell between acknowledgements`]: between > cuts / 10,
    // In its rest, and when it closes.
    [`the log was copied into the file only ${checkpoints} times`]: checkpoints >= 1.5 * processes,
  });
}

function lineOf({ cuts, between, disks, syncs, checkpoints, lost, damaged }: Outcome): string {
  const looked = `${cuts} cuts at an acknowledgement and ${between} between, ${disks} disks`;
  return `${looked}, ${syncs} syncs, ${checkpoints} of them of the file itself: ${lost.length} lost, ${damaged.length} damaged`;
}

/** Deliveries to a receiver whose calls are recorded with all their bytes, and the disk as a power cut may leave it at each answer. */
function cutPower(seed: number, { processes, deliveries }: Size, pretence?: "NORMAL"): Promise<Outcome> {
  return inFolder(async (given) => {
    const folder = join(realpathSync(given), "inbox");
    mkdirSync(folder);
    const place = { path: join(folder, "inbox.db") };
    const cuts = new Cuts(join(given, "cut"), seed);
    for (let process = 0; process < processes; process++) {
      const log = join(given, "calls");
      const driver = pretence === undefined ? {} : { driver: pretence };
      const receiver = await TracedReceiver.start(
        { place, ...driver },
        { calls: RECORDED_CALLS, more: RECORDING, log },
      );
      const size = deliveries / BURSTS;
      for (let burst = 0; burst < BURSTS; burst++) {
        if (burst > 0) await untilWritten(place.path);
        await receiver.deliver(process * deliveries + burst * size, size);
      }
      await receiver.stop();
      for await (const step of new Recording(folder).read(log)) {
        if (step.kind === "acknowledged") cuts.acknowledge(step.marker);
        else cuts.apply(step);
      }
    }
    cuts.compareWith(folder);
    return cuts.outcome;
  });
}

/**
 * Resolves when the file itself is written, which is when the log is copied into it; or after the longest rest, since it may have been
 * written before the first look. What is delivered next finds the log copied and synced: the receiver does nothing meanwhile.
 */
async function untilWritten(file: string): Promise<void> {
  const { mtimeMs } = statSync(file);
  await within(LONGEST_REST_MS, () => statSync(file).mtimeMs !== mtimeMs);
}

class Cuts {
  readonly #disk = new Disk();
  readonly #folder: string;
  readonly #random;
  readonly #acknowledged = new Set<string>();
  readonly #lost = new Set<string>();
  readonly #damaged: string[] = [];
  readonly #unlike: string[] = [];
  /** What the disk holds if nothing reached it but what was synced; null when that is to be looked at anew. */
  #strict: ReadonlySet<string> | null = null;
  #counts = { cuts: 0, between: 0, disks: 0, syncs: 0, checkpoints: 0 };

  constructor(folder: string, seed: number) {
    this.#folder = folder;
    this.#random = seededRandom(seed);
  }

  get outcome(): Outcome {
    return { ...this.#counts, lost: [...this.#lost], damaged: this.#damaged, unlike: this.#unlike };
  }

  apply(operation: Parameters<Disk["apply"]>[0]): void {
    if (operation.kind === "sync") {
      this.#counts.syncs += 1;
      if (operation.path === "inbox.db" && this.#acknowledged.size > 0) this.#counts.checkpoints += 1;
    }
    this.#disk.apply(operation);
    this.#strict = null;
    if (this.#random() < BETWEEN) {
      this.#counts.between += 1;
      this.#compare(this.#look(this.#disk.torn(this.#random)), "torn between");
    }
  }

  acknowledge(marker: string): void {
    this.#acknowledged.add(marker);
    this.#counts.cuts += 1;
    this.#strict ??= this.#look(this.#disk.strict());
    this.#compare(this.#strict, "synced only");
    this.#compare(this.#look(this.#disk.torn(this.#random)), "torn");
  }

  /** Holds the recording against the files that the receiver left. */
  compareWith(folder: string): void {
    const seen = this.#disk.seen();
    const names = new Set([...seen.keys(), ...readdirSync(folder)]);
    for (const name of names) {
      const path = join(folder, name);
      const isLike = existsSync(path) && seen.get(name)?.equals(readFileSync(path)) === true;
      if (!isLike) this.#unlike.push(name);
    }
  }

  #compare(held: ReadonlySet<string>, how: string): void {
    for (const marker of this.#acknowledged) {
      if (!held.has(marker)) this.#lost.add(`${marker} (cut ${this.#counts.cuts}, ${how})`);
    }
  }

  /** The messages in the inbox of a machine that starts with these files. */
  #look(files: ReadonlyMap<string, Buffer>): ReadonlySet<string> {
    this.#counts.disks += 1;
    rmSync(this.#folder, { recursive: true, force: true });
    mkdirSync(this.#folder);
    for (const [path, content] of files) writeFileSync(join(this.#folder, path), content);
    try {
      return this.#read(join(this.#folder, "inbox.db"));
    } catch (error) {
      this.#damaged.push(`cut ${this.#counts.cuts}: ${error instanceof Error ? error.message : String(error)}`);
      return new Set();
    }
  }

  #read(path: string): ReadonlySet<string> {
    const db = new Database(path);
    try {
      // The copy is thrown away.
      db.pragma("synchronous = OFF");
      const integrity = db.pragma("integrity_check", { simple: true });
      if (integrity !== "ok") this.#damaged.push(`cut ${this.#counts.cuts}: ${String(integrity)}`);
      const hasEvents = db.prepare("select 1 from sqlite_master where name = 'oncehook_event'").get() !== undefined;
      if (!hasEvents) return new Set();
      const events = "select l.name from oncehook_event e join oncehook_lane l on l.id = e.lane";
      return new Set(db.prepare(events).pluck().all() as string[]);
    } finally {
      db.close();
    }
  }
}
