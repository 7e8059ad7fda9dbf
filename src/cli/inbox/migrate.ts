/** `oncehook inbox migrate`: brings an inbox to this version's schema, as a receiver with `migrate: "check"` needs it. */
import { Command } from "commander";
import { SetupError } from "../../errors.ts";
import { Terminal } from "../terminal.ts";
import { type InboxFlags, inWords, openAt, withInboxFlags } from "./opening.ts";

export function migrateCommand(): Command {
  const command = new Command("migrate").description("bring the inbox to this version's schema");
  return withInboxFlags(command, ["oncehook inbox migrate --store inbox.db"]).action(async (flags: InboxFlags) => {
    try {
      const missing = await missingMigration(flags);
      const inbox = await openAt(flags, "auto");
      const { location } = inbox;
      await inbox.close();
      const { from = null, to = null } = missing ?? {};
      await new Terminal(flags).result({ location, migrated: missing !== null, from, to }, () =>
        missing === null ? `${location} needs no migration.` : `${location}: schema ${from} is now ${to}.`,
      );
    } catch (error) {
      throw inWords(error);
    }
  });
}

/** From which schema to which; null when the inbox can be opened as it is. */
async function missingMigration(flags: InboxFlags): Promise<{ readonly from: number; readonly to: number } | null> {
  try {
    await (await openAt(flags)).close();
    return null;
  } catch (error) {
    if (!(error instanceof SetupError) || error.code !== "migration_needed") throw error;
    return { from: Number(error.fields.schema), to: Number(error.fields.newest) };
  }
}
