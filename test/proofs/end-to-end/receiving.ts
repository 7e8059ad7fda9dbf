/** The receiving application of a run: real HTTP, an inbox in a real file, and a history that its handlers commit. */
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Database from "better-sqlite3";
import { fetchWebhook } from "../../../adapters/fetch.ts";
import {
  createReceiver,
  type HandlerContext,
  isKnownEvent,
  type Receiver,
  type WebhookEvent,
} from "../../../src/index.ts";
import type { Clock, Random } from "../../../src/internal/clock.ts";
import { silentLogger } from "../../../src/internal/logger.ts";
import type { SecretStore } from "../../../src/sources/messaging/secret-store.ts";
import { type SqliteDatabase, sqliteSecrets, sqliteStore } from "../../../src/stores/sqlite.ts";
import { bridge } from "../../adapters/fetch-bridge.ts";
import { freePort } from "../../support/free-port.ts";
import type { HandledRow } from "../ledger.ts";
import { failing } from "./failing.ts";

/** What a receiver can do wrong, to see that the verdict tells. */
export type Flaw =
  /** The service gets a new secret before the receiver does. */
  | "secret_after_the_service"
  /** Handlers write their history at once, not with their event. */
  | "history_apart"
  /** A message's events are handled as they come. */
  | "no_waiting"
  /** Some events get a 2xx and are not stored. */
  | "answered_and_dropped";

export interface ReceivingOptions {
  readonly clock: Clock;
  readonly random: Random;
  readonly flaws: readonly Flaw[];
}

interface AtWork {
  readonly receiver: Receiver<SqliteDatabase>;
  readonly server: Server;
}

export class Receiving {
  readonly url: string;
  /** For who rotates. The receiver reads the same file through another one, as another process does. */
  readonly secrets: SecretStore;
  readonly #receiverSecrets: SecretStore;
  readonly #port: number;
  readonly #options: ReceivingOptions;
  readonly #folder = mkdtempSync(join(tmpdir(), "oncehook-end-to-end-"));
  #history: SqliteDatabase | null = null;
  readonly #counters = new Map<string, number>();
  readonly #fail: ReturnType<typeof failing>;
  #atWork: AtWork | null = null;

  private constructor(port: number, options: ReceivingOptions) {
    this.#port = port;
    this.#options = options;
    this.url = `http://127.0.0.1:${port}/webhooks`;
    this.#fail = failing(options.random, options.flaws.includes("answered_and_dropped") ? 200 : 503);
    this.secrets = this.#openSecrets();
    this.#receiverSecrets = this.#openSecrets();
  }

  static async create(options: ReceivingOptions): Promise<Receiving> {
    return new Receiving(await freePort(), options);
  }

  /** Opens the inbox and listens, on the same port each time. */
  async start(): Promise<void> {
    const { clock, flaws } = this.#options;
    const secrets = this.#receiverSecrets;
    const store = sqliteStore(this.#inboxPath, { onOpen: createHistory });
    const gapWait = flaws.includes("no_waiting") ? "eager" : "strict";
    const receiver = createReceiver({ secrets, store, clock, gapWait, logger: silentLogger });
    receiver.onAny((event, ctx) => this.#handle(event, ctx)).onLate((event, ctx) => this.#handle(event, ctx));
    await receiver.start();
    this.#history ??= new Database(this.#inboxPath);
    const server = createServer(bridge(this.#fail(fetchWebhook(receiver)))).listen(this.#port, "127.0.0.1");
    await once(server, "listening");
    this.#atWork = { receiver, server };
  }

  /** Nobody listens any more, and the inbox is closed. */
  async stop(): Promise<void> {
    const atWork = this.#atWork;
    this.#atWork = null;
    if (atWork === null) return;
    const { receiver, server } = atWork;
    const closed = once(server, "close");
    server.close();
    server.closeAllConnections();
    await receiver.stop({ until: closed });
    for (const [name, count] of Object.entries(receiver.counters)) {
      this.#counters.set(name, (this.#counters.get(name) ?? 0) + count);
    }
  }

  async dispose(): Promise<void> {
    await this.stop();
    await Promise.all([this.secrets.close(), this.#receiverSecrets.close()]);
    this.#history?.close();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  /** What the handlers committed, in that order. */
  handled(): readonly HandledRow[] {
    const rows = this.#history?.prepare("select message_id, sequence, event_type from history order by id").all();
    return (rows ?? []) as HandledRow[];
  }

  /** Deliveries by the slot of the secret that vouched for them, over all receivers that were stopped. */
  counted(name: string): number {
    return this.#counters.get(name) ?? 0;
  }

  /** One event of ten fails once, with its history already registered. */
  #handle(event: WebhookEvent, ctx: HandlerContext<SqliteDatabase>): void {
    const row = [...placeOf(event), event.eventType, ctx.attempt];
    const write = (db: SqliteDatabase) =>
      void db
        .prepare("insert into history (message_id, sequence, event_type, attempt) values (?, ?, ?, ?)")
        .run(...row);
    if (this.#options.flaws.includes("history_apart") && this.#history !== null) write(this.#history);
    else ctx.commit(write);
    const dice = createHash("sha256").update(ctx.identity).digest().readUInt8(0);
    if (ctx.attempt === 1 && dice < 26) throw new Error("This handler fails once.");
  }

  #openSecrets(): SecretStore {
    const keyFile = join(this.#folder, "webhook.key");
    if (!existsSync(keyFile)) writeFileSync(keyFile, randomBytes(32).toString("hex"), { mode: 0o600 });
    return sqliteSecrets(this.#inboxPath, { keyFile, clock: this.#options.clock });
  }

  get #inboxPath(): string {
    return join(this.#folder, "inbox.db");
  }
}

function createHistory(db: SqliteDatabase): void {
  db.exec(
    `create table if not exists history
     (id integer primary key autoincrement, message_id text, sequence integer, event_type text, attempt integer)`,
  );
}

function placeOf(event: WebhookEvent): [messageId: string | null, sequence: number] {
  if (!isKnownEvent(event)) return [null, 0];
  return event.direction === "outbound" ? [event.messageId, event.sequence] : [event.data.messageId, 0];
}
