/** Whether an address can be reached by the service, and in secret. */
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

/** What is wrong with an address, by code; null when nothing is. */
export type Fault = "url_invalid" | "url_private" | "url_insecure";

export const FAULTS: Readonly<Record<Fault, readonly [what: string, fix: string]>> = {
  url_invalid: ["is no http or https URL", "Write it in full: https://hooks.example.com/webhooks."],
  url_private: ["names this machine or a private network, which the service cannot reach", "Give a public name."],
  url_insecure: ["is not https: texts and numbers can be read on the way", "Give an https address."],
};

/** @param isLocal - the service runs on this machine, as the emulator does, so that everything here is in its reach */
export function faultOf(address: string, isLocal: boolean): Fault | null {
  const url = URL.canParse(address) ? new URL(address) : null;
  if (url === null || !/^https?:$/.test(url.protocol)) return "url_invalid";
  if (isLocal) return null;
  if (isPrivate(url.hostname)) return "url_private";
  return url.protocol === "https:" ? null : "url_insecure";
}

export function isPrivate(hostname: string): boolean {
  const host = hostname.replace(/^\[|\]$/g, "");
  const family = isIP(host);
  if (family !== 0) return PRIVATE.check(host, family === 4 ? "ipv4" : "ipv6");
  return !host.includes(".") || /\.(?:local|localhost|internal|lan|home\.arpa)\.?$/i.test(host);
}

/** Without path and query, in which some keep a secret. */
export function shownUrl(address: string): string {
  const { origin } = URL.canParse(address) ? new URL(address) : { origin: "null" };
  // So it is also of `localhost:3000`, whose scheme would be "localhost".
  return origin === "null" ? "the address" : origin;
}

export function isSameUrl(a: string, b: string): boolean {
  return URL.canParse(a) && URL.canParse(b) && new URL(a).href === new URL(b).href;
}
