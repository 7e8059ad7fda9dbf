/** The Next.js example, installed and built as a user does it, for outages: its production server on a fixed port. */
import type { Server } from "../next/application.ts";
import type { SqliteApplication } from "../next/sqlite-application.ts";
import { freePort } from "../support/free-port.ts";
import { secrets } from "./outages-processes.ts";
import type { HandledRow, Restartable } from "./outages-survive.ts";

export class NextProcess implements Restartable {
  readonly url: string;
  readonly #application: SqliteApplication;
  readonly #port: number;
  #server: Server | null = null;
  #late = 0;

  private constructor(application: SqliteApplication, port: number) {
    this.#application = application;
    this.#port = port;
    this.url = `http://127.0.0.1:${port}/webhooks`;
  }

  static async create(application: SqliteApplication): Promise<NextProcess> {
    application.forget();
    return new NextProcess(application, await freePort());
  }

  async start(): Promise<void> {
    const environment = {
      ...secrets(),
      CRON_SECRET: "a-cron-secret-of-32-bytes-xxxxxx",
      INBOX_PATH: this.#application.inboxPath,
    };
    this.#server = this.#application.launch("start", environment, this.#port);
    await this.#server.ready();
  }

  async stop(): Promise<void> {
    const server = this.#server;
    this.#server = null;
    await server?.kill();
    this.#late += server?.printed().filter(({ late }) => late === true).length ?? 0;
  }

  handled(): readonly HandledRow[] {
    return this.#application.handled();
  }

  lateLines(): number {
    return this.#late + (this.#server?.printed().filter(({ late }) => late === true).length ?? 0);
  }

  dispose(): Promise<void> {
    return this.stop();
  }
}
