/** Deliveries to a receiver whose calls are recorded with all their bytes, and the disk as a power cut may leave it at each answer. */
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
import { mkdtemp, rm } from "node:fs/promises";
import { Agent } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import Database from "better-sqlite3";
import { seededRandom } from "../../../src/testing/index.ts";
import { endTraced, traced } from "../durability/strace.ts";
import { deliver, markerOf, portOf } from "../durability/traced-run.ts";
import { Disk } from "./disk.ts";
import { RECORDED_CALLS, RECORDING, Recording } from "./recording.ts";

const SERVER = ".build/test/proofs/durability/server.js";
const PARALLEL = 8;
/** In a rest the log is copied into the file, for the first time in a process. */
const LONGEST_REST_MS = 10_000;
const LOOK_EVERY_MS = 20;
/** Parts of a process's deliveries, with a rest between: the log is begun anew after it. */
const BURSTS = 2;
/** The share of other operations at which the power is cut as well. */
const BETWEEN = 0.15;

export interface Wishes {
  readonly seed: number;
  /** One after the other, on the same inbox. */
  readonly processes: number;
  /** To each of them. */
  readonly deliveries: number;
  /** What the driver sets in place of `synchronous=FULL`. */
  readonly pretence?: "NORMAL";
}

export interface Outcome {
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

export async function cutPower(wishes: Wishes): Promise<Outcome> {
  const folder = realpathSync(await mkdtemp(join(tmpdir(), "oncehook-power-")));
  try {
    mkdirSync(join(folder, "inbox"));
    const cuts = new Cuts(join(folder, "cut"), wishes.seed);
    for (let process = 0; process < wishes.processes; process++) {
      const log = join(folder, "calls");
      await record(wishes, { folder: join(folder, "inbox"), log, first: process * wishes.deliveries });
      for await (const step of new Recording(join(folder, "inbox")).read(log)) {
        if (step.kind === "acknowledged") cuts.acknowledge(step.marker);
        else cuts.apply(step);
      }
    }
    cuts.compareWith(join(folder, "inbox"));
    return cuts.outcome;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

interface Session {
  readonly folder: string;
  readonly log: string;
  /** The number of its first delivery. */
  readonly first: number;
}

async function record({ deliveries, pretence }: Wishes, { folder, log, first }: Session): Promise<void> {
  const driver = pretence === undefined ? [] : [pretence];
  const server = traced({ calls: RECORDED_CALLS, more: RECORDING, log }, [SERVER, join(folder, "inbox.db"), ...driver]);
  try {
    const port = await portOf(server);
    const agent = new Agent({ keepAlive: true, maxSockets: PARALLEL });
    const size = deliveries / BURSTS;
    for (let burst = 0; burst < BURSTS; burst++) {
      if (burst > 0) await untilWritten(join(folder, "inbox.db"));
      const markers = Array.from({ length: size }, (_, index) => markerOf(first + burst * size + index));
      const sent = markers.map((marker) => deliver(port, agent, marker));
      const refused = (await Promise.all(sent)).filter((status) => status !== 200);
      if (refused.length > 0) throw new Error(`${refused.length} deliveries were answered with ${refused[0]}.`);
    }
    agent.destroy();
    await endTraced(server);
  } finally {
    server.kill("SIGKILL");
  }
}

/**
 * Resolves when the file itself is written, which is when the log is copied into it; or after the longest rest, since it may have been
 * written before the first look. What is delivered next finds the log copied and synced: the receiver does nothing meanwhile.
 */
async function untilWritten(file: string): Promise<void> {
  const deadline = performance.now() + LONGEST_REST_MS;
  const { mtimeMs } = statSync(file);
  while (statSync(file).mtimeMs === mtimeMs && performance.now() < deadline) await wait(LOOK_EVERY_MS);
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
      const events = "select l.message from oncehook_event e join oncehook_lane l on l.id = e.lane";
      return new Set(db.prepare(events).pluck().all() as string[]);
    } finally {
      db.close();
    }
  }
}
