/** What a request's head alone can be refused for, before anything of its body is read. */
import { type HeaderSource, readHeader } from "../signature/headers.ts";
import * as answers from "./answers.ts";
import type { Answer } from "./incoming.ts";

export interface HeadRefusal {
  readonly reason: "method" | "encoding" | "too_large";
  readonly answer: Answer;
}

const METHOD: HeadRefusal = { reason: "method", answer: answers.METHOD_NOT_ALLOWED };
const ENCODING: HeadRefusal = { reason: "encoding", answer: answers.UNSUPPORTED_ENCODING };
const TOO_LARGE: HeadRefusal = { reason: "too_large", answer: answers.TOO_LARGE };

/** The service's method is not shown (DLV-11): POST and PUT carry a body, others are refused. */
export function refuseMethod(method: string): HeadRefusal | null {
  return method === "POST" || method === "PUT" ? null : METHOD;
}

/** A compressed body has other bytes than the ones that were signed, and a declared length says what is coming. */
export function refuseBody(headers: HeaderSource, maxBodyBytes: number): HeadRefusal | null {
  const encoding = readHeader(headers, "content-encoding")?.trim().toLowerCase() ?? "";
  if (encoding !== "" && encoding !== "identity") return ENCODING;
  const declared = declaredLength(headers);
  return declared !== null && declared > maxBodyBytes ? TOO_LARGE : null;
}

/** Null for an absent or meaningless `Content-Length`: the body is then bounded as it is read. */
export function declaredLength(headers: HeaderSource): number | null {
  const text = readHeader(headers, "content-length");
  return text !== undefined && /^\d{1,15}$/.test(text) ? Number(text) : null;
}
