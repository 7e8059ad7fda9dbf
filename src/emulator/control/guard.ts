/** Who may use the control API: programs of this machine, and nothing that a web page makes a browser send. */
import { isSameSecret } from "../../signature/secret.ts";
import { FOREIGN_HOST, isOwnHost } from "../http/own-host.ts";
import type { Settings } from "../options.ts";
import type { ControlRefusal } from "./refusal.ts";

/** Why a call is refused, or null. */
export function guard({ headers, url }: Request, settings: Settings): ControlRefusal | null {
  const host = headers.get("host") ?? new URL(url).host;
  if (!isOwnHost(host, settings)) return { code: "FORBIDDEN", message: FOREIGN_HOST };
  if (isForeign(headers, host)) return { code: "FORBIDDEN", message: "Web pages may not use the control API." };
  if (settings.controlToken !== undefined && !isToken(headers.get("authorization"), settings.controlToken)) {
    return { code: "UNAUTHORIZED", message: "The control token is required: Authorization: Bearer …" };
  }
  return null;
}

/** A page sends its origin with whatever could change something; what it can send without one, browsers mark. */
function isForeign(headers: Headers, host: string): boolean {
  const origin = headers.get("origin");
  if (origin !== null && origin.toLowerCase() !== `http://${host.toLowerCase()}`) return true;
  const site = headers.get("sec-fetch-site");
  return site !== null && site !== "same-origin" && site !== "none";
}

function isToken(authorization: string | null, token: string): boolean {
  return isSameSecret(/^bearer (.*)$/i.exec(authorization ?? "")?.[1] ?? "", token);
}
