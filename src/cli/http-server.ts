/** The HTTP server of a command: why it cannot listen, and how it closes. */
import { once } from "node:events";
import type { Server } from "node:http";
import { systemClock } from "../internal/clock.ts";
import { CommandError, FAILURE, isSystemError } from "./exit.ts";

// Why a command could not open its socket, and what to do about it.

/** Whether the operating system refused to listen. */
export function isListenError(error: unknown): error is Error & { readonly code: string } {
  return isSystemError(error) && ["listen", "getaddrinfo"].includes(error.syscall);
}

interface Refused {
  readonly host: string;
  readonly port: number | string;
  /** Which of the two was refused. */
  readonly option: "host" | "port";
}

/** @param cause - an error for which `isListenError` holds */
export function cannotListen({ host, port, option }: Refused, cause: Error & { readonly code: string }): CommandError {
  const [reason, advice] =
    option === "host"
      ? ["it is not an address of this machine", "Choose another --host; 127.0.0.1 is the default."]
      : [cause.code === "EADDRINUSE" ? "it is in use" : cause.code, "Choose another --port, or 0 for any free one."];
  return new CommandError(`Cannot listen on ${host}, port ${port}: ${reason}. ${advice}`, FAILURE, { cause });
}

// The end of a command's HTTP server.

/** Takes no new connection, and resolves when the last one has ended; those that have not within `limitMs` are cut. */
export async function closeServer(server: Server, limitMs: number): Promise<void> {
  const closed = once(server, "close");
  server.close();
  const limit = systemClock.setTimeout(() => server.closeAllConnections(), limitMs);
  await closed;
  limit.cancel();
}
