/** Answers as `Response` objects: the two error contracts, and what a broken connection looks like. */
import type { Answer, Refusal } from "./answers.ts";

/** Which error shape a route answers with: OAuth's for the token route (GEN-3), the wrapper for all others (GEN-2). */
export type Contract = "core" | "token";

export function responseFrom(answer: Answer, contract: Contract, requestId: string): Response {
  switch (answer.kind) {
    case "reply":
      return json(answer.status, answer.text, answer.headers);
    case "refusal": {
      const body = contract === "token" ? oauthError(answer) : coreError(answer, requestId);
      return json(answer.status, JSON.stringify(body), answer.headers);
    }
    case "reset":
      return Response.error();
    case "badGateway":
      return new Response("<html><body><h1>502 Bad Gateway</h1></body></html>\n", {
        status: 502,
        headers: { "content-type": "text/html" },
      });
    default:
      return answer satisfies never;
  }
}

/** A JSON answer; nothing of this service is for caches (TOK-21). */
export function json(status: number, text: string, headers: Readonly<Record<string, string>> = {}): Response {
  const length = String(Buffer.byteLength(text));
  const own = { "content-type": "application/json", "content-length": length, "cache-control": "no-store" };
  const response = new Response(text, { status, headers: { ...own, ...headers } });
  texts.set(response, text);
  return response;
}

/** The answer to HEAD: that of GET without its body (RFC 9110, 9.3.2). */
export function withoutBody(response: Response): Response {
  if (response.type === "error") return response;
  // A stream of events ends here, before its first one.
  response.body?.cancel().catch(() => {});
  return new Response(null, { status: response.status, headers: response.headers });
}

const texts = new WeakMap<Response, string>();

/** The whole body of a JSON answer of this module, without the cost of reading its stream; undefined for others. */
export function textOf(response: Response): string | undefined {
  return texts.get(response);
}

/** The core error wrapper (GEN-2). */
function coreError(
  { code, message, details }: Pick<Refusal, "code" | "message" | "details">,
  requestId: string,
): object {
  return { error: { code, message, details }, requestId };
}

const OAUTH_ERRORS = ["invalid_request", "invalid_client", "unsupported_grant_type"];
/** What a fault rule that says only a status means on the token route. */
const OAUTH_ERROR_OF: Readonly<Record<string, string>> = {
  INVALID_REQUEST: "invalid_request",
  UNAUTHORIZED: "invalid_client",
};

/** Any other core code on the token route is a fault or a failure of the emulator: `server_error` (TOK-12). */
function oauthError({ code, message }: Refusal): object {
  const error = OAUTH_ERRORS.includes(code) ? code : (OAUTH_ERROR_OF[code] ?? "server_error");
  return { error, error_description: message };
}

/** The first half of an answer that promises all of it; its body then breaks. An answer without a body stays as it is. */
export function truncated(response: Response): Response {
  const { body, status, headers } = response;
  if (body === null) return response;
  const cut = new ReadableStream({
    async start(controller) {
      const bytes = new Uint8Array(await new Response(body).arrayBuffer());
      controller.enqueue(bytes.subarray(0, Math.floor(bytes.byteLength / 2)));
    },
    pull: (controller) => controller.error(new TypeError("the answer was cut short by a fault rule")),
  });
  return new Response(cut, { status, headers });
}
