/** A process under test whose disk or clock goes wrong, and the deliveries that it gets all the while, as the service sends them. */
import { Agent } from "node:http";
import type { Ready } from "./child.ts";
import { type Breach, breachesOf } from "./history.ts";
import { contentsOf, Look } from "./inbox.ts";
import { Asked, compiled } from "./process.ts";
import type { Description } from "./receiving.ts";
import { deliveryOf, message, post, requestOf, Sender } from "./sender.ts";

const EVERY_MS = 15;
const AGAIN_AFTER_MS = 100;
/** Deliveries under way; those that come while it is reached are made later. */
const MOST_UNDER_WAY = 64;
const DRAINED_WITHIN_MS = 30_000;
/** After the last acknowledgement; what is not handled by then is judged as it is. */
const HANDLED_WITHIN_MS = 10_000;

export interface Judged {
  readonly breaches: readonly Breach[];
  readonly problems: readonly string[];
  readonly acknowledged: number;
}

export class Subject {
  readonly child: Asked;
  readonly sender: Sender;
  readonly #path: string;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: MOST_UNDER_WAY });
  readonly #run: Promise<void>;

  private constructor(child: Asked, port: number, path: string) {
    this.child = child;
    this.#path = path;
    let messages = 0;
    this.sender = new Sender({
      ...{ parallel: MOST_UNDER_WAY, everyMs: EVERY_MS, againAfterMs: AGAIN_AFTER_MS },
      next: () => message(`msg-${++messages}`).map((event) => deliveryOf(event)),
      deliver: (delivery) => post({ port, agent: this.#agent }, requestOf(delivery)),
    });
    this.#run = this.sender.run();
  }

  /** New events come until its end. @param env - besides this process's own */
  static async start(path: string, wish: Partial<Description>, env: NodeJS.ProcessEnv = {}): Promise<Subject> {
    const child = new Asked(compiled("child.js"), { place: { path }, ...wish } satisfies Description, env);
    const { port } = await child.ask<Ready>("open");
    return new Subject(child, port, path);
  }

  /** Ends when all that was sent is acknowledged and handled, or when that takes too long. @param allowed - statuses */
  async end(allowed: readonly number[]): Promise<Judged> {
    const inTime = this.sender.abandonAfter(DRAINED_WITHIN_MS);
    this.sender.finish();
    await this.#run;
    inTime();
    this.#agent.destroy();
    const { sent, acknowledged } = this.sender;
    const problems: string[] = [];
    const left = sent.length - acknowledged.size;
    if (left > 0) problems.push(`${left} of ${sent.length} events were not taken within ${DRAINED_WITHIN_MS} ms`);
    const look = new Look({ path: this.#path });
    if (this.child.strangeEnd === null) await look.settled(HANDLED_WITHIN_MS, acknowledged.size);
    await look.remove();
    problems.push(...(await this.child.stop()));
    const strange = this.sender.answers.filter(({ status }) => !allowed.includes(status));
    if (strange.length > 0)
      problems.push(`${strange.length} answers were ${[...new Set(strange.map(({ status }) => status))]}`);
    const { effects, stored, integrity } = contentsOf(this.#path);
    if (integrity !== "ok") problems.push(`the file is damaged: ${integrity}`);
    const known = { sent, forged: [], acknowledged, replayed: [], effects, stored };
    const breaches = breachesOf({ ...known, moment: "ended", everyHandlerWrites: true });
    return { breaches, problems, acknowledged: acknowledged.size };
  }
}
