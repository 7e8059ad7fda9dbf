/** Opens the inbox as an operator does, and says why that cannot be done. */
import { OncehookError } from "../../errors.ts";
import type { InboxStats, InboxStore } from "../../inbox/store.ts";
import { silentLogger } from "../../internal/logger.ts";
import { type Inbox, openInbox } from "../../receiver/open-inbox.ts";
import { type Finding, ok, problem } from "./finding.ts";

/** An open inbox, with what it holds at this moment. */
export interface Opened {
  readonly store: InboxStore<never>;
  readonly inbox: Inbox;
  readonly stats: InboxStats;
}

const FIXES: Readonly<Record<string, string>> = {
  no_inbox: "Check --store and --schema; if they are right, start the receiver: it makes the inbox.",
  migration_needed: 'Run "oncehook inbox migrate" on it, or start a receiver of this version.',
  inbox_too_new: "Upgrade oncehook to the version of the receivers.",
  copy_unfinished: 'Run the same "oncehook inbox copy" again.',
  missing_peer: "Install it beside oncehook.",
  incompatible_peer: "Install the version that is named, or upgrade the server.",
  not_durable: "Mend the setting that is named: until then an answer of 200 promises nothing.",
  unsafe_location:
    "The file belongs on a local disk, to the user that runs the receiver, where nobody else can write. Run this command as that user.",
  store_unavailable: "Check that it is there, that this user may read and write it, and that nobody locks it.",
};

/** The inbox, or what is wrong with it. */
export async function openStore(store: InboxStore<never>): Promise<Opened | Finding> {
  try {
    const inbox = await openInbox({ store, migrate: "check", logger: silentLogger });
    return { store, inbox, stats: await inbox.stats() };
  } catch (error) {
    // Closing what could not be opened is harmless.
    await store.close();
    if (error instanceof OncehookError) return refusedBy(error);
    throw error;
  }
}

export function isOpened(answer: Opened | Finding): answer is Opened {
  return "inbox" in answer;
}

/** What an open one shows: a store refuses to open an inbox whose settings do not read back. */
export function openFindings({ inbox }: Opened): Finding[] {
  const { location, rules } = inbox;
  const settings = location.startsWith("sqlite:")
    ? "synchronous reads FULL and journal_mode WAL"
    : "fsync and full_page_writes are on, and each commit waits for the disk";
  return [
    ok("store", `${location} is open, of the receiver "${rules.name}", and its schema is of this version.`),
    ok("durability", `What is acknowledged survives a power cut: ${settings}.`),
  ];
}

function refusedBy({ code, message, fields, cause }: OncehookError): Finding {
  const reason = typeof fields.sqliteCode === "string" || !(cause instanceof Error) ? "" : codeOf(cause);
  return problem(code, `${message}${reason}`, FIXES[code] ?? "See docs/operations.md.");
}

/** The system's own word for it, such as ECONNREFUSED; a message could hold an address. */
function codeOf(cause: Error): string {
  return "code" in cause && typeof cause.code === "string" ? ` (${cause.code})` : "";
}
