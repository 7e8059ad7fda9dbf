/** Why a command could not open its socket, and what to do about it. */
import { CommandError, FAILURE, isSystemError } from "./failure.ts";

/** Whether the operating system refused to listen. */
export function isListenError(error: unknown): error is Error & { readonly code: string } {
  return isSystemError(error) && ["listen", "getaddrinfo"].includes(error.syscall);
}

export interface Refused {
  readonly host: string;
  readonly port: number | string;
  /** Which of the two was refused. */
  readonly option: "host" | "port";
}

/** @param cause - an error for which `isListenError` holds */
export function cannotListen({ host, port, option }: Refused, cause: Error & { readonly code: string }): CommandError {
  const [reason, advice] =
    option === "host"
      ? ["it is no address of this machine", "Choose another --host; 127.0.0.1 is the default."]
      : [cause.code === "EADDRINUSE" ? "it is in use" : cause.code, "Choose another --port, or 0 for any free one."];
  return new CommandError(`Cannot listen on ${host}, port ${port}: ${reason}. ${advice}`, FAILURE, { cause });
}
