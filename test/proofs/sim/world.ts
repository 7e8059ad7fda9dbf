/** One seed's world: processes on one inbox, a service that sends, and time that passes when all have settled. */
import type { LaneOrder } from "../../../src/inbox/record.ts";
import type { EventSummary, InboxStore } from "../../../src/index.ts";
import { silentLogger } from "../../../src/internal/logger.ts";
import { thisInstance } from "../../../src/internal/process.ts";
import { createFakeClock, type FakeClock } from "../../../src/tools/testing/index.ts";
import { effectOf, type HandledEffect, ownOf } from "../history.ts";
import { orderOf, type SourceName, wrongEvent } from "../sources.ts";
import { type Course, isWanted, type Mishap } from "./course.ts";
import { Dice } from "./dice.ts";
import { type Handling, handleBy, type Manner, mannerOf, markerIn, takesMs, writes } from "./handlers.ts";
import { Operator } from "./operator.ts";
import { patientClock } from "./pace.ts";
import type { Connection, Place } from "./places.ts";
import { type HandedEvent, keyOfMessage, Process, type Reported, type Surroundings } from "./process.ts";
import { Said } from "./said.ts";
import { BEGINNING } from "./sendings.ts";
import { Service } from "./service.ts";

const MINUTE = 60_000;
/** After so long with nothing going wrong any more, whatever is not settled never will be. */
const LONGEST_END_MS = 30 * 60 * MINUTE;
/** More hand-outs than these for each sending have no end: with 12 attempts, and as many processes that die in one. */
const MOST_TRIES = 30;
/** A wrong clock within the tolerance of timestamps is right enough. */
const HARMLESS_MS = 2 * MINUTE;

/** Asked of the system once: it looks into files. */
const OBSERVER = thisInstance();

/** An event's start in a handler. */
export interface HandOut {
  readonly event: number;
  readonly identity: string;
  readonly order: LaneOrder | null;
  readonly lane: string;
  readonly sequence: number;
  /** As its sender gave it; 0 without one. */
  readonly position: number;
  readonly handler: "on" | "late";
  readonly replay: boolean;
  readonly flagged: boolean;
  /** `ctx.outOfOrder`. */
  readonly outOfOrder: boolean;
  readonly attempt: number;
  readonly manner: Manner;
  /** By the machine's clock. */
  readonly at: number;
  /** When it started, by the world's own clock. */
  readonly startedAt: number;
  /** What the rate counts it for. */
  readonly rateKey: string;
  /** Null while its handler runs, or when its process died in it. */
  ended: HandlersEnd | null;
}

/** The end of an event's handler. */
export interface HandlersEnd {
  /** It did not fail. */
  readonly isWell: boolean;
  /** By the machine's clock. */
  readonly at: number;
  readonly afterMs: number;
}

export class World implements Surroundings {
  readonly course: Course;
  readonly clock: FakeClock;
  readonly service: Service;
  readonly handOuts: HandOut[] = [];
  /** Events that reached a handler other than they should. */
  readonly wrong: string[] = [];
  /** What happened, for whoever reads it. */
  readonly story: string[] = [];
  /** The world's own look into the inbox, which no mishap befalls. */
  readonly observer: InboxStore<unknown>;
  readonly place: Place;
  /** How often what befell a process, and its clock. */
  readonly befell = { "stands still": 0, dies: 0, restarts: 0, "is set": 0 };
  /** How often a process left an event to another, which has its source. */
  putOffs = 0;
  /** Identities of events whose handlers write nothing. */
  readonly withoutEffect = new Set<string>();
  readonly said: Said;
  /** Events that reached a handler while another of their lane was in one. */
  readonly overlaps: string[] = [];
  isStuck = false;
  /** Handlers at work, by process and source. */
  readonly #atWork = new Map<string, number>();
  /** The process that handles an event of a lane, by lane. */
  readonly #handling = new Map<number, Process>();
  readonly #observed: Connection;
  readonly #operator: Operator;
  readonly #tells: boolean;
  readonly #mishaps: Mishap[];
  #processes: Process[] = [];
  #awaits = 0;
  #started = 0;
  #wrongByMs = 0;
  #clockSettings = 0;
  #knocking = false;
  #isHealed = false;

  constructor(course: Course, place: Place, tells: boolean) {
    this.course = course;
    this.place = place;
    const clock = createFakeClock(BEGINNING);
    this.clock = place.server === undefined ? clock : patientClock(clock, place.server);
    this.#tells = tells;
    this.#mishaps = [...course.mishaps];
    this.#observed = place.connect();
    this.observer = this.#observed.store;
    this.said = new Said(this.observer, course.receiver.ack);
    this.#operator = new Operator(this.observer, () => this.#running(), this.say);
    this.service = new Service({
      ...{ seed: course.seed, clock: this.clock, answersLost: course.answersLost, say: this.say },
      reachable: (source) => this.#processes.filter(({ isLeaving, sources }) => !isLeaving && sources.includes(source)),
      clockSettings: () => (Math.abs(this.#wrongByMs) > HARMLESS_MS ? null : this.#clockSettings),
      accepted: (identity) => this.said.answered(identity),
    });
  }

  readonly say = (line: string): void => {
    if (!this.#tells) return;
    const seconds = ((this.clock.now() - BEGINNING) / 1_000).toFixed(3);
    this.story.push(`${seconds.padStart(10)}  ${line}`);
  };

  readonly wallClock = (): number => Math.floor(this.clock.now()) + this.#wrongByMs;

  storeIs(kind: Course["troubles"][number]["kind"]): boolean {
    if (this.#isHealed) return false;
    const now = this.clock.now() - BEGINNING;
    return this.course.troubles.some((one) => one.kind === kind && one.at <= now && now < one.at + one.forMs);
  }

  /** Lives through the whole course, and on until all has settled. */
  async live(): Promise<void> {
    const context = { clock: { ...this.clock, now: this.wallClock }, logger: silentLogger, migrate: "auto" as const };
    const rules = { name: "default", toleranceMs: 95 * MINUTE };
    await this.observer.open({ ...context, rules, instance: OBSERVER });
    for (let index = 0; index < this.course.processes; index++) this.#start();
    this.service.plan(this.course.sendings);
    for (const jump of this.course.jumps) {
      this.clock.setTimeout(() => this.#jump(jump.byMs), jump.at);
      if (jump.forMs !== null) this.clock.setTimeout(() => this.#jump(0), jump.at + jump.forMs);
    }
    for (const act of this.course.acts) this.clock.setTimeout(() => void this.#operator.act(act), act.at);
    while (this.service.open > 0) {
      await this.clock.advance(MINUTE / 2);
      if (this.course.holdBackMs > 0) await this.#lookAtHeldBack();
      if (this.course.filters !== null) await this.#lookAtGaps();
    }
    await this.#end();
  }

  async leave(): Promise<void> {
    for (const process of this.#processes) process.die(true);
    await this.#observed.cut(true);
  }

  awaited(process: Process, where: string): void {
    if (this.#isHealed || process.isDead || process.isStill) return;
    this.#awaits += 1;
    const [mishap] = this.#mishaps;
    if (mishap === undefined || this.#awaits < mishap.at) return;
    this.#mishaps.shift();
    this.befell[mishap.kind] += 1;
    this.say(`${process.name} ${mishap.kind} for ${mishap.forMs} ms as it ${where}`);
    if (mishap.kind === "stands still") this.#standStill(process, mishap.forMs);
    else if (mishap.kind === "dies") this.#die(process, mishap);
    else void this.#restart(process, mishap.forMs);
  }

  /** The inbox tells the others within 100 ms, however it does that; a process's end does not stop it. */
  knock(): void {
    if (this.#knocking || this.course.processes === 1) return;
    this.#knocking = true;
    this.clock.setTimeout(() => {
      this.#knocking = false;
      for (const process of this.#processes) process.knocked();
    }, 100);
  }

  putOff(events: number): void {
    this.putOffs += events;
  }

  reported(kind: "failure" | "dead letter", notice: Reported): void {
    // A world that has ended has closed the inbox that is looked at.
    void this.said.reported(kind, notice).catch(() => {});
  }

  handle({ process, source, handler, event, ctx }: HandedEvent): unknown {
    const effect = effectOf(ctx, { ...ownOf(event, handler), marker: markerIn(ctx.rawBody) });
    const wrong = wrongEvent(source, event, ctx);
    if (wrong !== null) this.wrong.push(wrong);
    if (!isWanted(this.course, source, event)) this.wrong.push(`${ctx.identity} was filtered, and reached a handler`);
    const manner = mannerOf(this.course, ctx, this.#isHealed);
    const { identity, lane, sequence, late, replay } = effect;
    if (source !== "messages" && ctx.missing !== null)
      this.wrong.push(`${lane} ${sequence} waited for what is missing before it, where nothing can be`);
    const handOut: HandOut = {
      ...{ event: ctx.meta.eventId, identity, order: orderOf(source, ctx.meta.lane), lane, sequence, handler, replay },
      ...{ position: "created" in event ? Number(event.created) : 0, flagged: late || replay, at: this.wallClock() },
      ...{ outOfOrder: ctx.outOfOrder, attempt: ctx.attempt, manner, ended: null },
      ...{ startedAt: this.clock.monotonic(), rateKey: this.#rateKeyOf(source, event) },
    };
    this.handOuts.push(handOut);
    const flags = `${late ? ", late" : ""}${replay ? ", replay" : ""}`;
    this.say(`${process.name} handles ${lane} ${sequence}, attempt ${ctx.attempt}${flags}: ${manner}`);
    const write = () => this.#write(ctx, effect);
    const timeoutMs = this.course.receiver.handlerTimeoutMs;
    const handling = { process, ctx, manner, timeoutMs, takesMs: takesMs(this.course, ctx, timeoutMs), write };
    const handle = () => this.#noteEnd(handOut, () => this.#noteOverlap(handling, () => handleBy(handling)));
    return this.#noteCrowd(handling, source, handle);
  }

  /** A handler that runs on after its time leaves its place before it ends. */
  #noteCrowd({ process, manner }: Handling, source: SourceName, handle: () => unknown): unknown {
    const { each } = this.course;
    const result = handle();
    if (each === null || !(result instanceof Promise) || manner === "never ends" || manner === "overstays")
      return result;
    const key = `${process.name} ${source}`;
    const running = (this.#atWork.get(key) ?? 0) + 1;
    this.#atWork.set(key, running);
    if (running > each) this.wrong.push(`${key}: ${running} handlers ran at once, and not ${each} at most`);
    const end = () => void this.#atWork.set(key, (this.#atWork.get(key) ?? 1) - 1);
    result.then(end, end);
    return result;
  }

  #rateKeyOf(source: SourceName, event: object): string {
    const per = this.course.rate?.per ?? "inbox";
    return per === "message" ? keyOfMessage(event) : per === "source" ? source : "";
  }

  #write(ctx: HandedEvent["ctx"], effect: HandledEffect): void {
    if (writes(this.course, effect.identity)) ctx.commit((tx) => this.place.write(tx, effect));
    else this.withoutEffect.add(effect.identity);
  }

  #noteEnd(handOut: HandOut, handle: () => unknown): unknown {
    const begunAt = this.clock.monotonic();
    const note = (isWell: boolean) => {
      handOut.ended = { isWell, at: this.wallClock(), afterMs: this.clock.monotonic() - begunAt };
    };
    try {
      const result = handle();
      if (result instanceof Promise) {
        result.then(
          () => note(true),
          () => note(false),
        );
      } else note(handOut.manner !== "effect throws");
      return result;
    } catch (error) {
      note(false);
      throw error;
    }
  }

  /** A handler that runs on after its time may overlap its own retry. */
  #noteOverlap({ process, ctx, manner }: Handling, handle: () => unknown): unknown {
    const { laneId, lane, sequence } = ctx.meta;
    const running = this.#handling.get(laneId);
    if (running !== undefined && !running.isDead)
      this.overlaps.push(`${lane} ${sequence} was passed to a handler while another was in one`);
    const result = handle();
    if (!(result instanceof Promise) || manner === "never ends" || manner === "overstays") return result;
    this.#handling.set(laneId, process);
    const end = () => void this.#handling.delete(laneId);
    result.then(end, end);
    return result;
  }

  /** A lane that is held back is due when any of its events has waited so long. */
  async #lookAtHeldBack(): Promise<void> {
    const { items } = await this.observer.findLanes({ order: "position", statuses: ["gap"], limit: 1_000 });
    for (const { id } of items) {
      const { status, readyAt, events = [], key } = (await this.observer.lane(id)) ?? {};
      const held = events.filter(({ state, late, forced }) => state === "pending" && !late && !forced);
      const due = Math.min(...held.map(({ acceptedAt }) => acceptedAt)) + this.course.holdBackMs;
      if (status === "gap" && Number(readyAt) > due)
        this.wrong.push(`${key?.name} was held back until ${readyAt}, though it is due at ${due}`);
    }
  }

  /** A filtered event is not missing: a lane that waits for nothing else goes on at once. */
  async #lookAtGaps(): Promise<void> {
    const { items } = await this.observer.findLanes({ order: "sequence", statuses: ["gap"], limit: 1_000 });
    for (const { id } of items) {
      const { status, cursor = null, events = [], key } = (await this.observer.lane(id)) ?? {};
      const head = events.find(({ state, late }) => state === "pending" && !late)?.sequence ?? 0;
      const known = new Set(events.map(({ sequence }) => sequence));
      let next = cursor === null ? Number(this.course.receiver.firstSequence) : cursor + 1;
      while (known.has(next)) next++;
      if (status === "gap" && next >= head) this.wrong.push(`${key?.name} ${head} waits, and nothing is missing`);
    }
  }

  async events(): Promise<readonly EventSummary[]> {
    const events: EventSummary[] = [];
    for (let after: number | null | undefined; after !== null; ) {
      const page = await this.observer.find({ order: "oldest", limit: 1_000, ...(after !== undefined && { after }) });
      events.push(...page.items);
      after = page.next;
    }
    return events;
  }

  #running(): Process[] {
    return this.#processes.filter((process) => !process.isDead && !process.isStill);
  }

  #start(): void {
    const name = `process ${++this.#started}`;
    const connection = this.place.connect(() => this.storeIs("does not commit"));
    const process = new Process({ name, sources: this.#sourcesOf(name) }, connection, this);
    this.#processes.push(process);
    const open = () => {
      process.receiver.start().catch(() => process.clock.setTimeout(open, 1_000));
    };
    open();
  }

  /** As in a deployment that adds sources: some processes have them, and in the end one has all. */
  #sourcesOf(name: string): readonly SourceName[] {
    const { sources, seed } = this.course;
    const dice = new Dice(seed, `sources of ${name}`);
    if (this.#isHealed || dice.chance(0.5)) return sources;
    return sources.filter((source) => source === "messages" || dice.chance(0.5));
  }

  #standStill(process: Process, ms: number): void {
    process.standStill();
    this.clock.setTimeout(() => process.goOn(), ms);
  }

  #die(process: Process, { at, forMs }: Pick<Mishap, "at" | "forMs">): void {
    process.die(at % 2 === 0);
    this.#processes = this.#processes.filter((one) => one !== process);
    this.clock.setTimeout(() => this.#start(), forMs);
  }

  async #restart(process: Process, afterMs: number): Promise<void> {
    if (process.isLeaving) return;
    process.isLeaving = true;
    await process.receiver.stop({ timeoutMs: 3_000 }).catch(() => {});
    // It may have died on the way, and is started again then.
    if (!process.isDead) this.#die(process, { at: 0, forMs: afterMs });
  }

  #jump(byMs: number): void {
    if (!this.#isHealed) this.#setClock(byMs);
  }

  #setClock(byMs: number): void {
    this.say(`the clock is set to ${byMs} ms ahead`);
    this.befell["is set"] += 1;
    this.#wrongByMs = byMs;
    this.#clockSettings += 1;
  }

  /** Nothing goes wrong any more, until nobody waits for anything. */
  async #end(): Promise<void> {
    this.say("from here on nothing goes wrong");
    this.#isHealed = true;
    if (Math.abs(this.#wrongByMs) > HARMLESS_MS) this.#setClock(0);
    for (const process of this.#processes) process.goOn();
    const [first] = this.#processes;
    const isLacking = this.course.sources.some((source) =>
      this.#processes.every(({ sources }) => !sources.includes(source)),
    );
    if (first !== undefined && isLacking) void this.#restart(first, 1_000);
    const deadline = this.clock.monotonic() + LONGEST_END_MS;
    for (;;) {
      if (this.#processes.length === this.course.processes) await this.#operator.unblockAll();
      await this.clock.advance(1_000);
      const dueInMs = await this.observer.nextDue();
      const { gauges } = await this.observer.stats();
      if (dueInMs === null && gauges.pending === 0) return;
      this.isStuck =
        this.clock.monotonic() > deadline || this.handOuts.length > MOST_TRIES * this.course.sendings.length;
      if (this.isStuck) return;
      await this.clock.advance(Math.min(Math.max(dueInMs ?? 0, 1), 10 * MINUTE));
    }
  }
}
