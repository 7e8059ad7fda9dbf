/** The process under test and the deliveries that it gets all the while: each sent until it is answered with 200, as the service does. */
import { Agent, request } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import Database from "better-sqlite3";
import { eventIdentity } from "../../../src/index.ts";
import { STATE } from "../../../src/stores/database.ts";
import { lifecycle, signedRequest } from "../../../src/testing/index.ts";
import { Child } from "../../concurrency/family.ts";

/** Beside this file, where it was compiled to. */
const PROGRAM = fileURLToPath(new URL("./child.js", import.meta.url));
const EVERY_MS = 15;
const AGAIN_AFTER_MS = 100;
/** Of deliveries under way; those that come while it is reached are made later. */
const MOST_UNDER_WAY = 64;
const DRAINED_WITHIN_MS = 30_000;
/** After the last acknowledgement; what is not handled by then is judged as it is. */
const HANDLED_WITHIN_MS = 10_000;
const LOOK_EVERY_MS = 50;

export interface SubjectOptions {
  readonly path: string;
  readonly busyTimeoutMs: number;
  /** The planted fault: 200 before anything is stored. */
  readonly answersFirst: boolean;
}

/** The status of an answer, 0 for none, and when it came. */
export interface Answer {
  readonly at: number;
  readonly status: number;
}

interface Count {
  readonly stored: number;
  /** Null where nothing is stored. */
  readonly pending: number | null;
}

export class Subject {
  readonly child: Child;
  readonly answers: Answer[] = [];
  readonly sent: string[] = [];
  readonly acknowledged: string[] = [];
  readonly #port: number;
  readonly #path: string;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: MOST_UNDER_WAY });
  readonly #underWay = new Set<Promise<void>>();
  #goesOn = true;
  #run: Promise<void> | null = null;
  #gaveUp = false;

  private constructor(child: Child, port: number, path: string) {
    this.child = child;
    this.#port = port;
    this.#path = path;
  }

  /** @param env - beside this process's own */
  static async start(options: SubjectOptions, env: Readonly<Record<string, string>> = {}): Promise<Subject> {
    const child = new Child(options, PROGRAM, env);
    const [{ port }] = (await child.ready) as [{ readonly port: number }];
    return new Subject(child, port, options.path);
  }

  /** Sends new events until `finish` is called. */
  begin(): void {
    this.#run ??= this.#sendAll();
  }

  /** Resolves when the last message is sent whole and all that was sent is acknowledged; returns a line for what is not. */
  async finish(): Promise<readonly string[]> {
    this.#goesOn = false;
    const timer = setTimeout(() => {
      this.#gaveUp = true;
    }, DRAINED_WITHIN_MS);
    // Between two events of a message nothing may be under way.
    await this.#run;
    await Promise.all(this.#underWay);
    clearTimeout(timer);
    this.#agent.destroy();
    const left = this.sent.length - this.acknowledged.length;
    return left === 0 ? [] : [`${left} of ${this.sent.length} events were not taken within ${DRAINED_WITHIN_MS} ms`];
  }

  /** Ends it, when all is handled; a line if it ended otherwise. */
  async stop(): Promise<readonly string[]> {
    if (this.child.strangeEnd === null) await this.#handled();
    await this.child.stop();
    return this.child.strangeEnd === null ? [] : [`the process ${this.child.strangeEnd}`];
  }

  /** Resolves when nothing is pending and all that was acknowledged is there, or when that takes too long. */
  async #handled(): Promise<void> {
    const deadline = performance.now() + HANDLED_WITHIN_MS;
    const db = new Database(this.#path, { readonly: true });
    const count = db.prepare("select count(*) as stored, sum(state = ?) as pending from oncehook_event");
    const isDone = () => {
      const { stored, pending } = count.get(STATE.pending) as Count;
      // An application that answers before it stores may have nothing pending yet.
      return stored >= this.acknowledged.length && !pending;
    };
    try {
      while (this.child.strangeEnd === null && !isDone() && performance.now() < deadline) await sleep(LOOK_EVERY_MS);
    } finally {
      db.close();
    }
  }

  async #sendAll(): Promise<void> {
    for (let message = 1; this.#goesOn; message++) {
      for (const event of lifecycle({ messageId: `msg_${message}`, occurredAt: Date.now() })) {
        while (this.#underWay.size >= MOST_UNDER_WAY) await sleep(EVERY_MS);
        const task = this.#untilAcknowledged(event).finally(() => this.#underWay.delete(task));
        this.#underWay.add(task);
        await sleep(EVERY_MS);
      }
    }
  }

  async #untilAcknowledged(event: object): Promise<void> {
    const body = Buffer.from(JSON.stringify(event));
    const identity = eventIdentity(event as never, body);
    this.sent.push(identity);
    while (!this.#gaveUp) {
      const status = await this.#deliver(body);
      this.answers.push({ at: performance.now(), status });
      if (status === 200) return void this.acknowledged.push(identity);
      await sleep(AGAIN_AFTER_MS);
    }
  }

  #deliver(body: Buffer): Promise<number> {
    const { headers } = signedRequest(body, { timestamp: Date.now() });
    const sent = { ...headers, "content-length": body.byteLength };
    return new Promise((resolve) => {
      const options = { host: "127.0.0.1", port: this.#port, agent: this.#agent, method: "POST", headers: sent };
      const outgoing = request(options, (response) => {
        response.resume().once("end", () => resolve(response.statusCode ?? 0));
        response.once("error", () => resolve(0));
      });
      outgoing.once("error", () => resolve(0)).end(body);
    });
  }
}
