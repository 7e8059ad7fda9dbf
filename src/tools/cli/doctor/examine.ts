/** All checks of `oncehook doctor`, in the order in which a person would look. */
import type { InboxStore } from "../../../inbox/store.ts";
import type { Clock } from "../../../internal/clock.ts";
import { CommandError, USAGE_MISTAKE } from "../exit.ts";
import { type StoreFlags, storeAt } from "../flags.ts";
import { CLIENT_SECRET, WEBHOOK_SECRET } from "../input.ts";
import { type Finding, newestDeliveryFindings, skipped } from "./finding.ts";
import {
  type Disk,
  fileFindings,
  isOpened,
  openFindings,
  openStore,
  postgresFindings,
  receiverFindings,
  resigningFindings,
  waitingFindings,
} from "./inbox.ts";
import { type Runtime, runtimeFindings } from "./runtime.ts";
import { lookAtSecret } from "./secret.ts";
import { isLocalService, type ServiceInput, serviceFindings, urlFindings } from "./service.ts";

/** What the command was given. */
export interface DoctorFlags extends StoreFlags {
  readonly secretFile?: string;
  readonly baseUrl?: string;
  readonly clientId?: string;
  readonly clientSecretFile?: string;
  readonly allowPrivateHttp?: true;
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

/** @throws CommandError for flags that do not go together, before the first finding */
export async function* examine(flags: DoctorFlags, around: Surroundings): AsyncGenerator<Finding> {
  const place = flags.store ? { store: await storeAt(flags), address: flags.store } : null;
  const api = apiClientOf(flags);
  yield* runtimeFindings(around.runtime);
  const { secret, findings } = lookAtSecret(WEBHOOK_SECRET, flags.secretFile, around.env);
  yield* findings;
  if (place === null) yield skipped("store", "The inbox was not looked at.", "--store inbox.db");
  else yield* storeFindings(place, around, secret);
  yield* apiFindings(api, flags, around);
  if (flags.url === undefined) yield skipped("url", "The public address was not asked.", "--url https://…");
  else yield* await urlFindings(flags.url, { ...around, isLocal: isLocalService(flags.baseUrl) });
}

interface InboxPlace {
  /** Not open. */
  readonly store: InboxStore<never>;
  /** As it was typed. */
  readonly address: string;
}

async function* storeFindings(
  { store, address }: InboxPlace,
  { clock, disk }: Surroundings,
  secret: string | null,
): AsyncGenerator<Finding> {
  const [, file] = /^sqlite:(.*)$/s.exec(store.location) ?? [];
  if (file !== undefined) yield* fileFindings(file, disk);
  const opened = await openStore(store);
  if (!isOpened(opened)) return yield opened;
  try {
    yield* openFindings(opened);
    if (file === undefined) yield* await postgresFindings(address, clock);
    yield* await receiverFindings(opened, clock, secret);
    yield* await waitingFindings(opened, clock);
    yield* newestDeliveryFindings(opened.stats, clock);
    yield* resigningFindings(opened);
  } finally {
    await opened.inbox.close();
  }
}

type ApiClient = Pick<ServiceInput, "baseUrl" | "clientId" | "allowHttpToPrivateHosts">;

/** Null when the service is not to be asked. @throws CommandError for half of what that takes */
function apiClientOf(flags: DoctorFlags): ApiClient | null {
  const { baseUrl, clientId, clientSecretFile, allowPrivateHttp: allowHttpToPrivateHosts } = flags;
  if (baseUrl !== undefined && clientId !== undefined) return { baseUrl, clientId, allowHttpToPrivateHosts };
  if ([baseUrl, clientId, clientSecretFile].every((flag) => flag === undefined)) return null;
  throw new CommandError("--base-url and --client-id go together.", USAGE_MISTAKE);
}

async function* apiFindings(
  api: ApiClient | null,
  { clientSecretFile, url }: DoctorFlags,
  around: Surroundings,
): AsyncGenerator<Finding> {
  if (api === null) {
    const fix = "--base-url, --client-id and --client-secret-file";
    return yield skipped("api", "The service was not asked about the client, its webhooks and numbers.", fix);
  }
  const { secret, findings } = lookAtSecret(CLIENT_SECRET, clientSecretFile, around.env);
  // The service judges its own secret: here it only has to be there.
  if (secret === null) yield* findings;
  else yield* await serviceFindings({ ...around, ...api, clientSecret: secret, url: url ?? null });
}
