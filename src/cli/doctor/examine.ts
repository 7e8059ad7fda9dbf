/** All checks of `oncehook doctor`, in the order in which a person would look. */
import type { Clock } from "../../internal/clock.ts";
import { CommandError, USAGE_MISTAKE } from "../failure.ts";
import { type StoreFlags, storeAt } from "../inbox-address.ts";
import { CLIENT_SECRET, WEBHOOK_SECRET } from "../secret-input.ts";
import { newestDeliveryFindings } from "./clocks.ts";
import { type Finding, skipped } from "./finding.ts";
import { postgresFindings } from "./postgres.ts";
import { urlFindings } from "./public-url.ts";
import { receiverFindings } from "./receivers.ts";
import { resigningFindings } from "./resigning.ts";
import { type Runtime, runtimeFindings } from "./runtime.ts";
import { lookAtSecret } from "./secret.ts";
import { isLocalService, serviceFindings } from "./service.ts";
import { type Disk, fileFindings } from "./store-file.ts";
import { isOpened, openFindings, openStore } from "./store-open.ts";
import { waitingFindings } from "./waiting.ts";

/** What the command was given. */
export interface DoctorFlags extends StoreFlags {
  readonly secretFile?: string;
  readonly baseUrl?: string;
  readonly clientId?: string;
  readonly clientSecretFile?: string;
  readonly url?: string;
}

/** What the checks look at besides; tests give their own. */
export interface Surroundings {
  readonly clock: Clock;
  readonly fetch: typeof globalThis.fetch;
  readonly env: NodeJS.ProcessEnv;
  readonly runtime: Runtime;
  readonly disk?: Disk;
}

/** @throws CommandError for flags that do not go together */
export async function* examine(flags: DoctorFlags, around: Surroundings): AsyncGenerator<Finding> {
  yield* runtimeFindings(around.runtime);
  const { secret, findings } = lookAtSecret(WEBHOOK_SECRET, flags.secretFile, around.env);
  yield* findings;
  yield* storeFindings(flags, around, secret);
  yield* apiFindings(flags, around);
  if (flags.url === undefined) yield skipped("url", "The public address was not asked.", "--url https://…");
  else yield* await urlFindings(flags.url, { ...around, isLocal: isLocalService(flags.baseUrl) });
}

async function* storeFindings(
  flags: DoctorFlags,
  { clock, disk }: Surroundings,
  secret: string | null,
): AsyncGenerator<Finding> {
  if (!flags.store) return yield skipped("store", "The inbox was not looked at.", "--store inbox.db");
  const store = await storeAt(flags);
  const [, file] = /^sqlite:(.*)$/s.exec(store.location) ?? [];
  if (file !== undefined) yield* fileFindings(file, disk);
  const opened = await openStore(store);
  if (!isOpened(opened)) return yield opened;
  try {
    yield* openFindings(opened);
    if (file === undefined) yield* await postgresFindings(flags.store, clock);
    yield* await receiverFindings(opened, clock, secret);
    yield* await waitingFindings(opened, clock);
    yield* newestDeliveryFindings(opened.stats, clock);
    yield* resigningFindings(opened);
  } finally {
    await opened.inbox.close();
  }
}

async function* apiFindings(flags: DoctorFlags, around: Surroundings): AsyncGenerator<Finding> {
  const { baseUrl, clientId, clientSecretFile, url = null } = flags;
  if (baseUrl === undefined && clientId === undefined && clientSecretFile === undefined) {
    const fix = "--base-url, --client-id and --client-secret-file";
    return yield skipped("api", "The service was not asked about the client, its webhooks and numbers.", fix);
  }
  if (baseUrl === undefined || clientId === undefined)
    throw new CommandError("--base-url and --client-id go together.", USAGE_MISTAKE);
  const { secret, findings } = lookAtSecret(CLIENT_SECRET, clientSecretFile, around.env);
  // The service judges its own secret: here it only has to be there.
  if (secret === null) yield* findings;
  else yield* await serviceFindings({ ...around, baseUrl, clientId, clientSecret: secret, url });
}
