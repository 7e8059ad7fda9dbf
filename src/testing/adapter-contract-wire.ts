/** A small HTTP/1.1 client over a raw socket, for what no HTTP library lets a test send or see. */
import { connect, type Socket } from "node:net";
import { systemClock } from "../internal/clock.ts";

export type HeaderLines = readonly (readonly [name: string, value: string])[];

/** One answer as it came over the wire. */
export interface WireAnswer {
  readonly status: number;
  /** Lower-case names; the last value of a repeated one. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export interface WireConnection {
  send(bytes: string | Uint8Array): void;
  /** The next answer, interim ones (1xx) included. Rejects when the connection ends first, or after 10 s. */
  answer(options?: { readonly bodyless?: boolean }): Promise<WireAnswer>;
  /** Resolves once this has come, of an answer that may have no end. Rejects as `answer` does. */
  arrived(part: string | Uint8Array): Promise<void>;
  /** How the other side ended the connection: cleanly (FIN) or by a reset. Rejects after 10 s. */
  ended(): Promise<"end" | "reset">;
  /** Reads nothing from now on. */
  pause(): void;
  /** Sends FIN, and still reads. */
  finish(): void;
  /** Sends RST. */
  abort(): void;
  close(): void;
}

const PATIENCE_MS = 10_000;
const HEAD_END = "\r\n\r\n";

/** The connections of one case, which are closed together. */
export function connectionsTo(port: number): { connect(): Promise<WireConnection>; close(): void } {
  const open: WireConnection[] = [];
  return {
    async connect() {
      const connection = await openConnection(port);
      open.push(connection);
      return connection;
    },
    close() {
      for (const connection of open) connection.close();
    },
  };
}

/** Opens a connection to a server on loopback. */
export async function openConnection(port: number): Promise<WireConnection> {
  const socket = connect({ host: "127.0.0.1", port, allowHalfOpen: true });
  const inbox = collect(socket);
  await new Promise<void>((resolve, reject) => socket.once("connect", resolve).once("error", reject));
  socket.setNoDelay(true);
  return {
    send: (bytes) => void socket.write(bytes),
    answer: (options = {}) => inbox.until(() => takeAnswer(inbox, options.bodyless === true), "an answer"),
    arrived: (part) =>
      inbox
        .until(() => (inbox.bytes.includes(Buffer.from(part)) ? true : undefined), "what was waited for")
        .then(() => {}),
    ended: () => inbox.until(() => inbox.end, "the end of the connection"),
    pause: () => void socket.pause(),
    finish: () => void socket.end(),
    abort: () => void socket.resetAndDestroy(),
    close: () => void socket.destroy(),
  };
}

/** The bytes of one request. `chunks` sends the body chunked, cut as given; else its length is declared. */
export function requestBytes(request: {
  readonly method?: string;
  readonly path?: string;
  readonly headers?: HeaderLines;
  readonly body?: Uint8Array;
  readonly chunks?: readonly Uint8Array[];
}): Buffer {
  const { method = "POST", path = "/webhooks", headers = [], body, chunks } = request;
  const framing: HeaderLines =
    chunks !== undefined
      ? [["Transfer-Encoding", "chunked"]]
      : body !== undefined
        ? [["Content-Length", `${body.length}`]]
        : [];
  const lines = [["Host", "127.0.0.1"] as const, ...headers, ...framing].map(([name, value]) => `${name}: ${value}`);
  const head = Buffer.from([`${method} ${path} HTTP/1.1`, ...lines].join("\r\n") + HEAD_END, "latin1");
  if (chunks === undefined) return Buffer.concat([head, body ?? new Uint8Array()]);
  const written = chunks.flatMap((chunk) => [
    Buffer.from(`${chunk.length.toString(16)}\r\n`),
    chunk,
    Buffer.from("\r\n"),
  ]);
  return Buffer.concat([head, ...written, Buffer.from("0\r\n\r\n")]);
}

interface Inbox {
  bytes: Buffer;
  end: "end" | "reset" | undefined;
  /** What `take` gives as soon as it gives anything. */
  until<T>(take: () => T | undefined, what: string): Promise<T>;
}

function collect(socket: Socket): Inbox {
  let look = () => {};
  const inbox: Inbox = {
    bytes: Buffer.alloc(0),
    end: undefined,
    until: (take, what) =>
      new Promise((resolve, reject) => {
        const timer = systemClock.setTimeout(
          () => reject(new Error(`No sign of ${what} within ${PATIENCE_MS} ms.`)),
          PATIENCE_MS,
        );
        look = () => {
          const taken = take();
          if (taken === undefined && inbox.end === undefined) return;
          timer.cancel();
          look = () => {};
          if (taken === undefined) reject(new Error(`The connection ended (${inbox.end}) before ${what}.`));
          else resolve(taken);
        };
        look();
      }),
  };
  const ends = (how: "end" | "reset") => () => {
    inbox.end ??= how;
    look();
  };
  socket.on("data", (chunk) => {
    inbox.bytes = Buffer.concat([inbox.bytes, chunk]);
    look();
  });
  socket.on("end", ends("end")).on("error", ends("reset")).on("close", ends("end"));
  return inbox;
}

/** Takes one whole answer off the front of what arrived; undefined while it is incomplete. */
function takeAnswer(inbox: Inbox, bodyless: boolean): WireAnswer | undefined {
  const headEnd = inbox.bytes.indexOf(HEAD_END);
  if (headEnd < 0) return undefined;
  const [statusLine = "", ...lines] = inbox.bytes.toString("latin1", 0, headEnd).split("\r\n");
  const headers = Object.fromEntries(lines.map(splitHeader));
  const status = Number(statusLine.split(" ")[1]);
  const start = headEnd + HEAD_END.length;
  const body = bodyless || status < 200 ? { text: "", end: start } : takeBody(inbox.bytes, start, headers);
  if (body === undefined) return undefined;
  inbox.bytes = inbox.bytes.subarray(body.end);
  return { status, headers, body: body.text };
}

function splitHeader(line: string): [name: string, value: string] {
  const colon = line.indexOf(":");
  return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
}

function takeBody(
  bytes: Buffer,
  start: number,
  headers: Record<string, string>,
): { text: string; end: number } | undefined {
  if (headers["transfer-encoding"] === "chunked") return takeChunks(bytes, start);
  const end = start + Number(headers["content-length"] ?? 0);
  return bytes.length < end ? undefined : { text: bytes.toString("utf8", start, end), end };
}

function takeChunks(bytes: Buffer, start: number): { text: string; end: number } | undefined {
  const parts: Buffer[] = [];
  for (let at = start; ; ) {
    const lineEnd = bytes.indexOf("\r\n", at);
    if (lineEnd < 0) return undefined;
    const length = Number.parseInt(bytes.toString("latin1", at, lineEnd), 16);
    const next = lineEnd + 2 + length + 2;
    if (bytes.length < next) return undefined;
    if (length === 0) return { text: Buffer.concat(parts).toString("utf8"), end: next };
    parts.push(bytes.subarray(lineEnd + 2, lineEnd + 2 + length));
    at = next;
  }
}
