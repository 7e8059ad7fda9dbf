/** What the service shows of a webhook kind, as far as it can be used. */
import type { WebhookConfig } from "../client/types.ts";
import { RotationError } from "./errors.ts";
import type { Rotation } from "./options.ts";

/**
 * @param signal - only of a look that precedes all else: a later one is to end what the service has begun
 * @throws RotationError `invalid_response` when the client gives anything but the defaults of both kinds
 */
export async function configOf(
  { client, kind }: Pick<Rotation, "client" | "kind">,
  signal?: AbortSignal,
): Promise<WebhookConfig> {
  const answer: { readonly defaults?: Readonly<Record<string, unknown>> | null } | null = await client.webhooks.get(
    signal === undefined ? {} : { signal },
  );
  return checkedConfig(answer?.defaults?.[kind], "webhooks.get()");
}

/** The client lets answers pass whose fields it does not know, and tests pass clients of their own. */
export function checkedConfig(config: unknown, call: string): WebhookConfig {
  if (typeof config === "object" && config !== null && !Array.isArray(config)) return config as WebhookConfig;
  const message = `The answer to ${call} is no configuration of a webhook kind. Look at what answers at the client's baseUrl; nothing was changed by this look, and rotateSecret() can be called again.`;
  throw new RotationError("invalid_response", message);
}
