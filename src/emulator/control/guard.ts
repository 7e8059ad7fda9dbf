/** Who may use the control API: programs of this machine, and nothing that a web page makes a browser send. */
import { createHash, timingSafeEqual } from "node:crypto";
import { isLoopback, type Settings } from "../options.ts";
import type { ControlRefusal } from "./refusal.ts";

/** Why a call is refused, or null. */
export function guard({ headers, url }: Request, settings: Settings): ControlRefusal | null {
  const host = headers.get("host") ?? new URL(url).host;
  if (!isOwnHost(host, settings)) {
    return { code: "FORBIDDEN", message: "The Host header must name this machine: localhost, 127.0.0.1 or [::1]." };
  }
  if (isForeign(headers, host)) return { code: "FORBIDDEN", message: "Web pages may not use the control API." };
  if (settings.controlToken !== undefined && !isToken(headers.get("authorization"), settings.controlToken)) {
    return { code: "UNAUTHORIZED", message: "The control token is required: Authorization: Bearer …" };
  }
  return null;
}

/** A name that an attacker's name server made point here is none of these (DNS rebinding). */
function isOwnHost(host: string, { host: bound }: Settings): boolean {
  const name = /^([\w.-]+|\[[\da-f:.]+\])(?::\d{1,5})?$/i.exec(host)?.[1]?.toLowerCase();
  if (name === undefined) return false;
  // Whoever listens everywhere has names we cannot know; the token, which is mandatory there, keeps the others out.
  if (bound === "0.0.0.0" || bound === "::") return true;
  const bare = name.replace(/^\[|\]$/g, "");
  return isLoopback(bare) || bare === bound.toLowerCase();
}

/** A page sends its origin with whatever could change something; what it can send without one, browsers mark. */
function isForeign(headers: Headers, host: string): boolean {
  const origin = headers.get("origin");
  if (origin !== null && origin.toLowerCase() !== `http://${host.toLowerCase()}`) return true;
  const site = headers.get("sec-fetch-site");
  return site !== null && site !== "same-origin" && site !== "none";
}

/** Compared as hashes, which have one length, in constant time. */
function isToken(authorization: string | null, token: string): boolean {
  const given = /^bearer (.*)$/i.exec(authorization ?? "")?.[1] ?? "";
  const hash = (text: string) => createHash("sha256").update(text).digest();
  return timingSafeEqual(hash(given), hash(token));
}
