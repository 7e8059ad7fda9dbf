/** Which hosts are this machine or in a private network. */
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
