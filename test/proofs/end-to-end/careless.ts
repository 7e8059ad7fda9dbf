/** A rotation as it should not be: the service signs with a secret that no receiver knows yet. */

import { type Clock, sleep } from "../../../src/internal/clock.ts";
import type { Client } from "../../../src/messaging/client/client.ts";
import type { SecretStore } from "../../../src/sources/messaging/secret-store.ts";
import type { WebhookKind } from "../../../src/sources/messaging/webhook-kind.ts";
import { OVERLAP_MS } from "./service.ts";

export interface Careless {
  readonly clock: Clock;
  readonly client: Client;
  readonly kind: WebhookKind;
  readonly secrets: SecretStore;
  readonly secret: string;
}

const FORGOTTEN_MS = 60_000;

export async function rotateCarelessly({ clock, client, kind, secrets, secret }: Careless): Promise<void> {
  await client.webhooks.update(kind, { signingEnabled: true, secret });
  await sleep(clock, FORGOTTEN_MS);
  const { current = null, revision = 0 } = (await secrets.read(kind)) ?? {};
  const previous = current === null ? [] : [{ secret: current, validUntil: clock.now() + 4 * OVERLAP_MS }];
  await secrets.write(kind, { current: secret, previous, next: null, rotatedAt: null }, revision);
}
