/** Large bodies that come in pieces, next to attackers who send the start of one and then nothing: GitHub's, which are never sent again. */
import { createHmac } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { TEST_SECRETS } from "../../../src/testing/index.ts";
import { Asked } from "../asked.ts";
import type { Attempt, Orders } from "./attackers-child.ts";
import { type Adapter, NOBODY, type ServerOptions } from "./besieged.ts";

/** What they send is more than all bodies may hold together. */
const ATTACKERS = 1_100;
const SIZES = [200_000, 2_000_000, 10_000_000, 24_000_000] as const;
const PIECES = 10;
const PIECE_EVERY_MS = 50;
const EVERY_MS = 500;
const LEAST_TAKEN = 0.99;

export interface LargeOutcome {
  readonly sent: number;
  readonly taken: number;
  readonly attempts: number;
  readonly problems: readonly string[];
}

export async function largeBodies(adapter: Adapter, forMs: number): Promise<LargeOutcome> {
  const folder = mkdtempSync(join(tmpdir(), "oncehook-large-"));
  const options: ServerOptions = { adapter, path: join(folder, "inbox.db"), flaw: "none", bodies: "large" };
  const server = new Asked(program("child"), options);
  const attackers = new Asked(program("attackers-child"), {});
  try {
    const port = await server.ask<number>("listen");
    const endsAt = performance.now() + forMs;
    const orders: Orders = { port, forMs, count: { ...NOBODY, "stalled start": ATTACKERS } };
    const [statuses] = await Promise.all([deliver(port, endsAt), attackers.ask("besiege", orders)]);
    const { attempts } = await attackers.ask<{ attempts: readonly Attempt[] }>("attempts");
    const taken = statuses.filter((status) => status >= 200 && status < 300).length;
    const problems = [
      ...(attempts.length >= ATTACKERS ? [] : [`only ${attempts.length} attackers came`]),
      ...(taken >= statuses.length * LEAST_TAKEN
        ? []
        : [`${statuses.length - taken} of ${statuses.length} large bodies were refused`]),
      ...(statuses.length >= SIZES.length ? [] : ["no body of each size was sent"]),
    ];
    return { sent: statuses.length, taken, attempts: attempts.length, problems };
  } finally {
    await Promise.all([server.kill(), attackers.kill()]);
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Returns the status of each answer, 0 for none. */
async function deliver(port: number, endsAt: number): Promise<readonly number[]> {
  const bodies = SIZES.map((size) => Buffer.alloc(size, "x"));
  const answers: Promise<number>[] = [];
  while (performance.now() < endsAt) {
    const body = bodies[answers.length % bodies.length] ?? Buffer.alloc(0);
    const start = Buffer.from(`{"n":${answers.length},"text":"`);
    answers.push(send(port, [start, body, Buffer.from('"}')]));
    await sleep(EVERY_MS);
  }
  return Promise.all(answers);
}

function send(port: number, parts: readonly Buffer[]): Promise<number> {
  const body = Buffer.concat(parts);
  const signature = createHmac("sha256", TEST_SECRETS.github).update(body).digest("hex");
  return new Promise((resolve) => {
    const headers = {
      "x-github-event": "push",
      "x-hub-signature-256": `sha256=${signature}`,
      "content-length": body.length,
    };
    const options = { host: "127.0.0.1", port, path: "/webhooks/known", method: "POST", headers, agent: false };
    const outgoing = request(options, (response) => {
      response.resume().once("end", () => resolve(response.statusCode ?? 0));
      response.once("error", () => resolve(0));
    });
    outgoing.once("error", () => resolve(0));
    void inPieces(body, (piece) => outgoing.write(piece)).then(() => outgoing.end());
  });
}

async function inPieces(body: Buffer, write: (piece: Buffer) => void): Promise<void> {
  const size = Math.ceil(body.length / PIECES);
  for (let at = 0; at < body.length; at += size) {
    write(body.subarray(at, at + size));
    await sleep(PIECE_EVERY_MS);
  }
}

/** Beside this file, where it was compiled to. */
const program = (name: string) => fileURLToPath(new URL(`./${name}.js`, import.meta.url));
