/** Answers for what did not become a request: written to the socket itself, in the core error wrapper (GEN-2). */
import { STATUS_CODES } from "node:http";
import type { Duplex } from "node:stream";
import type { Ground } from "../service.ts";
import { coreError } from "./responses.ts";

/** For how long a connection that was refused may stay, so that its sender can read why. */
const LINGER_MS = 1000;

export function refuseSocket(ground: Ground, socket: Duplex, { status, message }: Reason): void {
  // What follows in a broken request is broken too, and was answered.
  if (!socket.writable) return;
  const text = refusalText(ground, status, message);
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    "content-type: application/json",
    `content-length: ${Buffer.byteLength(text)}`,
    "cache-control: no-store",
    "connection: close",
  ];
  socket.on("error", () => {});
  socket.resume();
  socket.end(`${head.join("\r\n")}\r\n\r\n${text}`);
  ground.settings.systemClock.setTimeout(() => socket.destroy(), LINGER_MS);
}

export function refusalText({ state }: Ground, status: number, message: string): string {
  const code = status === 404 ? "NOT_FOUND" : status === 500 ? "SERVER_ERROR" : "INVALID_REQUEST";
  return JSON.stringify(coreError({ code, message, details: {} }, state.nextId("req")));
}

export interface Reason {
  readonly status: number;
  readonly message: string;
}

/** For a method that no path has (GEN-7). */
export const NO_ROUTE: Reason = { status: 404, message: "There is no such route." };

/** Why `node:http` could not read a request. */
export function reasonOf({ code }: NodeJS.ErrnoException): Reason {
  switch (code) {
    case "HPE_HEADER_OVERFLOW":
      return { status: 431, message: "The headers are too long." };
    case "ERR_HTTP_REQUEST_TIMEOUT":
      return { status: 408, message: "The request took too long to arrive." };
    default:
      return { status: 400, message: "This is not an HTTP request." };
  }
}
