/** What the applications share: a receiver behind HTTP, and a death between an effect and its commit, once for every fourth event. */
import { closeSync, openSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { createReceiver, type DeclaredEffect, type HandlerContext, type InboxStore } from "oncehook";
import { nodeWebhook } from "oncehook/node";

export interface Assignment {
  /** Of Postgres, and the inbox's schema there. */
  readonly url: string;
  readonly schema: string;
  /** Of a SQLite file; the other two are empty then. */
  readonly path: string;
  readonly secret: string;
  /** A folder: a file in it for each event that has had its death. */
  readonly deaths: string;
}

/** What an effect writes: a row of `orders`. */
export interface Row {
  readonly identity: string;
  /** Every second event is written in a transaction of the ORM's own. */
  readonly nested: boolean;
}

export const assignment: Assignment = JSON.parse(process.argv[2] ?? "");

/** Thrown in an ORM's transaction to roll it back. */
export class Undo extends Error {}

export function undone(error: unknown): void {
  if (!(error instanceof Undo)) throw error;
}

/** Commits `effect` for each event; what `declare` makes instead, for every event that needs no transaction of the ORM's own. */
export function serveEffect<Tx>(
  store: InboxStore<Tx>,
  effect: (tx: Tx, row: Row) => unknown,
  declare?: (row: Row) => DeclaredEffect,
): Promise<void> {
  return serve(store, ({ ctx, row, die }) => {
    if (declare !== undefined && !row.nested) {
      ctx.commit(declare(row));
      return die("before the commit");
    }
    ctx.commit((tx) => {
      const written = effect(tx, row);
      return written instanceof Promise ? written.then(() => die("before the commit")) : die("before the commit");
    });
  });
}

export interface Handling<Tx> {
  readonly ctx: HandlerContext<Tx>;
  readonly row: Row;
  /** Ends the process as a power cut does, for every fourth event, the first time for a moment. */
  die(moment: string): unknown;
}

/** Serves until SIGTERM. */
export async function serve<Tx>(store: InboxStore<Tx>, handle: (handling: Handling<Tx>) => unknown): Promise<void> {
  const receiver = createReceiver({ secrets: assignment.secret, store, maxAttempts: 100 });
  receiver.on("message.queued", async ({ messageId }, ctx) => {
    const { identity } = ctx;
    const place = Number(messageId.split("-").at(-1));
    const die = (moment: string) => [0, 3].includes(place % 8) && dieOnce(identity, moment);
    await handle({ ctx, row: { identity, nested: place % 2 === 0 }, die });
  });
  await receiver.start();
  const server = createServer(nodeWebhook(receiver));
  process.once("SIGTERM", () => {
    server.closeAllConnections();
    server.close();
    receiver.stop().then(
      () => process.exit(0),
      () => process.exit(1),
    );
  });
  server.listen(0, "127.0.0.1", () => console.log((server.address() as AddressInfo).port));
}

function dieOnce(identity: string, moment: string): void {
  try {
    closeSync(openSync(join(assignment.deaths, `${identity} ${moment}`), "wx"));
  } catch {
    return;
  }
  process.kill(process.pid, "SIGKILL");
}
