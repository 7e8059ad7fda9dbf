/** The timestamps that may have been signed, given the headers: from where else, and in what other unit. */
import { SIGNATURE_HEADER, TIMESTAMP_HEADER } from "../../signature/sign.ts";
import { type Header, valuesOf } from "./capture.ts";
import type { CauseCode } from "./causes.ts";
import { type Change, distinct } from "./change.ts";

/** What a timestamp's text looks like, whatever a receiver makes of it. */
export type TimestampForm = "seconds" | "milliseconds" | "microseconds" | "nanoseconds" | "fraction" | "date" | "other";

const DIGITS: Readonly<Record<number, TimestampForm>> = {
  10: "seconds",
  13: "milliseconds",
  16: "microseconds",
  19: "nanoseconds",
};
const DATE = /^\d{4}-\d\d-\d\d[T ]\d\d:\d\d/;
const OTHER_NAME = /time-?_?stamp|[-_]time$|^date$/i;

export function timestampForm(text: string): TimestampForm {
  if (/^\d+$/.test(text)) return DIGITS[text.length] ?? "other";
  if (/^\d{10}\.\d+$/.test(text)) return "fraction";
  return DATE.test(text) || /^[A-Z][a-z]{2}, \d/.test(text) ? "date" : "other";
}

/** First the header's own text; without any timestamp an empty one, for signers that sign none. */
export function timestampChanges(headers: readonly Header[]): readonly Change<string>[] {
  const values = valuesOf(headers, TIMESTAMP_HEADER);
  const own = values.join(", ");
  const changes = [
    ...(values.length === 0 ? [] : inUnits(own, null, "X-Service-Timestamp")),
    ...own.split(",").flatMap((each) => inUnits(each.trim(), duplicateOrForm(own), "X-Service-Timestamp")),
    ...inUnits(own.replace(/[\s"']/g, ""), "timestamp_form", "X-Service-Timestamp"),
    ...valuesOf(headers, SIGNATURE_HEADER).flatMap((each) => inUnits(each, "headers_swapped", "X-Service-Signature")),
    ...headers.flatMap(elsewhere),
  ].filter(({ value }) => value !== "");
  const all = changes.length === 0 ? [{ value: "", cause: "timestamp_missing" as const, told: "none" }] : changes;
  return distinct(all, (text) => text);
}

function duplicateOrForm(text: string): CauseCode {
  return text.includes(",") ? "header_duplicated" : "timestamp_form";
}

function elsewhere([name, value]: Header): Change<string>[] {
  if (name.toLowerCase() === TIMESTAMP_HEADER) return [];
  // A scheme that has both in one header: t=1760000000,v1=…
  const [, inside] = /(?:^|[,;\s])t=(\d{10,19})\b/.exec(value) ?? [];
  if (inside !== undefined) return inUnits(inside, "header_renamed", `t= in ${name}`);
  return OTHER_NAME.test(name) ? inUnits(value, "header_renamed", name) : [];
}

function inUnits(text: string, cause: CauseCode | null, where: string): Change<string>[] {
  const other = conversions(text).map(
    (value): Change<string> => ({
      value,
      cause: cause ?? "timestamp_unit",
      told: `${where}, converted to ${timestampForm(value)}`,
    }),
  );
  return [{ value: text, cause, told: where }, ...other];
}

/** The same instant as others may write it. */
function conversions(text: string): string[] {
  const ms = instantOf(text);
  if (ms === null) return [];
  const date = new Date(ms).toISOString();
  return [`${Math.floor(ms / 1000)}`, `${ms}`, `${ms * 1000}`, date, date.replace(/\.000Z$/, "Z")];
}

/** Epoch milliseconds; null for what is no instant. */
export function instantOf(text: string): number | null {
  const form = timestampForm(text);
  if (form === "other") return null;
  if (form === "date") return Number.isNaN(Date.parse(text)) ? null : Date.parse(text);
  if (form === "seconds" || form === "fraction") return Math.floor(Number(text) * 1e3);
  return Math.floor(Number(text) / { milliseconds: 1, microseconds: 1e3, nanoseconds: 1e6 }[form]);
}
