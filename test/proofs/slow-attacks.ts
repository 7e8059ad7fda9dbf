/** The slow attackers, each on a socket of its own: well-formed requests, rightly framed, with a fresh timestamp and a signature that looks like one. */
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import { connect, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { listenOnLoopback } from "../support/loopback.ts";
import { DRIP_EVERY_MS, FLOOD_MS, INVENT_EVERY_MS, type Sort, TENANT } from "./slow-besieged.ts";

/** Before an attacker comes again. */
const AGAIN_AFTER_MS = 1_000;
/** Attackers that come in a second: they are slow, and no flood of connections. */
const ARRIVE_PER_SECOND = 200;
const MIB = 1024 * 1024;
/** One byte each, framed as a chunk: what holds them all takes much more than they are. */
const CRUMBS = 24_000;
const CRUMBS_AT_ONCE = 300;
const CRUMB = "1\r\nx\r\n";
/** Small requests that a slow reader sends at once; whoever is to get stuck sends as many again and again. */
const PIPELINED = 20;
const STUCK_PIPELINED = 100;
/** No quicker: it is to get stuck, not to flood. */
const STUCK_EVERY_MS = 50;
/** Who waits for so long to get rid of requests is stuck: nothing more is read from whoever takes no answers. */
const STUCK_MS = 1_000;

/** Sends until it is done or the connection is closed. */
type Course = (connection: Connection) => Promise<void>;

interface Connection {
  readonly socket: Socket;
  isClosed(): boolean;
  isAnswered(): boolean;
}

const COURSES: Readonly<Record<Sort, Course>> = {
  "slow headers": async ({ socket, isClosed }) => {
    socket.write("POST /webhooks HTTP/1.1\r\nhost: x\r\n");
    for (let line = 0; !isClosed(); line++) {
      socket.write(`x-line-${line}: ${line}\r\n`);
      await sleep(1_000);
    }
  },
  "dripping body": async ({ socket, isClosed }) => {
    socket.write(headOf("content-length: 4096"));
    for (; !isClosed(); await sleep(DRIP_EVERY_MS)) socket.write("x");
  },
  "stalled body": async ({ socket }) => {
    socket.write(headOf(`content-length: ${MIB}`));
    socket.write(Buffer.alloc(MIB - 1, "x"));
  },
  "stalled start": async ({ socket }) => {
    socket.write(headOf("content-length: 1000000"));
    socket.write(Buffer.alloc(64_000, "x"));
  },
  "body of crumbs": async ({ socket, isClosed, isAnswered }) => {
    socket.write(headOf("transfer-encoding: chunked"));
    for (let sent = 0; sent < CRUMBS && !isClosed() && !isAnswered(); sent += CRUMBS_AT_ONCE) {
      socket.write(CRUMB.repeat(CRUMBS_AT_ONCE));
      await sleep(100);
    }
  },
  "steady body": async ({ socket, isClosed, isAnswered }) => {
    socket.write(headOf("content-length: 65536"));
    for (; !isClosed() && !isAnswered(); await sleep(100)) socket.write("x".repeat(200));
  },
  "slow reader": async ({ socket }) => {
    socket.pause();
    socket.write(whole().repeat(PIPELINED));
  },
  "stuck reader": async ({ socket, isClosed }) => {
    socket.pause();
    for (let isStuck = false; !isClosed() && !isStuck; ) {
      const written = new Promise<boolean>((resolve) => {
        socket.write(whole().repeat(STUCK_PIPELINED), () => resolve(false));
      });
      isStuck = await Promise.race([written, sleep(STUCK_MS, true)]);
      await sleep(STUCK_EVERY_MS);
    }
  },
  "invented tenant": async ({ socket, isClosed }) => {
    // All attackers invent the same name at the same moment, so that they wait for one look-up.
    for (const endsAt = Date.now() + FLOOD_MS; Date.now() < endsAt && !isClosed(); ) {
      const round = Math.ceil((Date.now() + 1) / INVENT_EVERY_MS);
      await sleep(round * INVENT_EVERY_MS - Date.now());
      socket.write(whole(`invented-${round}`));
    }
  },
};

export interface Orders {
  readonly port: number;
  readonly count: Readonly<Record<Sort, number>>;
  /** Nobody begins again after that. */
  readonly forMs: number;
}

/** What became of one connection of an attacker. */
export interface Attempt {
  readonly sort: Sort;
  /** By which the server knows it too: who does not read does not see that the server has closed it. */
  readonly localPort: number;
  /** Epoch milliseconds. */
  readonly since: number;
}

/** Each attacker begins again when it is let go, for as long as the attack lasts. Gives all connections that were made. */
export async function attackAll({ port, count, forMs }: Orders): Promise<readonly Attempt[]> {
  const endsAt = performance.now() + forMs;
  const sorts = Object.entries(count) as [Sort, number][];
  const attackers = sorts.flatMap(([sort, size]) => Array.from({ length: size }, () => sort));
  const attempts: Attempt[] = [];
  await Promise.all(
    attackers.map(async (sort, index) => {
      await sleep((place(index, attackers.length) / ARRIVE_PER_SECOND) * 1_000);
      for (let isFirst = true; isFirst || performance.now() < endsAt; isFirst = false) {
        if (!isFirst) await sleep(AGAIN_AFTER_MS);
        const socket = await attack(sort, port).catch(() => null);
        if (socket !== null) attempts.push({ sort, localPort: socket.localPort ?? 0, since: Date.now() });
        const over = sleep(Math.max(0, endsAt - performance.now()));
        // Who does not read never sees its end.
        await Promise.race([socket && new Promise((resolve) => socket.once("close", resolve)), over]);
      }
    }),
  );
  return attempts;
}

/** Sorts come mixed: 7,919 is a prime, so that each place is taken once. */
const place = (index: number, count: number) => (index * 7_919) % count;

/** @throws when the server takes no connection */
async function attack(sort: Sort, port: number): Promise<Socket> {
  const socket = connect(port, "127.0.0.1").setNoDelay(true);
  await once(socket, "connect");
  let answered = false;
  socket.once("data", () => {
    answered = true;
  });
  socket.on("error", () => {});
  void COURSES[sort]({ socket, isClosed: () => socket.destroyed, isAnswered: () => answered });
  return socket;
}

/** A server that does nothing and that nobody attacks: how late its answers are is the machine's own doing. */
export function idleServer(): Promise<number> {
  const server = createServer((request, response) => void request.resume().once("end", () => response.end()));
  return listenOnLoopback(server);
}

function headOf(framing: string, tenant: string = TENANT): string {
  const signature = randomBytes(32).toString("hex");
  return `POST /webhooks/${tenant} HTTP/1.1\r\nhost: x\r\nx-service-timestamp: ${Date.now()}\r\nx-service-signature: ${signature}\r\nx-hub-signature-256: sha256=${signature}\r\n${framing}\r\n\r\n`;
}

function whole(tenant?: string): string {
  return `${headOf("content-length: 2", tenant)}{}`;
}
