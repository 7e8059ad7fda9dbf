/** Processes that watch one inbox, and the destination of their alerts, which can kill the one that sends. */
import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import type { InboxStore } from "../../src/inbox/store.ts";
import { type Alert, openInbox, verifySignature } from "../../src/index.ts";
import { silentLogger } from "../../src/internal/logger.ts";
import { fixtures } from "../../src/testing/index.ts";
import { deliver, until } from "../proofs/family.ts";
import type { Place } from "../proofs/inbox.ts";
import { Asked, compiled } from "../proofs/process.ts";
import type { Description } from "../proofs/receiving.ts";
import { listenOnLoopback } from "../support/loopback.ts";

const SECRET = "the-secret-of-alerts-32-bytes-ok";

export interface AlertsTerms {
  readonly place: Place;
  /** The same inbox, for the test. */
  readonly store: InboxStore<never>;
  readonly processes: number;
  /** How often the condition begins and ends. */
  readonly episodes: number;
  /** How many seconds one second of the processes has. */
  readonly speed: number;
  /** Of each message, the first `kills` sends end with the death of their process: before the answer, or right after it. */
  readonly kills: number;
  /** How long the destination takes to answer: long enough for other processes to look meanwhile. */
  readonly answersAfterMs?: number;
}

export interface AlertsReport {
  /** Statuses of the messages in the order of their first arrival. */
  readonly statuses: readonly string[];
  readonly episodes: number;
  readonly arrivals: number;
  readonly kills: number;
  /** How many bodies each id came with. */
  readonly bodiesOfAnId: number;
  readonly unsigned: number;
  readonly strangeEnds: readonly (string | null)[];
}

interface Arrival {
  readonly alert: Alert;
  readonly body: string;
  readonly isSigned: boolean;
}

/** Lets the condition begin and end `episodes` times, each time once the message before it has arrived. */
export async function watchTogether(terms: AlertsTerms): Promise<AlertsReport> {
  const scene = new Scene(terms);
  await scene.open();
  try {
    for (let episode = 1; episode <= terms.episodes; episode++) {
      await scene.makeDeadLetter(episode);
      await until(`alert ${episode} has begun`, () => scene.settled(2 * episode - 1), 60_000);
      await scene.discard();
      await until(`alert ${episode} has ended`, () => scene.settled(2 * episode), 60_000);
    }
    // As long as a repeat would take.
    await new Promise((resolve) => setTimeout(resolve, 60_000 / terms.speed));
    return scene.report();
  } finally {
    await scene.close();
  }
}

class Scene {
  readonly #terms: AlertsTerms;
  readonly #arrivals: Arrival[] = [];
  readonly #children: Asked[] = [];
  readonly #dead: Asked[] = [];
  readonly #since = Date.now();
  readonly #kills = new Map<string, number>();
  readonly #http = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const pid = Number(new URL(request.url ?? "", "http://localhost").searchParams.get("pid"));
      void this.#arrived({ pid, headers: request.headers, body: Buffer.concat(chunks) }, response);
    });
  });
  #url = "";

  constructor(terms: AlertsTerms) {
    this.#terms = terms;
  }

  async open(): Promise<void> {
    this.#url = `http://127.0.0.1:${await listenOnLoopback(this.#http)}/`;
    for (let index = 0; index < this.#terms.processes; index++) await this.#add();
  }

  async close(): Promise<void> {
    await Promise.all(this.#children.map((child) => child.kill()));
    this.#http.close();
    this.#http.closeAllConnections();
  }

  async makeDeadLetter(episode: number): Promise<void> {
    const event = fixtures.queued({ messageId: `hopeless-${episode}` });
    for (let status = 0; status !== 200; ) ({ status } = await deliver(this.#children[0], event));
  }

  /** Every dead letter, through a connection of the test's own. */
  async discard(): Promise<void> {
    const inbox = await openInbox({ store: this.#terms.store, logger: silentLogger });
    const { items } = await inbox.find({ states: ["dead"] });
    for (const { id } of items) await inbox.discard(id, { by: "test" });
    await inbox.close();
  }

  /** So many messages have arrived, and each was sent once more than its process was killed. */
  settled(messages: number): boolean {
    const ids = new Set(this.#arrivals.map(({ alert }) => alert.id));
    return ids.size >= messages && [...ids].every((id) => (this.#kills.get(id) ?? 0) >= this.#terms.kills);
  }

  report(): AlertsReport {
    const ids = [...new Set(this.#arrivals.map(({ alert }) => alert.id))];
    const sameId = ids.map((id) => this.#arrivals.filter(({ alert }) => alert.id === id));
    return {
      statuses: sameId.map(([first]) => first?.alert.status ?? ""),
      episodes: new Set(this.#arrivals.map(({ alert }) => alert.episode)).size,
      arrivals: this.#arrivals.length,
      kills: [...this.#kills.values()].reduce((sum, kills) => sum + kills, 0),
      bodiesOfAnId: Math.max(...sameId.map((same) => new Set(same.map(({ body }) => body)).size)),
      unsigned: this.#arrivals.filter(({ isSigned }) => !isSigned).length,
      strangeEnds: [...this.#children, ...this.#dead].map(({ strangeEnd }) => strangeEnd).filter((end) => end !== null),
    };
  }

  async #add(): Promise<void> {
    const { place, speed } = this.#terms;
    const alerts = { to: this.#url, secret: SECRET };
    const description: Description = { place, clock: { speed, since: this.#since }, alerts };
    const child = new Asked(compiled("child.js"), description);
    await child.ask("open");
    this.#children.push(child);
  }

  async #arrived(
    { pid, headers, body }: { readonly pid: number; readonly headers: IncomingHttpHeaders; readonly body: Buffer },
    response: ServerResponse,
  ): Promise<void> {
    const { ok } = verifySignature({ headers, body, secrets: SECRET, now: Number(headers["x-service-timestamp"]) });
    const alert = JSON.parse(body.toString()) as Alert;
    this.#arrivals.push({ alert, body: body.toString(), isSigned: ok && headers["idempotency-key"] === alert.id });
    const kills = this.#kills.get(alert.id) ?? 0;
    const index = this.#children.findIndex((child) => child.pid === pid);
    await new Promise((resolve) => setTimeout(resolve, this.#terms.answersAfterMs ?? 0));
    if (kills >= this.#terms.kills || index < 0) return void response.writeHead(204).end();
    const [child] = this.#children.splice(index, 1) as [Asked];
    this.#kills.set(alert.id, kills + 1);
    this.#dead.push(child);
    // Taken, but the process may not have noted that; or not even answered.
    if (kills % 2 === 1) await new Promise<void>((resolve) => void response.writeHead(204).end(resolve));
    await child.kill();
    await this.#add();
  }
}
