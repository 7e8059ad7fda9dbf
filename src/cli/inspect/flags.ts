/** What the flags of `oncehook inspect` say. */
import type { Access } from "../../inspector/api.ts";
import type { ActFlags } from "../inbox/acting.ts";
import type { InboxFlags } from "../inbox/opening.ts";

export interface InspectFlags extends InboxFlags, ActFlags {
  readonly port: number;
  readonly access: Access;
}
