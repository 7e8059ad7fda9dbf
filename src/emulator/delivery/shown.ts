/** A delivery as watchers and callers may see it. */
import type { Delivery } from "../state/records.ts";

const REDACTED = "[redacted]";

/** The same without its secrets: those are in the state and its export only. */
export function withoutSecrets(delivery: Delivery): Delivery {
  const { target, frozen } = delivery;
  if (target === null && frozen === null) return delivery;
  return {
    ...delivery,
    target: target === null ? null : { ...target, secrets: target.secrets?.map(() => REDACTED) ?? null },
    frozen: frozen === null ? null : { ...frozen, secrets: frozen.secrets.map(() => REDACTED) },
  };
}
