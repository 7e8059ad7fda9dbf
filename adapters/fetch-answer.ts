/** An answer as a fetch `Response`, and the answer to a caller that passes something else than a `Request`. */
import { type Answer, answers, type Logger } from "../src/index.ts";
import { wrongFetchArgument } from "./host-fixes.ts";

/** `answer` as a `Response`. */
export function toResponse({ status, headers, body, close }: Answer): Response {
  return new Response(body, { status, headers: close ? closing(headers) : headers });
}

/**
 * Asks the host to close the connection, for a body that is not read would be taken for the next request. A `Request` does not say
 * which HTTP it came by: HTTP/2 has no such header, and hosts drop it there.
 */
export function closing(headers: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  return { ...headers, connection: "close" };
}

/** Makes the check of one mount: 500 for what is no `Request`, with the fix in the log, once; null for a `Request`. */
export function refuseOthers(owner: string, logger: () => Logger): (request: Request) => Response | null {
  let isReported = false;
  return (request) => {
    const fix = wrongFetchArgument(request);
    if (fix === null) return null;
    const message = `${owner} needs the fetch Request: a request was answered with 500. ${fix}`;
    if (!isReported) logger().error({ code: "wrong_arguments" }, message);
    isReported = true;
    return toResponse(answers.unread(answers.MISCONFIGURED));
  };
}
