/** Who is not to suffer: signed deliveries at a steady pace, most of them small, some of many pieces that come one after the other. */
import { Agent, request } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { eventIdentity, type KnownEvent } from "../../../src/index.ts";
import { fixtures, lifecycle, signedRequest } from "../../../src/testing/index.ts";
import { p99 } from "../../support/statistics.ts";
import { TENANT } from "./besieged.ts";

/** Kept, as the service keeps them; a new one waits its turn behind those of the attackers. */
const CONNECTIONS = 8;
const EVERY_MS = 20;
/** One in so many is long and comes over a slow network. */
const LONG_ONE_IN = 10;
const LONG_BYTES = 16 * 1024;
const PIECES = 8;
const PIECE_EVERY_MS = 40;

export class Traffic {
  readonly sent: string[] = [];
  readonly acknowledged: string[] = [];
  /** From the last byte of a delivery to the end of its answer, ms. */
  readonly waits: number[] = [];
  /** How often each status was answered; 0 for none. */
  readonly statuses = new Map<number, number>();
  /** Its own ends of the connections, by which the server tells them from others. */
  readonly ports = new Set<number>();
  readonly #port: number;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS });
  readonly #underWay = new Set<Promise<void>>();
  #goesOn = true;
  #run: Promise<void> | null = null;

  constructor(port: number) {
    this.#port = port;
  }

  /** Sends until `finish` is called; nothing waits for what was sent before. */
  begin(): void {
    this.#run ??= this.#sendAll();
  }

  /** Resolves when the last message is sent whole and everything is answered. */
  async finish(): Promise<void> {
    this.#goesOn = false;
    // Between two events of a message nothing may be under way.
    await this.#run;
    await Promise.all(this.#underWay);
    this.#agent.destroy();
  }

  get p99Ms(): number {
    return p99(this.waits);
  }

  async #sendAll(): Promise<void> {
    const startedAt = performance.now();
    for (let message = 0, sent = 0; this.#goesOn; message++) {
      const messageId = `msg_${message}`;
      const occurredAt = Date.now();
      const events = message % LONG_ONE_IN === 0 ? [longEvent(messageId)] : lifecycle({ messageId, occurredAt });
      for (const event of events) {
        const task = this.#send(event, events.length === 1).finally(() => this.#underWay.delete(task));
        this.#underWay.add(task);
        await sleep(Math.max(0, startedAt + ++sent * EVERY_MS - performance.now()));
      }
    }
  }

  async #send(event: KnownEvent, isLong: boolean): Promise<void> {
    const { headers, body } = signedRequest(event, { timestamp: Date.now() });
    const identity = eventIdentity(event, body);
    this.sent.push(identity);
    const status = await this.#deliver({ ...headers, "content-length": String(body.length) }, body, isLong);
    this.statuses.set(status, (this.statuses.get(status) ?? 0) + 1);
    if (status >= 200 && status < 300) this.acknowledged.push(identity);
  }

  #deliver(headers: Record<string, string>, body: Uint8Array, isLong: boolean): Promise<number> {
    return new Promise((resolve) => {
      const options = {
        host: "127.0.0.1",
        port: this.#port,
        path: `/webhooks/${TENANT}`,
        agent: this.#agent,
        method: "POST",
      };
      let sentAt = Number.NaN;
      const outgoing = request({ ...options, headers }, (response) => {
        response.resume().once("end", () => {
          this.waits.push(performance.now() - sentAt);
          resolve(response.statusCode ?? 0);
        });
        response.once("error", () => resolve(0));
      });
      outgoing.once("socket", (socket) => {
        if (socket.connecting) socket.once("connect", () => this.ports.add(socket.localPort ?? 0));
      });
      outgoing.once("error", () => {
        // A kept connection may be closed just when it is used again: whoever keeps some sends once more.
        resolve(outgoing.reusedSocket ? this.#deliver(headers, body, isLong) : 0);
      });
      void inPieces(body, isLong ? PIECES : 1, async (piece, isLast) => {
        if (isLast) sentAt = performance.now();
        outgoing[isLast ? "end" : "write"](piece);
        if (!isLast) await sleep(PIECE_EVERY_MS);
      });
    });
  }
}

async function inPieces(
  body: Uint8Array,
  count: number,
  write: (piece: Uint8Array, isLast: boolean) => Promise<void>,
): Promise<void> {
  const size = Math.ceil(body.length / count);
  for (let at = 0; at < body.length; at += size) await write(body.subarray(at, at + size), at + size >= body.length);
}

function longEvent(messageId: string): KnownEvent {
  return fixtures.inbound({ messageId, occurredAt: Date.now(), data: { body: "x".repeat(LONG_BYTES) } });
}
