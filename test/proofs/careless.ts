/** Fronts and receivers with a fault each, for controls. */
import type { IncomingMessage, RequestListener } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import Database from "better-sqlite3";
import type { Receiver } from "../../src/index.ts";
import { incomingOf } from "../../src/tools/testing/deliver.ts";
import { makeEffectTable } from "./inbox.ts";
import { type OtherSource, otherIdentity, serviceIdentity } from "./sources.ts";

/** What the naive one does between looking and inserting takes its time. */
const NAIVE_WORK_MS = 5;

export async function bytesOf(incoming: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of incoming) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

/** What a queue in memory does: answers 200 when a delivery is there, and stores it some milliseconds later. */
export function answeringFirst(receiver: Pick<Receiver<never>, "handle">): RequestListener {
  return async (request, response) => {
    const body = Uint8Array.from(await bytesOf(request));
    response.end();
    await sleep(5);
    const headers = request.headers as Record<string, string>;
    await receiver.handle(incomingOf({ method: "POST", headers, body }));
  };
}

/** Between looking and inserting somebody else can do the same, and no index is in the way. */
export function checkingThenInserting(path: string): { readonly listener: RequestListener; close(): void } {
  const db = new Database(path, { timeout: 5_000 });
  db.pragma("journal_mode = wal");
  makeEffectTable(db);
  const find = db.prepare("select 1 from effect where identity = ?");
  const insert = db.prepare(
    "insert into effect (identity, lane, sequence, attempt, late, replay) values (?, ?, 1, 1, 0, 0)",
  );
  const listener: RequestListener = async (incoming, response) => {
    const body = await bytesOf(incoming);
    const name = (incoming.url ?? "").slice(1);
    const isService = name === "" || name === "messages";
    const identity = isService ? serviceIdentity(JSON.parse(`${body}`)) : otherIdentity(name as OtherSource, body);
    const isKnown = find.get(identity) !== undefined;
    await sleep(NAIVE_WORK_MS);
    if (!isKnown) insert.run(identity, identity);
    response.end(JSON.stringify({ outcome: isKnown ? "duplicate" : "accepted" }));
  };
  return { listener, close: () => void db.close() };
}

/** Of a front that takes a delivery for so many before it looks at any body. */
const SLOTS = 64;

/** `slots first`: gives out its slots before the bodies are read. `no bounds`: bounds neither time nor memory. */
export function carelessly(
  receiver: Pick<Receiver<never>, "handle">,
  flaw: "slots first" | "no bounds",
  tenant: (request: IncomingMessage) => string,
): RequestListener {
  let taken = 0;
  return async (request, response) => {
    if (flaw === "slots first" && taken >= SLOTS) return void response.writeHead(503).end();
    taken += 1;
    // Until it is answered: who waits for a look-up holds one too.
    response.once("close", () => (taken -= 1));
    // Null when whoever sent it is gone.
    const body = await bytesOf(request).catch(() => null);
    if (body === null) return;
    const headers = request.headers as Record<string, string>;
    const incoming = incomingOf({ method: "POST", headers, body: Uint8Array.from(body) });
    const { status, body: text } = await receiver.handle({ ...incoming, tenant: tenant(request) });
    response.writeHead(status).end(text);
  };
}
