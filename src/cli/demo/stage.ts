/** The stage of the story: the service's emulator, a client of it, and an application that receives its webhooks. */
import { randomBytes } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Client, createClient } from "../../client/index.ts";
import { createEmulator, type Emulator } from "../../emulator/index.ts";
import { systemClock } from "../../internal/clock.ts";
import { adoptSecret, type SecretStore } from "../../rotation/index.ts";
import { sqliteSecrets } from "../../stores/sqlite.ts";
import { type Application, startApplication } from "./application.ts";
import { createLog, type KeptLog } from "./log.ts";

export interface Stage {
  readonly emulator: Emulator;
  readonly client: Client;
  readonly application: Application;
  readonly secrets: SecretStore;
  readonly inboxPath: string;
  /** What all of them logged. */
  readonly log: KeptLog;
}

/** Sets the stage up on free ports and in a folder that goes with it, whatever becomes of `play`. */
export async function onStage(play: (stage: Stage) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "oncehook-demo-"));
  const closing: (() => Promise<unknown>)[] = [() => rm(folder, { recursive: true, force: true })];
  try {
    const log = createLog();
    const inboxPath = join(folder, "inbox.db");
    const secrets = sqliteSecrets(inboxPath, { keyFile: await makeKeyFile(join(folder, "webhook.key")) });
    closing.push(() => secrets.close());
    await makeSecrets(secrets);
    const application = await startApplication({ inboxPath, secrets, logger: log });
    closing.push(() => application.stop());
    const emulator = await startService(log);
    closing.push(() => emulator.close());
    const { url, clientId, clientSecret } = emulator;
    const client = createClient({ baseUrl: url, clientId, clientSecret, logger: log });
    await play({ emulator, client, application, secrets, inboxPath, log });
  } finally {
    for (const close of closing.reverse()) await close();
  }
}

/** Makes the key that the secrets are sealed with, for its owner only: `openssl rand -hex 32 > webhook.key && chmod 600 webhook.key`. */
async function makeKeyFile(path: string): Promise<string> {
  await writeFile(path, randomBytes(32).toString("hex"), { mode: 0o600 });
  return path;
}

/** Makes the first secret of each webhook kind. They lie in the inbox's file, sealed. */
async function makeSecrets(secrets: SecretStore): Promise<void> {
  for (const kind of ["delivery", "inbound"] as const) {
    await adoptSecret({ secrets, kind, secret: randomBytes(32).toString("base64url") });
  }
}

/** Its time stands still until the story moves it, so that hours pass in seconds; while two secrets are valid, it signs with either. */
function startService(log: KeptLog): Promise<Emulator> {
  return createEmulator({ startAt: systemClock.now(), logger: log, unspecified: { overlapSigning: "alternate" } });
}
