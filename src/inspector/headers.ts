/** The headers of every answer. Nothing the page shows may run, be framed, be kept, or be told to another site. */
import type { InspectorAnswer } from "./http.ts";

/** No script or style but the page's own files, no markup made from texts, no connection but to where it came from. */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join("; ");

const FOR_ALL: Readonly<Record<string, string>> = {
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "x-frame-options": "DENY",
  "content-security-policy": CONTENT_SECURITY_POLICY,
};

/** `answer` with them; it is kept nowhere unless it says otherwise itself. */
export function secured(answer: InspectorAnswer): InspectorAnswer {
  return { ...answer, headers: { "cache-control": "no-store", ...answer.headers, ...FOR_ALL } };
}
