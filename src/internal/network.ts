/** What can be said of an address without asking anybody: private hosts, ports that fetch refuses, credentials in a URL. */
import { BlockList, isIP } from "node:net";

// Which hosts are this machine or in a private network.

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

/** Top-level names that public DNS never delegates (RFC 6761, RFC 6762, RFC 8375, ICANN's `internal`), and those of private networks. */
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

// Ports that `fetch` connects to for nobody, such as 5060 and 6000: the Fetch standard calls them bad, for other protocols use them.

/** Why nothing came, and what to do about it. */
export const BAD_PORT = "fetch connects to no such port, by its standard; choose another one";

/** Whether that is what `fetch` failed with. It has no code for it. */
export function isBadPort(error: unknown): boolean {
  const cause = error instanceof Error ? error.cause : undefined;
  return cause instanceof Error && cause.message === BAD_PORT_MESSAGE;
}

/** As undici writes it: a fixed text. */
export const BAD_PORT_MESSAGE = "bad port";

/** Whether an address names who asks: `fetch` refuses such a one, and whatever shows it shows a password. */
export function hasCredentials({ username, password }: Pick<URL, "username" | "password">): boolean {
  return username !== "" || password !== "";
}
