/** The options that say where the emulator listens and who is let in. */

import { isLoopback } from "../internal/network.ts";
import { invalidOption, numberOption, textOption } from "../internal/options.ts";
import { hostFrom } from "./host.ts";

const DEFAULT_SEED = "oncehook";

/** Of `EmulatorOptions`, as callers without types may give them. */
type Given = Readonly<Record<"port" | "host" | "basePath" | "seed" | "controlToken", unknown>>;

/** The same, checked and complete. */
interface Listening {
  readonly port: number | null;
  readonly host: string;
  readonly basePath: string;
  readonly seed: string;
  readonly controlToken: string | undefined;
}

/** @throws SetupError for an option that does not fit, and for less than is needed beyond loopback */
export function listeningFrom(options: Partial<Given>): Listening {
  const host = hostFrom(textOption("host", options.host) ?? "127.0.0.1");
  const seed = textOption("seed", options.seed) ?? DEFAULT_SEED;
  const controlToken = controlTokenOption(options.controlToken);
  if (!isLoopback(host)) refuseUnguarded(options);
  return {
    port:
      options.port === null
        ? null
        : numberOption("port", options.port, 0, { min: 0, max: 65_535, unit: "as a TCP port" }),
    host,
    basePath: basePathOption(options.basePath),
    seed,
    controlToken,
  };
}

function refuseUnguarded({ seed = DEFAULT_SEED, controlToken }: Partial<Given>): void {
  if (controlToken === undefined) {
    throw invalidOption(
      "controlToken",
      "is required when the emulator listens beyond loopback: its state holds secrets",
    );
  }
  if (seed === DEFAULT_SEED) {
    throw invalidOption(
      "seed",
      "is required when the emulator listens beyond loopback, and must be your own: the secrets of its clients come from it",
    );
  }
}

/** What a header carries unchanged: printable ASCII without spaces at its ends (RFC 9110, section 5.5). */
function controlTokenOption(value: unknown): string | undefined {
  const token = textOption("controlToken", value);
  if (token === undefined || /^[!-~](?:[ -~]*[!-~])?$/.test(token)) return token;
  throw invalidOption(
    "controlToken",
    "must be printable ASCII without spaces at its ends, since a header carries it",
    value,
  );
}

function basePathOption(value: unknown): string {
  const path = value === undefined ? "" : value;
  if (typeof path !== "string" || !/^(?:(?:\/[\w.~-]+)+)?\/*$/.test(path)) {
    throw invalidOption("basePath", 'must be a path such as "/sms"', value);
  }
  if (/\/\.\.?(?:\/|$)/.test(path)) {
    throw invalidOption("basePath", 'must be without "." and ".." between its slashes: no request keeps them', value);
  }
  return path.replace(/\/+$/, "");
}
