/** The mutants that may live, each with the reason why no test can tell it from the code, or has to. */
import { ADAPTERS_REASONS } from "./reasons/adapters.ts";
import { EVENTS_REASONS } from "./reasons/events.ts";
import { INBOX_REASONS } from "./reasons/inbox.ts";
import { INBOX_LANES_REASONS } from "./reasons/inbox-lanes.ts";
import { INTERNAL_REASONS } from "./reasons/internal.ts";
import { RECEIVER_ACTS_REASONS } from "./reasons/receiver-acts.ts";
import { RECEIVER_ENGINE_REASONS } from "./reasons/receiver-engine.ts";
import { RECEIVER_HTTP_REASONS } from "./reasons/receiver-http.ts";
import { SIGNATURE_REASONS } from "./reasons/signature.ts";
import type { Explained } from "./verdict.ts";

export const EXPLAINED: readonly Explained[] = [
  ...SIGNATURE_REASONS,
  ...EVENTS_REASONS,
  ...INBOX_REASONS,
  ...INBOX_LANES_REASONS,
  ...INTERNAL_REASONS,
  ...RECEIVER_ENGINE_REASONS,
  ...RECEIVER_HTTP_REASONS,
  ...RECEIVER_ACTS_REASONS,
  ...ADAPTERS_REASONS,
].flatMap(({ file, reason, changes }) =>
  changes.map(([mutator, code, becomes]) => ({ file, mutator, code, becomes, reason })),
);
