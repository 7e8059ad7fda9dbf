/** The logger's line for one act of the inspector: who, what, which, and what came of it. */
import type { Logger } from "../internal/logger.ts";

/** What an act is done on, in the log's words. */
export type Subject = "event" | "lane" | "quarantine";

export interface ToldAct extends Readonly<Partial<Record<Subject, number>>> {
  readonly act: string;
  readonly by: string;
}

export type CameTo = { readonly ok: true } | { readonly ok: false; readonly reason: string };

export function tellAct(logger: Logger, told: ToldAct, cameTo: CameTo): void {
  const { ok } = cameTo;
  if (ok) logger.info({ ...told, ok }, "An act was done in the inspector.");
  else logger.info({ ...told, ok, reason: cameTo.reason }, "An act was refused in the inspector.");
}
