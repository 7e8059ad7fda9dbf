/** The sender of the programmes: what is delivered, how it is signed and posted, and what became of each delivery. */
import { type Agent, request } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import type { KnownEvent } from "../../src/index.ts";
import {
  fixtures,
  lifecycle,
  type SignedRequest,
  seededRandom,
  shuffled,
  signedRequest,
} from "../../src/tools/testing/index.ts";
import { type Bill, Bills } from "./bills.ts";
import type { Answered, Handed } from "./child.ts";
import type { Asked } from "./process.ts";
import { isOfStripe, otherIdentity, pushDelivery, type SourceName, serviceIdentity } from "./sources.ts";

const FORGERS_SECRET = "a-secret-that-nobody-configured-";
/** What a delivery is answered with by a process that is gone. */
const UNANSWERED: Answered = { status: 0, outcome: "" };

export interface Delivery {
  readonly source: SourceName;
  readonly event: object;
  readonly identity: string;
  /** 0 for the first. */
  readonly copy: number;
  /** Nobody who knows the secret signed it. */
  readonly isForged: boolean;
}

/** Of the messaging service. */
export function deliveryOf(event: KnownEvent, isForged = false): Delivery {
  return { source: "messages", event, identity: serviceIdentity(event), copy: 0, isForged };
}

export function message(messageId: string, ending: "delivery" | "failed" = "delivery"): KnownEvent[] {
  return lifecycle({ messageId, occurredAt: Date.now(), ending });
}

function billOf({ source, event, identity }: Bill, isForged = false): Delivery {
  return { source, event, identity, copy: 0, isForged };
}

export function pushOf(id: string): Delivery {
  const event = fixtures.github({ id });
  return { source: "code", event, identity: otherIdentity("code", JSON.stringify(event)), copy: 0, isForged: false };
}

/** A repeat of an event is written in other words that mean the same; that of a push comes under another id and type. */
export function requestOf(
  { source, event, copy, isForged }: Pick<Delivery, "source" | "event" | "copy" | "isForged">,
  timestamp = Date.now(),
): SignedRequest {
  const signing = { timestamp, ...(isForged && { secret: FORGERS_SECRET }) };
  const body = JSON.stringify(event, null, source === "code" ? 0 : copy % 3);
  if (source === "messages") return signedRequest(body, signing);
  if (isOfStripe(source)) return signedRequest(body, { source: "stripe", ...signing });
  return signedRequest(body, pushDelivery(body, copy));
}

/** What comes with each refill. */
export interface MixtureTerms {
  readonly seed: number;
  readonly messages: number;
  /** A push next to each message. */
  readonly pushes?: true;
  /** The events of so many objects of Stripe, of as many as have a lane. */
  readonly bills?: { readonly objects: number; readonly lanes: number };
  /** A message and an event of Stripe that nobody signed. */
  readonly forges?: true;
  /** The share that comes a second time. */
  readonly repeated: number;
}

/** Events of several sources, mixed. */
export class Mixture {
  readonly #terms: MixtureTerms;
  readonly #random: () => number;
  readonly #bills: Bills;
  #messages = 0;

  constructor(terms: MixtureTerms) {
    this.#terms = terms;
    this.#random = seededRandom(terms.seed);
    this.#bills = new Bills(this.#random, terms.bills?.lanes ?? 1);
  }

  readonly next = (): readonly Delivery[] => {
    const { messages, pushes, bills, forges, repeated } = this.#terms;
    const fresh = Array.from({ length: messages }, () => {
      const signed = this.#message("msg").map((event) => deliveryOf(event));
      return pushes === undefined ? signed : [...signed, pushOf(`push-${this.#messages}`)];
    }).flat();
    for (let object = 0; object < (bills?.objects ?? 0); object++)
      fresh.push(...this.#bills.next().map((bill) => billOf(bill)));
    const again = fresh.filter(() => this.#random() < repeated).map((delivery) => ({ ...delivery, copy: 1 }));
    const forged =
      forges === undefined
        ? []
        : [...this.#message("forged").map((event) => deliveryOf(event, true)), this.#forgedBill()];
    return shuffled([...fresh, ...again, ...forged], this.#random);
  };

  #message(prefix: string): KnownEvent[] {
    const messageId = `${prefix}-${String(++this.#messages).padStart(6, "0")}`;
    return message(messageId, this.#random() < 0.1 ? "failed" : "delivery");
  }

  #forgedBill(): Delivery {
    const event = fixtures.stripe({ id: `forged_${this.#messages}`, data: { id: "sub_0" } });
    return billOf({ source: "billing", event, identity: otherIdentity("billing", JSON.stringify(event)) }, true);
  }
}

export interface SenderTerms<Sent extends Delivery = Delivery> {
  /** Deliveries under way at once. */
  readonly parallel: number;
  /** What is sent next; nothing ends it. */
  readonly next: () => readonly Sent[] | Promise<readonly Sent[]>;
  readonly deliver: (delivery: Sent) => Promise<Answered>;
  /** Whether a signed delivery is sent until it is answered with 200, as the service does, and after which pause. Null: each once. */
  readonly againAfterMs: number | null;
  /** Between the beginnings of two deliveries. Default: as quickly as they are answered. */
  readonly everyMs?: number;
}

/** What one attempt was answered with. */
export interface Answer extends Answered {
  /** By the monotonic clock. */
  readonly at: number;
  readonly isForged: boolean;
}

export class Sender<Sent extends Delivery = Delivery> {
  /** Identities of what is signed, and of what is not. */
  readonly sent: string[] = [];
  readonly forged: string[] = [];
  /** Identities that were answered with 200. */
  readonly acknowledged = new Set<string>();
  readonly answers: Answer[] = [];
  readonly #terms: SenderTerms<Sent>;
  readonly #queue: Sent[] = [];
  readonly #awaited: { readonly count: number; readonly resolve: () => void }[] = [];
  /** How many it takes to end, once that is said. */
  #least = Number.POSITIVE_INFINITY;
  #isAbandoned = false;
  #refilling: Promise<boolean> | null = null;

  constructor(terms: SenderTerms<Sent>) {
    this.#terms = terms;
  }

  /** Sends until `finish` is called, or nothing comes next, and everything begun has ended. */
  async run(): Promise<void> {
    const { everyMs, parallel } = this.#terms;
    if (everyMs !== undefined) return this.#paced(everyMs, parallel);
    const work = async () => {
      for (let next = await this.#take(); next !== undefined; next = await this.#take()) await this.#send(next);
    };
    await Promise.all(Array.from({ length: parallel }, work));
  }

  /** Nothing more comes once so many are acknowledged. */
  finish(least = 0): void {
    this.#least = least;
  }

  /** What is not acknowledged by then is given up. */
  abandonAfter(ms: number): () => void {
    const timer = setTimeout(() => {
      this.#isAbandoned = true;
    }, ms);
    return () => clearTimeout(timer);
  }

  /** Resolves when so many more are acknowledged. */
  more(count: number): Promise<void> {
    return new Promise((resolve) => this.#awaited.push({ count: this.acknowledged.size + count, resolve }));
  }

  /** How often signed deliveries were answered so; 0 for no answer. */
  count(status: number): number {
    return this.answers.filter((answer) => answer.status === status && !answer.isForged).length;
  }

  /** Forged deliveries that were refused. */
  get refused(): number {
    return this.answers.filter(({ status, isForged }) => isForged && status === 401).length;
  }

  /** Answers that are wrong: other than these to a signed delivery, or than 401 to a forged one. */
  wrong(allowed: readonly number[]): string[] {
    const isWrong = ({ status, isForged }: Answer) => !(isForged ? [0, 401] : allowed).includes(status);
    return this.answers
      .filter(isWrong)
      .map(({ status, isForged }) => `${status} to a ${isForged ? "forged" : "signed"} delivery`);
  }

  async #paced(everyMs: number, most: number): Promise<void> {
    const underWay = new Set<Promise<void>>();
    const startedAt = performance.now();
    let begun = 0;
    for (let next = await this.#take(); next !== undefined; next = await this.#take()) {
      const waitMs = startedAt + begun++ * everyMs - performance.now();
      if (waitMs > 0) await sleep(waitMs);
      while (underWay.size >= most) await Promise.race(underWay);
      const task = this.#send(next).finally(() => underWay.delete(task));
      underWay.add(task);
    }
    await Promise.all(underWay);
  }

  async #take(): Promise<Sent | undefined> {
    while (this.#queue.length === 0) {
      // Several may ask meanwhile.
      this.#refilling ??= this.#refill().finally(() => {
        this.#refilling = null;
      });
      if (await this.#refilling) return undefined;
    }
    return this.#queue.shift();
  }

  /** Returns true when nothing more is to come. */
  async #refill(): Promise<boolean> {
    if (this.acknowledged.size >= this.#least) return true;
    const next = await this.#terms.next();
    for (const { identity, copy, isForged } of next)
      if (copy === 0) (isForged ? this.forged : this.sent).push(identity);
    this.#queue.push(...next);
    return next.length === 0;
  }

  async #send(delivery: Sent): Promise<void> {
    const { deliver, againAfterMs } = this.#terms;
    const { identity, isForged } = delivery;
    while (!this.#isAbandoned) {
      const { status, outcome } = await deliver(delivery);
      this.answers.push({ at: performance.now(), status, outcome, isForged });
      if (status === 200) return this.#acknowledge(identity);
      if (againAfterMs === null || (isForged && status !== 0)) return;
      if (againAfterMs > 0) await sleep(againAfterMs);
    }
  }

  #acknowledge(identity: string): void {
    this.acknowledged.add(identity);
    for (const awaited of this.#awaited.splice(0)) {
      if (this.acknowledged.size >= awaited.count) awaited.resolve();
      else this.#awaited.push(awaited);
    }
  }
}

export interface Target {
  readonly port: number;
  readonly path?: string;
  readonly agent: Agent | false;
  /** Sends once more when a kept connection is closed just when it is used again. */
  readonly insists?: true;
  /** The body comes in so many, with a pause between two. */
  readonly pieces?: { readonly count: number; readonly everyMs: number };
  /** Called with this end's port of a new connection, and when the last byte is sent. */
  readonly connected?: (localPort: number) => void;
  readonly isSent?: () => void;
}

/** Posts a request. Only an answer whose end arrived counts as one. */
export function post(target: Target, signed: Omit<SignedRequest, "method">): Promise<Answered> {
  const { port, path = "/", agent, insists, pieces, connected, isSent } = target;
  const { headers, body } = signed;
  const options = { host: "127.0.0.1", port, path, agent, method: "POST" };
  return new Promise((resolve) => {
    const outgoing = request({ ...options, headers: { ...headers, "content-length": body.length } }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (chunk: string) => {
        text += chunk;
      });
      response.once("end", () => resolve({ status: response.statusCode ?? 0, outcome: outcomeIn(text) }));
      response.once("error", () => resolve(UNANSWERED));
    });
    outgoing.once("socket", (socket) => {
      if (socket.connecting) socket.once("connect", () => connected?.(socket.localPort ?? 0));
    });
    outgoing.on("error", () => {});
    outgoing.once("error", () => {
      resolve(insists && outgoing.reusedSocket ? post(target, signed) : UNANSWERED);
    });
    void inPieces(body, pieces, (piece) => outgoing.write(piece)).then((last) => {
      isSent?.();
      outgoing.end(last);
    });
  });
}

/** Writes all pieces except the last one, which it returns. */
async function inPieces(
  body: Uint8Array,
  pieces: Target["pieces"],
  write: (piece: Uint8Array) => void,
): Promise<Uint8Array> {
  const { count, everyMs } = pieces ?? { count: 1, everyMs: 0 };
  const size = Math.max(1, Math.ceil(body.length / count));
  let at = 0;
  for (; at + size < body.length; at += size) {
    write(body.subarray(at, at + size));
    await sleep(everyMs);
  }
  return body.subarray(at);
}

function outcomeIn(text: string): string {
  return /"outcome":"(\w+)"/.exec(text)?.[1] ?? "";
}

/** Passes a request to a process without HTTP. */
export async function hand(child: Asked | undefined, delivery: Parameters<typeof requestOf>[0]): Promise<Answered> {
  const { headers, body } = requestOf(delivery);
  const handed: Handed = { source: delivery.source, headers, text: new TextDecoder().decode(body) };
  return (await child?.ask<Answered>("deliver", handed).catch(() => UNANSWERED)) ?? UNANSWERED;
}
