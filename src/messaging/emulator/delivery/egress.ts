/** The egress guard: which addresses webhooks may reach. This machine alone by default; link-local and metadata addresses never. */
import { isIP } from "node:net";
import ipaddr from "ipaddr.js";
import { SetupError } from "../../../errors.ts";
import { hasCredentials } from "../../../internal/network.ts";
import { invalidOption } from "../../../internal/options.ts";
import type { Settings } from "../options.ts";

export type EgressSettings = Pick<Settings, "allowPrivateTargets" | "allowPublicTargets">;

export interface EgressGuard {
  /** Whether a connection to this IP address is allowed. Anything but an address is not. */
  isAddressAllowed(address: string): boolean;
  /**
   * Why a URL is refused as it is written, or null. Null for a name does not allow it: its addresses are checked when it is
   * looked up. To be read behind "the URL …"; it holds nothing of it.
   */
  refusalOf(url: string): string | null;
}

type Address = ipaddr.IPv4 | ipaddr.IPv6;
type Range = readonly [Address, number];

/**
 * No setting allows them: clouds give credentials there to every caller from inside. All of IPv4 and IPv6 link-local; Alibaba;
 * Azure's host, which has a public address; Oracle; and the unique local ones of AWS, Google and Scaleway.
 */
const NEVER = [
  "169.254.0.0/16",
  "100.100.100.200/32",
  "168.63.129.16/32",
  "192.0.0.192/32",
  "fe80::/10",
  "fd00:ec2::/32",
  "fd20:ce::254/128",
  "fd00:42::42/128",
].map((cidr) => ipaddr.parseCIDR(cidr));

/** What `allowPrivateTargets` can open, whole or in part; the fourth is shared address space (RFC 6598). */
const PRIVATE = ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7"];
const PRIVATE_RANGES = PRIVATE.map((cidr) => ipaddr.parseCIDR(cidr));

/** @throws SetupError for a range that is none, or that is not private */
export function createEgressGuard({ allowPrivateTargets, allowPublicTargets }: EgressSettings): EgressGuard {
  const allowed = privateRanges(allowPrivateTargets);

  function isAddressAllowed(text: string): boolean {
    if (isIP(text) === 0) return false;
    const address = addressOf(text);
    if (isIn(address, NEVER)) return false;
    if (address.range() === "loopback" || isIn(address, allowed)) return true;
    return allowPublicTargets && isPublic(address);
  }

  function refusalOf(text: string): string | null {
    if (!URL.canParse(text)) return "is not a URL";
    const url = new URL(text);
    if (url.protocol !== "http:" && url.protocol !== "https:") return "is not an http or https URL";
    // The service shows no such authentication, and `http://127.0.0.1@elsewhere/` exists to be misread.
    if (hasCredentials(url)) return "holds credentials";
    const host = hostOf(url);
    if (isIP(host) === 0 || isAddressAllowed(host)) return null;
    return refusalOfAddress(addressOf(host));
  }

  return { isAddressAllowed, refusalOf };
}

function refusalOfAddress(address: Address): string {
  if (isIn(address, NEVER)) return "names a link-local or metadata address, which webhooks never reach";
  if (isIn(address, PRIVATE_RANGES)) return "names a private address: allowPrivateTargets opens its network";
  return isPublic(address)
    ? "names a public address: allowPublicTargets opens them"
    : "names an address of no receiver";
}

/**
 * An IPv4-mapped address is the IPv4 one: the connection is the same. An IPv6 address is written without dots first, since
 * ipaddr.js would take `::127.0.0.1`, as look-ups and sockets write `::7f00:1`, for a mapped one.
 */
function addressOf(ip: string): Address {
  if (isIP(ip) === 4) return ipaddr.parse(ip);
  const [withoutZone = ""] = ip.split("%");
  return ipaddr.process(hostOf(new URL(`http://[${withoutZone}]`)));
}

/** A URL's host as a socket takes it: an IPv6 address without its brackets. */
function hostOf({ hostname }: URL): string {
  return hostname.startsWith("[") ? hostname.slice(1, -1) : hostname;
}

/**
 * A public unicast address, or one that carries a public IPv4 address in NAT64 or 6to4 form. Every other special range of the
 * registries (unspecified, multicast, broadcast, reserved, documentation, Teredo, …) is not.
 */
function isPublic(address: Address): boolean {
  if (address instanceof ipaddr.IPv4) return address.range() === "unicast";
  if (isIn(address, IPV4_COMPATIBLE)) return false;
  const carried = carriedBy(address);
  if (carried !== null) return !isIn(carried, NEVER) && carried.range() === "unicast";
  return address.range() === "unicast";
}

/** Deprecated, and read as IPv4 by some systems (RFC 4291, 2.5.5.1); ipaddr.js counts them as unicast. */
const IPV4_COMPATIBLE = [ipaddr.parseCIDR("::/96")];
/** The well-known prefix of RFC 6052 alone: where a network's own prefix carries the IPv4 address, its length decides. */
const NAT64 = [ipaddr.parseCIDR("64:ff9b::/96")];
const SIX_TO_FOUR = [ipaddr.parseCIDR("2002::/16")];

function carriedBy(address: ipaddr.IPv6): ipaddr.IPv4 | null {
  const bytes = address.toByteArray();
  if (isIn(address, NAT64)) return new ipaddr.IPv4(bytes.slice(12, 16));
  if (isIn(address, SIX_TO_FOUR)) return new ipaddr.IPv4(bytes.slice(2, 6));
  return null;
}

function isIn(address: Address, ranges: readonly Range[]): boolean {
  return ranges.some(([network, bits]) => network.kind() === address.kind() && address.match(network, bits));
}

function privateRanges(option: unknown): Range[] {
  if (!Array.isArray(option)) throw invalidOption("allowPrivateTargets", "must be a list of networks", option);
  return option.map(privateRange);
}

function privateRange(text: unknown): Range {
  if (typeof text !== "string") throw invalidOption("allowPrivateTargets", "must be a list of texts", text);
  if (isIP(text) !== 0) throw badRange(`is an address: write "${text}/${isIP(text) === 4 ? 32 : 128}"`, text);
  // ipaddr.js alone would take "10/8" for 0.0.0.10/8.
  if (isIP(text.split("/")[0] ?? "") === 0 || !ipaddr.isValidCIDR(text)) {
    throw badRange('is not a network in CIDR notation, such as "10.0.0.0/8"', text);
  }
  const range = ipaddr.parseCIDR(text);
  if (liesIn(range, NEVER)) throw badRange("is link-local or a metadata address, which webhooks never reach", text);
  if (liesIn(range, PRIVATE_RANGES)) return range;
  if (range[0].range() === "loopback") throw badRange("is loopback, which is always allowed: leave it out", text);
  throw badRange(`is not private: name a part of ${PRIVATE.join(", ")}, or set allowPublicTargets`, text);
}

/** Whether all of a range lies in one of others. */
function liesIn([network, bits]: Range, others: readonly Range[]): boolean {
  return isIn(
    network,
    others.filter(([, least]) => bits >= least),
  );
}

function badRange(problem: string, range: string): SetupError {
  return new SetupError("invalid_option", `Option "allowPrivateTargets": "${range}" ${problem}.`, {
    fields: { option: "allowPrivateTargets", range },
  });
}

// Says early which targets the egress guard will block, as far as a URL shows it: what a name means is known when it is looked up.

/** The targets that an emulator starts with. Neither field nor text holds the URL: it may have credentials. */
export function warnOfBlockedTargets(settings: Settings): void {
  for (const option of ["inboundUrl", "deliveryUrl"] as const) {
    const reason = refusalOf(settings, settings[option]);
    if (reason !== null)
      settings.logger.warn({ option, reason }, `Webhooks to ${option} will be blocked: it ${reason}.`);
  }
}

/** For the request log, about the targets that a call set. */
export function blockedTargetWarnings(
  settings: EgressSettings,
  targets: Readonly<Record<string, string | null | undefined>>,
): string[] {
  return Object.entries(targets).flatMap(([field, url]) => {
    const reason = refusalOf(settings, url);
    return reason === null ? [] : [`webhooks to this ${field} will be blocked: it ${reason}`];
  });
}

function refusalOf(settings: EgressSettings, url: string | null | undefined): string | null {
  return url === null || url === undefined ? null : createEgressGuard(settings).refusalOf(url);
}
