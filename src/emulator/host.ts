/** Hosts to listen on: read as addresses in one spelling, since many stand for the same one. */
import ipaddr from "ipaddr.js";
import { invalidOption } from "../internal/options.ts";

/**
 * The host as `listen` gets it: an address in its usual spelling (`0` is `0.0.0.0`, `::0` is `::`), or a name.
 *
 * @throws SetupError when it is neither
 */
export function hostFrom(text: string): string {
  const bare = /^\[([\da-f:.]+)\]$/i.exec(text)?.[1] ?? text;
  if (ipaddr.isValid(bare)) return ipaddr.process(bare).toString();
  if (isName(text)) return text.toLowerCase();
  throw invalidOption("host", 'must be an IP address or a name, such as "127.0.0.1"', text);
}

/** A name whose last label is a number would be taken for an address by some resolvers, and not by others. */
function isName(text: string): boolean {
  return /^[a-z\d_-]+(?:\.[a-z\d_-]+)*\.?$/i.test(text) && !/(?:^|\.)(?:\d+|0x[\da-f]*)\.?$/i.test(text);
}

/** Whether a host, as `hostFrom` gives it, is every address of this machine. */
export function isEverywhere(host: string): boolean {
  return host === "0.0.0.0" || host === "::";
}

/** What stands in a URL for a host that is listened on: an address that can be connected to; an IPv6 one goes in brackets. */
export function urlHostOf(host: string): string {
  if (host === "0.0.0.0") return "127.0.0.1";
  if (host === "::") return "[::1]";
  return host.includes(":") ? `[${host}]` : host;
}
