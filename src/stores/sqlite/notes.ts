/** Small values that all processes of the inbox share. */
import type { ChangeNotes } from "../../inbox/store.ts";
import type { Work } from "./transaction.ts";

/** See `InboxStore.changeNotes`. */
export function changeNotes({ db, now }: Work, names: readonly string[], change: ChangeNotes): void {
  const read = db.prepare("select value from oncehook_note where name = ?");
  const known = names.flatMap((name) => {
    const row = read.get(name) as { readonly value: string } | undefined;
    return row === undefined ? [] : [[name, row.value] as const];
  });
  const write = db.prepare(
    "insert into oncehook_note (name, value, until) values (?, ?, ?) on conflict (name) do update set value = excluded.value, until = excluded.until",
  );
  for (const [name, { value, keepMs }] of change(new Map(known), now)) write.run(name, value, Math.round(now + keepMs));
}

export function pruneNotes({ db, now }: Work): void {
  db.prepare("delete from oncehook_note where until < ?").run(now);
}
