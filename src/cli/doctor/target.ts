/** Whether an address can be reached by the service, and in secret. */
import { isPrivateHost } from "../../internal/network.ts";

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
  if (isPrivateHost(url.hostname)) return "url_private";
  return url.protocol === "https:" ? null : "url_insecure";
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
