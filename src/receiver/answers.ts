/** Every answer the receiver can give, built once. */
import type { Answer } from "./incoming.ts";

/** Seconds. The service keeps its own schedule, but a proxy in between may respect it. */
const RETRY_AFTER_SECONDS = "30";

export type AcceptedOutcome = "accepted" | "duplicate" | "late" | "quarantined" | "handled" | "dead";

const ACCEPTED: Readonly<Record<AcceptedOutcome, Answer>> = {
  accepted: answer(200, { outcome: "accepted" }),
  duplicate: answer(200, { outcome: "duplicate" }),
  late: answer(200, { outcome: "late" }),
  quarantined: answer(200, { outcome: "quarantined" }),
  handled: answer(200, { outcome: "handled" }),
  dead: answer(200, { outcome: "dead" }),
};

/** 200: the service does not send this delivery again, whatever happens to the event. */
export function accepted(outcome: AcceptedOutcome): Answer {
  return ACCEPTED[outcome];
}

/** The outcome in an answer of 200. Null for any other answer. */
export function acceptedOutcome(answer: Answer): AcceptedOutcome | null {
  for (const [outcome, known] of Object.entries(ACCEPTED)) if (known === answer) return outcome as AcceptedOutcome;
  return null;
}

/** 401: one answer for every failed check. The reason is in the log only. */
export const UNAUTHORIZED: Answer = answer(401, { error: "unauthorized" });
/** The same, for a request whose body was not read. */
export const UNAUTHORIZED_UNREAD: Answer = unread(UNAUTHORIZED);
/** 400: fewer bytes than declared, or the sender disconnected. */
export const BODY_TRUNCATED: Answer = answer(400, { error: "body_truncated" }, {}, "close");
/** 400, only with `quarantine: "reject"`. */
export const UNPROCESSABLE: Answer = answer(400, { error: "invalid_event" });
export const METHOD_NOT_ALLOWED: Answer = answer(405, { error: "method_not_allowed" }, { allow: "POST, PUT" }, "close");
export const TOO_LARGE: Answer = answer(413, { error: "body_too_large" }, {}, "close");
export const UNSUPPORTED_ENCODING: Answer = answer(415, { error: "unsupported_content_encoding" }, {}, "close");
/** 500: the application parsed the body first. */
export const RAW_BODY_UNAVAILABLE: Answer = answer(500, { error: "raw_body_unavailable" });
export const MISCONFIGURED: Answer = answer(500, { error: "misconfigured" });
/** 503: the service retries, so nothing is lost. */
export const UNAVAILABLE: Answer = answer(503, { error: "unavailable" }, { "retry-after": RETRY_AFTER_SECONDS });
/** The same, for a request whose body was not read. */
export const UNAVAILABLE_UNREAD: Answer = unread(UNAVAILABLE);

/** `answer`, for a request whose body was not read to its end. */
export function unread(answer: Answer): Answer {
  return { ...answer, close: true };
}

function answer(
  status: Answer["status"],
  content: Readonly<Record<string, string>>,
  headers: Readonly<Record<string, string>> = {},
  connection: "keep" | "close" = "keep",
): Answer {
  const body = JSON.stringify(content);
  return {
    status,
    headers: {
      "content-type": "application/json",
      "content-length": `${body.length}`,
      "cache-control": "no-store",
      ...headers,
    },
    body,
    close: connection === "close",
  };
}
