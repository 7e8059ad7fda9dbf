/** What the control API answers when it does not do what it was asked: `{ error: { code, message } }`. */
import { json } from "../http/responses.ts";

/** The codes and their statuses. */
const STATUSES = {
  INVALID_REQUEST: 400,
  UNAUTHORIZED: 401,
  FORBIDDEN: 403,
  NOT_FOUND: 404,
  METHOD_NOT_ALLOWED: 405,
  CONFLICT: 409,
  PAYLOAD_TOO_LARGE: 413,
  UNSUPPORTED_MEDIA_TYPE: 415,
  SERVER_ERROR: 500,
} as const;

export interface ControlRefusal {
  readonly code: keyof typeof STATUSES;
  readonly message: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export function refusalResponse({ code, message, headers = {} }: ControlRefusal): Response {
  return json(STATUSES[code], controlError(code, message), headers);
}

/** Its text. */
export function controlError(code: ControlRefusal["code"], message: string): string {
  return JSON.stringify({ error: { code, message } });
}
