/** The demo's output: a table of messages, the counts of deliveries, the checks and the guarantee. */
import { type Check, checkLine, paint, tableLines } from "../shared/terminal.ts";
import type { Run, Story } from "./findings.ts";
import type { DeliveryKind } from "./load.ts";

const ROWS = 12;

const GUARANTEE = `Every accepted event is handled at least once, in ascending sequence per message, or is
visible as unhandled, late, dead, discarded or quarantined; effects that a handler commits
through ctx.commit in the inbox's own database happen exactly once; every other effect can
repeat and carries an idempotency key.`;

const KINDS: readonly (readonly [DeliveryKind, string])[] = [
  ["event", "events"],
  ["duplicate", "the same again"],
  ["no event", "signed, but no event"],
  ["forged", "forged"],
  ["stale", "stale timestamp"],
  ["malformed", "malformed signature"],
];

export function say(text: string): void {
  console.log(`  ${text}`);
}

export function title(text: string): void {
  console.log(`\n${paint("bold", text)}\n`);
}

/** A dozen messages, the ones with a story first, in their own order. */
export function printStories(stories: readonly Story[]): void {
  const interesting = [...stories].sort((a, b) => weight(b) - weight(a)).slice(0, ROWS);
  const rows = interesting.sort((a, b) => a.messageId.localeCompare(b.messageId));
  printTable(
    ["message", "arrived", "handled", "attempts", "duplicates", ""],
    rows.map(({ messageId, arrived, handled, attempts, duplicates, note }) => [
      messageId,
      arrived.join(" "),
      handled.join(" "),
      attempts.join(" "),
      duplicates === 0 ? "-" : String(duplicates),
      note,
    ]),
  );
  say(paint("dim", `and ${stories.length - rows.length} more messages`));
}

function weight({ arrived, handled, duplicates, note }: Story): number {
  return (
    (note.startsWith("handler") ? 4 : 0) +
    (note === "" ? 0 : 2) +
    (arrived.join() === handled.join() ? 0 : 3) +
    Math.min(duplicates, 2)
  );
}

export function printCounts({ sent }: Run): void {
  const rows = KINDS.map(([kind, name]) => {
    const own = sent.filter(({ delivery }) => delivery.kind === kind);
    const again = own.filter(({ failed }) => failed > 0).length;
    const answers = new Map<string, number>();
    for (const { status, outcome } of own) {
      const answer = `${status} ${outcome}`.trim();
      answers.set(answer, (answers.get(answer) ?? 0) + 1);
    }
    const answered = [...answers].map(([answer, count]) => `${count} × ${answer}`).join(", ");
    return [name, String(own.length), again === 0 ? "-" : String(again), answered];
  });
  printTable(["deliveries", "sent", "sent again", "answered"], rows);
}

export function printChecks(checks: readonly Check[]): void {
  for (const check of checks) say(checkLine(check));
}

export function printGuarantee(): void {
  for (const line of GUARANTEE.split("\n")) say(line);
}

function printTable(head: readonly string[], rows: readonly (readonly string[])[]): void {
  for (const line of tableLines(head, rows)) say(line);
}
