/** What may be told of an error that somebody else's code threw where secrets went through: it may quote them anywhere. */

const LONGEST_LABEL = 40;
/** As names of errors are written, or as codes are: `AccessDenied`, `ERR_HTTP2_ERROR`. No part of a code is as long as a secret. */
const LABEL = /^(?:[A-Z][A-Za-z]*|[A-Z][A-Z0-9]{0,14}(?:_[A-Z0-9]{1,15})*)$/;

/** Its name and code, as far as they look like names, ready to be put behind what failed: ` (TypeError, ECONNRESET)`, or nothing. */
export function foreignLabels(thrown: unknown): string {
  const labels = (["name", "code"] as const).map((property) => read(thrown, property)).filter(isLabel);
  return labels.length === 0 ? "" : ` (${[...new Set(labels)].join(", ")})`;
}

function isLabel(value: unknown): value is string {
  return typeof value === "string" && value.length <= LONGEST_LABEL && LABEL.test(value);
}

/** Whatever was thrown may throw again when it is looked at. */
function read(thrown: unknown, property: "name" | "code"): unknown {
  try {
    return (thrown as Readonly<Record<string, unknown>> | null | undefined)?.[property];
  } catch {
    return undefined;
  }
}
