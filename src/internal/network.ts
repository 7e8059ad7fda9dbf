/** Checks of hosts, ports and URLs that need no network: private hosts, ports that fetch refuses, credentials. */
import { BlockList, isIP } from "node:net";

const PRIVATE = new BlockList();
for (const [network, prefix] of [
  ["10.0.0.0", 8],
  ["127.0.0.0", 8],
  ["169.254.0.0", 16],
  ["172.16.0.0", 12],
  ["192.168.0.0", 16],
  ["100.64.0.0", 10],
  ["0.0.0.0", 8],
] as const)
  PRIVATE.addSubnet(network, prefix, "ipv4");
for (const [network, prefix] of [
  ["::", 127],
  ["fc00::", 7],
  ["fe80::", 10],
] as const)
  PRIVATE.addSubnet(network, prefix, "ipv6");

/** Names that public DNS never delegates (RFC 6761, RFC 6762, RFC 8375, ICANN's `internal`), and common names of private networks. */
const PRIVATE_NAME = /\.(?:local|localhost|localdomain|internal|lan|test|svc|home\.arpa)\.?$/i;

/** Whether an address or name is this machine's own. `localhost` and every name below it resolve to loopback (RFC 6761, 6.3). */
export function isLoopback(host: string): boolean {
  return /(?:^|\.)localhost$/i.test(host) || host === "::1" || /^127(?:\.\d{1,3}){3}$/.test(host);
}

/** Whether a URL's host is this machine or in a private network: a private address, a name without a dot, or a private name. */
export function isPrivateHost(hostname: string): boolean {
  const host = hostname.replace(/^\[|\]$/g, "");
  const family = isIP(host);
  if (family !== 0) return PRIVATE.check(host, family === 4 ? "ipv4" : "ipv6");
  return !host.replace(/\.$/, "").includes(".") || PRIVATE_NAME.test(host);
}

/** For messages. `fetch` connects to no port that the Fetch standard calls bad, such as 5060 and 6000: other protocols use them. */
export const BAD_PORT = "fetch connects to no such port, by its standard; choose another one";

/** Whether `fetch` failed because of such a port. The error has no code. */
export function isBadPort(error: unknown): boolean {
  const cause = error instanceof Error ? error.cause : undefined;
  return cause instanceof Error && cause.message === BAD_PORT_MESSAGE;
}

/** The fixed text of undici's error. */
export const BAD_PORT_MESSAGE = "bad port";

/** Whether a URL contains a user or a password. `fetch` refuses it, and a log line with it would leak the password. */
export function hasCredentials({ username, password }: Pick<URL, "username" | "password">): boolean {
  return username !== "" || password !== "";
}
