/** Which Host headers name this machine: one rule for the listener and the control API. */
import { isLoopback } from "../../internal/network.ts";
import { isEverywhere } from "../host.ts";
import type { Settings } from "../options.ts";

export const FOREIGN_HOST =
  'The Host header must name this machine: localhost, 127.0.0.1 or [::1]. To be reached by other names, the emulator needs the option "host" and a control token.';

/** The name in a Host header, in lower case and without brackets; null when it is not one name with at most a port. */
export function hostNameIn(header: string): string | null {
  const name = /^([\w.-]+|\[[\da-f:.]+\])(?::\d{1,5})?$/i.exec(header)?.[1];
  return name?.toLowerCase().replace(/^\[|\]$/g, "") ?? null;
}

/** A name that an attacker's name server made point here (DNS rebinding) is none of these. */
export function isOwnHost(header: string, { host: bound }: Settings): boolean {
  const name = hostNameIn(header);
  if (name === null) return false;
  // Whoever listens everywhere has names we cannot know; the token, which is mandatory there, keeps others from the controls.
  if (isEverywhere(bound)) return true;
  return isLoopback(name) || name === bound;
}
