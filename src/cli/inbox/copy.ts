/** `oncehook inbox copy`: moves an inbox to another store. */
import { Command, Option } from "commander";
import type { CopyProgress, CopyResult } from "../../inbox/copy.ts";
import { storeAt } from "../inbox-address.ts";
import { addOutputFlags, type OutputFlags, type Progress, Terminal } from "../terminal.ts";
import { interruptible } from "./interruption.ts";
import { inWords, withExamples } from "./opening.ts";
import { counted } from "./printable.ts";

interface CopyFlags extends OutputFlags {
  readonly from: string;
  readonly to: string;
  readonly fromSchema?: string;
  readonly toSchema?: string;
}

export function copyCommand(): Command {
  const command = new Command("copy")
    .description("copy the inbox to another store, and compare them; stop every receiver first")
    .addOption(address("--from <address>", "the inbox: a SQLite file, or postgres://…").env("ONCEHOOK_STORE"))
    .addOption(address("--to <address>", "an empty inbox, or one that a copy was stopped in").env("ONCEHOOK_COPY_TO"))
    .option("--from-schema <name>", "the schema of --from, on Postgres (default: oncehook)")
    .option("--to-schema <name>", "the schema of --to, on Postgres (default: oncehook)");
  return withExamples(addOutputFlags(command), [
    "ONCEHOOK_COPY_TO=postgres://app:…@db.internal/app oncehook inbox copy --from inbox.db",
  ]).action(async (flags: CopyFlags) => {
    const terminal = new Terminal(flags);
    const { from, to, fromSchema, toSchema } = flags;
    const stores = {
      from: await storeAt({ store: from, ...(fromSchema !== undefined && { schema: fromSchema }) }),
      to: await storeAt({ store: to, ...(toSchema !== undefined && { schema: toSchema }) }),
    };
    const { copyInbox } = await import("../../inbox/copy.ts");
    const steps = new Steps(terminal);
    let copied: CopyResult | undefined;
    try {
      const stopped = await interruptible(async (signal) => {
        copied = await copyInbox({ ...stores, signal, onProgress: (progress) => steps.at(progress) });
      }, "Give the same command again: it goes on where it was.").finally(() => steps.end());
      if (stopped) throw stopped;
    } catch (error) {
      throw inWords(error);
    }
    if (copied === undefined) return;
    const result = { from: stores.from.location, to: stores.to.location, ...copied };
    await terminal.result(result, () => copiedText(result));
  });
}

function address(flags: string, description: string): Option {
  return new Option(flags, description).makeOptionMandatory();
}

/** How far it is, in two phases. */
class Steps {
  readonly #terminal: Terminal;
  #phase: CopyProgress["phase"] | undefined;
  #bar: Progress | undefined;

  constructor(terminal: Terminal) {
    this.#terminal = terminal;
  }

  at({ phase, events }: CopyProgress): void {
    if (phase !== this.#phase) {
      this.end();
      this.#bar = this.#terminal.progress(phase === "copy" ? "Copying events" : "Comparing events", null);
      this.#phase = phase;
    }
    this.#bar?.at(events);
  }

  end(): void {
    this.#bar?.end();
  }
}

function copiedText({ from, to, lanes, events, quarantined, lanesBefore }: CopyResult & { from: string; to: string }) {
  const before = lanesBefore === 0 ? "" : ` (${counted(lanesBefore, "message")} by an earlier call)`;
  const what = `${counted(events, "event")} of ${counted(lanes, "message")}${before}, and ${quarantined} in quarantine,`;
  return `${what} are in ${to}, the same as in ${from}. Start the receivers with it, and none with the old one.`;
}
