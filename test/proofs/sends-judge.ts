/** Whether a run of sends kept the promise: one message per recipient and key, whatever happened on the way. */
import { ServiceError } from "../../src/messaging/client/index.ts";
import { type Evidence, keyOf, type Ledger, placeOf, type Sent } from "./sends-run.ts";

/** The first request, two retries, and one after a 401. */
const MOST_ATTEMPTS = 4;

/** What is wrong; empty when nothing is. */
export function judge({ sends, ledgers, calls }: Evidence): string[] {
  return [
    ...sends.flatMap((sent) => [...firstProblems(sent, ledgers.first), ...lastProblems(sent, ledgers.last)]),
    ...phantoms(sends, ledgers.last),
    ...callProblems(calls),
  ];
}

/** After success exactly one message per recipient; after an error at most one, and an error to go on with. */
function firstProblems({ request, first }: Sent, ledger: Ledger): string[] {
  const problems: string[] = [];
  const name = request.externalReference;
  for (const [index, to] of request.to.entries()) {
    const place = placeOf(request, to);
    const found = ledger.get(place) ?? [];
    if (found.length > 1) problems.push(`double: ${place} has ${found.length} messages`);
    if (!first.ok) continue;
    if (found.length === 0) problems.push(`lost: ${place} ended in success and has no message`);
    else if (!found.includes(first.messageIds[index] ?? ""))
      problems.push(`other: ${place} was told of another message`);
  }
  if (first.ok) return problems;
  if (!(first.error instanceof ServiceError)) problems.push(`untyped: ${name} ended in ${String(first.error)}`);
  else if (first.error.attempts > MOST_ATTEMPTS) problems.push(`storm: ${name} took ${first.error.attempts} attempts`);
  if (keyOf(first.error) === undefined) problems.push(`keyless: ${name} ended in an error without its key`);
  return problems;
}

/** In the end all are sent, with the key they began with. */
function lastProblems({ request, first, last }: Sent, ledger: Ledger): string[] {
  const name = request.externalReference;
  if (!last.ok) return [`unsent: ${name} never ended in success: ${String(last.error)}`];
  const firstKey = first.ok ? first.idempotencyKey : keyOf(first.error);
  const isRekeyed = firstKey !== undefined && firstKey !== last.idempotencyKey;
  const problems = isRekeyed ? [`rekeyed: ${name} was sent again with another key`] : [];
  for (const to of request.to) {
    const place = placeOf(request, to);
    const count = ledger.get(place)?.length ?? 0;
    if (count !== 1) problems.push(`${count === 0 ? "lost" : "double"}: ${place} has ${count} messages in the end`);
  }
  return problems;
}

function phantoms(sends: readonly Sent[], ledger: Ledger): string[] {
  const places = new Set(sends.flatMap(({ request }) => request.to.map((to) => placeOf(request, to))));
  return [...ledger.keys()].filter((place) => !places.has(place)).map((place) => `phantom: ${place} was never sent`);
}

/** One key per send, and the same bytes for all requests of a key. */
function callProblems(calls: Evidence["calls"]): string[] {
  const keys = new Map<string, Set<string>>();
  const bodies = new Map<string, Set<string>>();
  for (const { path, idempotencyKey, contentType, body } of calls) {
    if (!path.endsWith("/messages/send")) continue;
    const reference: string = JSON.parse(body).externalReference;
    add(keys, reference, idempotencyKey ?? "");
    add(bodies, idempotencyKey ?? "", `${contentType} ${body}`);
  }
  return [
    ...[...keys].flatMap(([name, { size }]) => (size > 1 ? [`keys: ${name} was sent with ${size} keys`] : [])),
    ...[...bodies].flatMap(([key, { size }]) => (size > 1 ? [`bytes: key ${key} was sent with ${size} bodies`] : [])),
    ...(bodies.has("") ? ["keyless: a send had no key"] : []),
  ];
}

function add(sets: Map<string, Set<string>>, name: string, value: string): void {
  sets.set(name, (sets.get(name) ?? new Set()).add(value));
}
