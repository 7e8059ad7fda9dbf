/** The service's side of a world: attempts at each sending by its schedule, and what it heard of them. */
import { createHash } from "node:crypto";
import type { KnownEvent } from "../../../src/index.ts";
import type { Clock } from "../../../src/internal/clock.ts";
import {
  incomingOf,
  RETRY_MINUTES,
  type SourceRequestOptions,
  signedRequest,
} from "../../../src/tools/testing/index.ts";
import { otherIdentity, pushDelivery, type SourceName, serviceIdentity } from "../sources.ts";
import { Dice } from "./dice.ts";
import type { Process } from "./process.ts";
import type { Sending } from "./sendings.ts";

/** How long it waits for an answer (DLV-19). */
const ANSWER_MS = 10_000;
const WRONG_SECRET = "whsec_of_somebody_else_0123456789";

export interface ServiceOptions {
  readonly seed: number;
  readonly clock: Clock;
  readonly answersLost: number;
  /** Those that a request of a source can reach. */
  readonly reachable: (source: SourceName) => readonly Process[];
  /** How often the receivers' clock was set; null while it is wrong, so that they need not know a good signature. */
  readonly clockSettings: () => number | null;
  readonly say: (line: string) => void;
  /** Called when a receiver answers an event with 2xx, before the service hears of it. */
  readonly accepted: (identity: string) => Promise<void>;
}

export class Service {
  readonly sent: string[] = [];
  /** Markers of what it did not send. */
  readonly forged: string[] = [];
  /** Names of what was answered with 2xx; of a forgery its marker. */
  readonly acknowledged: string[] = [];
  /** Answers that no receiver may give. */
  readonly strange: string[] = [];
  attempts = 0;
  /** Sendings that still have attempts to come. */
  open = 0;
  readonly #options: ServiceOptions;

  constructor(options: ServiceOptions) {
    this.#options = options;
  }

  plan(sendings: readonly Sending[]): void {
    const { clock, seed } = this.#options;
    this.open = sendings.length;
    for (const [index, sending] of sendings.entries()) {
      const text = bodyOf(sending);
      const name = nameOf(sending, text);
      if (sending.signed === "well") this.sent.push(name);
      else this.forged.push(sending.marker);
      const dice = new Dice(seed, `attempts at ${index}`);
      clock.setTimeout(() => this.#attempt({ index, sending, text, name, dice, firstAt: clock.now() }, 0), sending.at);
    }
  }

  #attempt(task: Task, number: number): void {
    const { clock, answersLost } = this.#options;
    this.attempts += 1;
    let isOver = false;
    const over = (heard: string, isAcknowledged = false) => {
      if (isOver) return;
      isOver = true;
      timer.cancel();
      this.#options.say(`service: ${task.name.slice(0, 8)} ${task.sending.marker}, attempt ${number + 1}: ${heard}`);
      if (isAcknowledged) this.acknowledged.push(task.sending.signed === "well" ? task.name : task.sending.marker);
      const wait = RETRY_MINUTES[number];
      if (isAcknowledged || !task.sending.retried || wait === undefined) this.open -= 1;
      else clock.setTimeout(() => this.#attempt(task, number + 1), wait * 60_000);
    };
    const timer = clock.setTimeout(() => over("no answer in time"), ANSWER_MS);
    const isLost = task.dice.chance(answersLost);
    const process = this.#chosen(task);
    if (process === undefined || (isLost && task.dice.chance(0.3))) return over("connection refused");
    void this.#deliver(task, process).then((status) => {
      if (isLost) return over(`${status}, which got lost`);
      over(String(status), status >= 200 && status < 300);
    });
  }

  #chosen({ dice, sending }: Task): Process | undefined {
    const processes = this.#options.reachable(sending.source);
    return processes.length === 0 ? undefined : dice.pick(processes);
  }

  /** A process that is dead or stands still answers nothing, or later. */
  async #deliver({ index, sending, text, name, firstAt }: Task, process: Process): Promise<number> {
    const { clock, clockSettings, accepted } = this.#options;
    const timestamp = Math.floor(sending.frozen ? firstAt : clock.now());
    const secret = sending.signed === "wrongly" ? { secret: WRONG_SECRET } : {};
    const signing = signingOf(sending, text, index);
    // What is altered on the way was another body when it was signed.
    const signed = sending.signed === "altered" ? `${text} ` : text;
    const { headers } = signedRequest(signed, { timestamp, ...secret, ...signing });
    const body = new TextEncoder().encode(text);
    const settings = clockSettings();
    await process.pass("is sent a delivery");
    const { status } = await process.handle(sending.source, incomingOf({ method: "POST", headers, body }));
    const isAccepted = status >= 200 && status < 300 && sending.signed === "well";
    if (isAccepted && typeof sending.content === "object") await accepted(name);
    await process.pass("answers a delivery");
    const allowed = sending.signed === "well" ? [200, 503] : [401, 503];
    const clockIsRight = settings !== null && settings === clockSettings();
    const isStrange = !allowed.includes(status) && (clockIsRight || status !== 401);
    if (isStrange) this.strange.push(`${status} for a delivery of ${sending.marker} that was signed ${sending.signed}`);
    return status;
  }
}

interface Task {
  readonly index: number;
  readonly sending: Sending;
  /** Its body. */
  readonly text: string;
  readonly name: string;
  readonly dice: Dice;
  readonly firstAt: number;
}

/** A repeat of a push comes under another id and type. */
function signingOf({ source, retried }: Sending, text: string, index: number): Partial<SourceRequestOptions> {
  if (source === "messages") return {};
  return source === "billing" ? { source: "stripe" } : pushDelivery(text, retried ? 0 : index);
}

function bodyOf({ content }: Sending): string {
  return typeof content === "string" ? content : JSON.stringify(content);
}

/** The event's identity; the digest of a body that is none and of what its secret vouches for, as the quarantine has it. */
function nameOf({ source, content }: Sending, text: string): string {
  const body = Buffer.from(text);
  if (typeof content === "string") {
    const owner = JSON.stringify([source, null, []]);
    return createHash("sha256").update(owner).update(body).digest("hex");
  }
  if (source !== "messages") return otherIdentity(source, body);
  return serviceIdentity(content as KnownEvent);
}
