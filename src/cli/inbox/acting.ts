/** Acts on single rows, one after the other: who does them, what came of each, and how the command ends. */
import { userInfo } from "node:os";
import type { Command } from "commander";
import { OncehookError } from "../../errors.ts";
import type { ActResult } from "../../inbox/store.ts";
import { NEGATIVE } from "../failure.ts";
import type { Terminal } from "../terminal.ts";
import { printable } from "./printable.ts";

export interface ActFlags {
  readonly by?: string;
}

/** What the act was not done for. */
type Refusal = Extract<ActResult, { ok: false }>["reason"] | "invalid_event";

const REASONS: Readonly<Record<Refusal, string>> = {
  not_found: "there is none",
  in_progress: "a receiver is handling it now, try again",
  body_pruned: "its body was pruned or erased",
  wrong_state: "it is in no state for this",
  invalid_event: "its body is still no event to this version, or not one that its secret vouches for",
};

export function addByFlag(command: Command): Command {
  return command.option("--by <name>", "who acts, for the audit (default: this user's name)");
}

/** A name, for the audit. */
export function actorOf({ by }: ActFlags): { readonly by: string } {
  return { by: by ?? userName() };
}

function userName(): string {
  try {
    return userInfo().username;
  } catch {
    // A container's user may have none.
    return "oncehook";
  }
}

export interface RowAct {
  /** `event`, `lane`: the word before the id. */
  readonly noun: string;
  /** `replayed` */
  readonly done: string;
  act(id: number): Promise<ActResult>;
  /** The state that was the wrong one, where rows have a word for it. */
  stateOf?(id: number): Promise<string | undefined>;
}

/** Does it for each id, and says what came of it. Ends with 3 unless all were done. */
export async function actOnEach(
  terminal: Terminal,
  ids: readonly number[],
  { noun, done, act, stateOf }: RowAct,
): Promise<void> {
  for (const id of ids) {
    const result = await attempt(() => act(id));
    if (!result.ok) process.exitCode = NEGATIVE;
    const event = result.ok && noun !== "event" && result.event !== undefined ? { event: result.event } : {};
    const state = !result.ok && result.reason === "wrong_state" ? await stateOf?.(id) : undefined;
    const said = result.ok ? done : `left as it is: ${state === undefined ? REASONS[result.reason] : `it is ${state}`}`;
    const row = { [noun]: id, ...event, result: result.ok ? done : result.reason };
    const line = `${noun} ${id}${"event" in event ? ` (event ${event.event})` : ""}: ${said}`;
    await terminal.result(row, () => printable(line));
  }
}

async function attempt(act: () => Promise<ActResult>) {
  try {
    return await act();
  } catch (error) {
    if (error instanceof OncehookError && error.code === "invalid_event")
      return { ok: false, reason: "invalid_event" } as const;
    throw error;
  }
}
