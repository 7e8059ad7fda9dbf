/** Answers for what did not become a request: written to the socket itself. */
import { STATUS_CODES } from "node:http";
import type { Duplex } from "node:stream";
import type { Ground } from "../service.ts";
import { type Reason, refusalFor } from "./listener-refusal.ts";
import type { Place } from "./place.ts";
import { textOf } from "./responses.ts";

/** For how long a connection that was refused may stay, so that its sender can read why. */
const LINGER_MS = 1000;

interface Refused {
  readonly reason: Reason;
  readonly contract: Place["contract"];
}

export function refuseSocket(ground: Ground, socket: Duplex, { reason, contract }: Refused): void {
  // What follows in a broken request is broken too, and was answered.
  if (!socket.writable) return;
  const response = refusalFor(ground, reason, contract);
  const { status } = response;
  const headers = [...response.headers].map(([name, value]) => `${name}: ${value}`);
  const head = [`HTTP/1.1 ${status} ${STATUS_CODES[status]}`, ...headers, "connection: close"];
  socket.on("error", () => {});
  socket.resume();
  socket.end(`${head.join("\r\n")}\r\n\r\n${textOf(response) ?? ""}`);
  ground.settings.systemClock.setTimeout(() => socket.destroy(), LINGER_MS);
}
