/** Transaction poolers in front of the tests' server: one of the tests' own, which speaks the protocol, and PgBouncer where it is installed. */
import { connect as connectTo, createServer, type Socket } from "node:net";
import { inject, onTestFinished } from "vitest";
import { listenOnLoopback } from "../../support/loopback.ts";
import { PgBouncer } from "./pgbouncer.ts";

export interface PoolerOptions {
  /**
   * Which free connection of the server a transaction gets: the one that was used `last`, as PgBouncer chooses, or each `next` one in turn, which
   * a load does to PgBouncer.
   */
  readonly order?: "last" | "next";
  /** Connections of the server. */
  readonly servers?: number;
  /** What a client is told as its server's process: an `invented` number, as by PgBouncer, or a `true` one, by which no client sees the pooler. */
  readonly pid?: "invented" | "true";
  /** `session` keeps a client's connection of the server until the client goes. */
  readonly mode?: "transaction" | "session";
}

const SSL_REQUEST = 80_877_103;
const STARTUP = 196_608;

/** A message: its type, and all of its bytes. */
interface Message {
  readonly type: string;
  readonly bytes: Buffer;
}

/** Cuts a stream into messages. */
function messages(socket: Socket, take: (message: Message) => void): void {
  let rest = Buffer.alloc(0);
  socket.on("data", (chunk: Buffer) => {
    rest = Buffer.concat([rest, chunk]);
    while (rest.length >= 5 && rest.length >= 1 + rest.readInt32BE(1)) {
      const end = 1 + rest.readInt32BE(1);
      const bytes = rest.subarray(0, end);
      rest = rest.subarray(end);
      take({ type: String.fromCharCode(bytes[0] ?? 0), bytes });
    }
  });
}

function message(type: string, body: Buffer): Buffer {
  const head = Buffer.alloc(type.length + 4);
  head.write(type);
  head.writeInt32BE(body.length + 4, type.length);
  return Buffer.concat([head, body]);
}

const int32 = (...numbers: readonly number[]) => Buffer.from(new Int32Array(numbers).buffer).swap32();
const strings = (...texts: readonly string[]) => Buffer.from(texts.map((text) => `${text}\0`).join(""));

/** One connection of the server, logged in. */
interface Far {
  readonly socket: Socket;
  readonly pid: number;
  readonly parameters: readonly Buffer[];
  /** Who gets its messages. */
  take: (message: Message) => void;
}

async function connectFar(): Promise<Far> {
  const { hostname, port, username, password, pathname } = new URL(inject("postgresUrl"));
  const socket = connectTo({ port: Number(port), host: hostname, noDelay: true });
  socket.on("error", () => {});
  socket.write(
    message("", Buffer.concat([int32(STARTUP), strings("user", username, "database", pathname.slice(1), "")])),
  );
  const parameters: Buffer[] = [];
  return new Promise((resolve, reject) => {
    const far = { socket, pid: 0, parameters, take: (_: Message) => {} };
    far.take = ({ type, bytes }) => {
      if (type === "R" && bytes.readInt32BE(5) === 3) socket.write(message("p", strings(password)));
      else if (type === "R" && bytes.readInt32BE(5) !== 0)
        reject(new Error("The pooler of the tests knows plain passwords only."));
      if (type === "S") parameters.push(bytes);
      if (type === "K") far.pid = bytes.readInt32BE(5);
      if (type === "E") reject(new Error(bytes.toString("latin1")));
      if (type === "Z") resolve(far);
    };
    messages(socket, (each) => far.take(each));
  });
}

/**
 * Gives each transaction, and each statement outside of one, a connection of the server, and takes it back when the server says that it is
 * idle. What a transaction leaves on its connection the next one finds, whoever's it is: nothing is reset, as PgBouncer resets nothing.
 */
export async function startPooler({
  order = "last",
  servers = 3,
  pid = "invented",
  mode = "transaction",
}: PoolerOptions = {}): Promise<{ readonly url: string }> {
  const free: Far[] = [];
  const waiting: ((far: Far) => void)[] = [];
  const sockets = new Set<Socket>();
  let made = 0;
  const take = async (): Promise<Far> => {
    if (made < servers && (order === "next" || free.length === 0)) {
      made += 1;
      const far = await connectFar();
      sockets.add(far.socket);
      return far;
    }
    const far = order === "next" ? free.shift() : free.pop();
    return far ?? new Promise((resolve) => waiting.push(resolve));
  };
  const giveBack = (far: Far): void => {
    far.take = () => {};
    const next = waiting.shift();
    if (next === undefined) free.push(far);
    else next(far);
  };
  const greeting = await take();
  giveBack(greeting);
  const serveClient = (near: Socket): void => {
    let far: Far | null = null;
    /** `ReadyForQuery` that the server has yet to send: one for each query, and each end of a pipeline. */
    let awaited = 0;
    /** Something was sent that a Sync has yet to end. */
    let isOpen = false;
    let work = Promise.resolve();
    const link = async (): Promise<Far> => {
      const got = await take();
      got.take = ({ type, bytes }) => {
        near.write(bytes);
        if (type !== "Z") return;
        awaited -= 1;
        if (awaited > 0 || isOpen || bytes[5] !== 0x49 || mode === "session") return;
        far = null;
        giveBack(got);
      };
      return got;
    };
    messages(near, ({ type, bytes }) => {
      work = work.then(async () => {
        if (type === "X") return void near.end();
        far ??= await link();
        if (type === "Q" || type === "S") awaited += 1;
        isOpen = type !== "Q" && type !== "S";
        far.socket.write(bytes);
      });
    });
    near.on("close", () => {
      work = work.then(() => {
        if (far === null) return;
        if (mode === "session" && awaited === 0) return giveBack(far);
        // It has a transaction of somebody who is gone.
        far.socket.destroy();
        made -= 1;
      });
    });
    const number = pid === "true" ? greeting.pid : -Math.floor(1 + Math.random() * 2 ** 30);
    near.write(
      Buffer.concat([
        message("R", int32(0)),
        ...greeting.parameters,
        message("K", int32(number, 7)),
        message("Z", Buffer.from("I")),
      ]),
    );
  };
  const server = createServer({ noDelay: true }, (near) => {
    sockets.add(near.on("error", () => {}));
    const start = (chunk: Buffer) => {
      if (chunk.readInt32BE(4) === SSL_REQUEST) return void near.once("data", start).write("N");
      if (!chunk.includes("\0options\0")) return serveClient(near);
      const refusal = strings("SFATAL", "VFATAL", "C08P01", "Munsupported startup parameter: options", "");
      near.end(message("E", refusal));
    };
    near.once("data", start);
  });
  const url = new URL(inject("postgresUrl"));
  url.port = `${await listenOnLoopback(server)}`;
  onTestFinished(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  return { url: url.href };
}

/** PgBouncer in front of the tests' server, until the test ends. */
export async function startPgBouncer(
  settings: Readonly<Record<string, string>> = {},
): Promise<{ readonly url: string }> {
  const bouncer = await PgBouncer.start(inject("postgresUrl"), settings);
  onTestFinished(() => bouncer.stop());
  return bouncer;
}
