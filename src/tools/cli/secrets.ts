/** `oncehook secrets`: the webhook signing secrets of an inbox, for crons and people. No secret is ever printed. */
import { existsSync } from "node:fs";
import { Command, Option } from "commander";
import { SetupError } from "../../errors.ts";
import type { RotateSecretOptions, RotationStatus } from "../../messaging/rotation/index.ts";
import type { SecretStore } from "../../sources/messaging/secret-store.ts";
import type { WebhookKind } from "../../sources/messaging/webhook-kind.ts";
import type { SecretEncoding } from "../../sources/secret.ts";
import { CommandError, FAILURE, interruptible, NEGATIVE, USAGE_MISTAKE } from "./exit.ts";
import {
  addressOf,
  addServiceFlags,
  addStoreFlags,
  clientOf,
  commandGroup,
  duration,
  inWords,
  repeated,
  type ServiceFlags,
  type StoreFlags,
  withExamples,
} from "./flags.ts";
import { addSecretFlag, neededSecret, WEBHOOK_SECRET } from "./input.ts";
import { addOutputFlags, factsText, type OutputFlags, Terminal, timeText } from "./terminal.ts";

interface Flags extends StoreFlags, OutputFlags {
  readonly keyFile?: string;
  readonly kind?: readonly string[];
  readonly encoding: SecretEncoding;
}

interface AdoptFlags extends Flags {
  readonly secretFile?: string;
}

interface RotateFlags extends Flags, ServiceFlags {
  readonly force?: true;
  readonly wait?: number;
  readonly tolerance?: number;
}

const KINDS: readonly WebhookKind[] = ["inbound", "delivery"];
const KEY_FILE = "ONCEHOOK_KEY_FILE";

/** The command, for the program. */
export function secretsCommand(): Command {
  return commandGroup("secrets", "adopt, rotate and look after the webhook signing secrets of an inbox", [
    adoptCommand,
    rotateCommand,
    statusCommand,
  ]);
}

function adoptCommand(): Command {
  const command = new Command("adopt").description("store the secret that the service signs with today, once per kind");
  const action = addSecretFlag(withSecretsFlags(command), WEBHOOK_SECRET).action((flags: AdoptFlags) =>
    withSecrets(flags, { mayMake: true }, async (secrets, kinds, terminal) => {
      const { adoptSecret } = await import("../../messaging/rotation/index.ts");
      const secret = await neededSecret(WEBHOOK_SECRET, flags.secretFile, terminal);
      for (const kind of required(kinds)) {
        const adopted = await adoptSecret({ kind, secrets, secret });
        const text = adopted ? "adopted" : "left as it is: the inbox has secrets of this kind already";
        await terminal.result({ kind, adopted }, () => `${kind}  ${text}`);
      }
    }),
  );
  return withExamples(action, [
    "oncehook secrets adopt --kind delivery --store inbox.db --key-file webhook.key --secret-file webhook.secret",
    "",
    "Exit codes: 0 adopted, or there already; 1 the inbox or its secrets cannot be read; 2 usage, or no secret.",
  ]);
}

function rotateCommand(): Command {
  const command = new Command("rotate").description("give the service a new secret that every receiver has already");
  const flagged = addServiceFlags(withSecretsFlags(command), "owns the webhooks")
    .option("--force", "although a replaced secret is valid still, or the service shows another rotation")
    .option("--wait <duration>", "for receivers to have the new secret (default: 2m)", duration)
    .option("--tolerance <duration>", "the receivers' toleranceMs.past (default: 90m)", duration);
  const action = flagged.action((flags: RotateFlags) => withSecrets(flags, {}, rotate(flags)));
  return withExamples(action, [
    "oncehook secrets rotate --kind delivery --kind inbound --store inbox.db --key-file webhook.key \\",
    "    --base-url https://api.example.com --client-id cli_1 --client-secret-file client.secret",
    "",
    "The same command again goes on where one was cut off.",
    "",
    "Exit codes: 0 rotated; 3 now is the wrong time, nothing was changed; 1 it did not end, run it again; 2 usage.",
  ]);
}

function rotate(flags: RotateFlags): Work {
  return async (secrets, kinds, terminal) => {
    const wanted = required(kinds);
    const client = await clientOf(flags, terminal);
    const { RotationError, rotateSecret } = await import("../../messaging/rotation/index.ts");
    const note = (_fields: object, message: string) => terminal.note(message);
    const told = (_fields: object, message: string) => terminal.caveat(message);
    const logger = { debug() {}, info: note, warn: told, error: told };
    const options: Omit<RotateSecretOptions, "kind"> = {
      ...{ client, secrets, logger, force: flags.force === true },
      ...(flags.wait === undefined ? {} : { waitMs: flags.wait }),
      ...(flags.tolerance === undefined ? {} : { toleranceMs: flags.tolerance }),
    };
    const stopped = await interruptible(async (signal) => {
      for (const kind of wanted) {
        terminal.note(`Rotating the ${kind} secret.`);
        const result = await rotateSecret({ ...options, kind, signal }).catch((error: unknown) => {
          if (!(error instanceof RotationError)) throw error;
          throw new CommandError(error.message, error.code === "rotation_refused" ? NEGATIVE : FAILURE, {
            cause: error,
          });
        });
        await terminal.result(result, () => {
          const until = timeText(result.previousValidUntil);
          return `${kind}  rotated; the secret before it counts until ${until}`;
        });
      }
    }, "Run the same command again: it goes on with the same secret.");
    if (stopped !== undefined) throw stopped;
  };
}

function statusCommand(): Command {
  const command = new Command("status").description("show where the secrets stand, and whether receivers have them");
  const action = withSecretsFlags(command).action((flags: Flags) =>
    withSecrets(flags, {}, async (secrets, kinds, terminal) => {
      const { rotationStatus } = await import("../../messaging/rotation/index.ts");
      for (const kind of kinds ?? KINDS) {
        const status = await rotationStatus({ kind, secrets });
        await terminal.result(status, () => statusText(status));
        if (!isFine(status)) process.exitCode = NEGATIVE;
      }
    }),
  );
  return withExamples(action, [
    "oncehook secrets status --store inbox.db --key-file webhook.key",
    "oncehook secrets status --kind delivery --json",
    "",
    "Exit codes: 0 each kind has its secret, and each receiver; 3 a kind has none, a rotation has not ended, or a receiver",
    "lacks a secret; 1 the inbox or its secrets cannot be read; 2 usage.",
  ]);
}

function isFine({ phase, receivers }: RotationStatus): boolean {
  return (phase === "settled" || phase === "overlap") && (receivers ?? []).every(({ ready }) => ready);
}

function statusText(status: RotationStatus): string {
  const { kind, phase, previousValidUntil, previousUses, nextUses, receivers } = status;
  const shown = receivers?.map(({ host, pid, ready }) => `${pid}@${host}${ready ? "" : " (not ready)"}`);
  return factsText({
    ...{ kind, phase, "previous secret counts until": timeText(previousValidUntil) },
    ...{ "deliveries by a previous secret": previousUses, "deliveries by the next one": nextUses },
    receivers: shown === undefined ? "not known" : shown.join(", ") || "none",
  });
}

/** Gives a command the flags that say which secrets. */
function withSecretsFlags(command: Command): Command {
  addStoreFlags(command)
    .addOption(new Option("--key-file <path>", "file with the key that seals the secrets").env(KEY_FILE))
    .option("--kind <kind>", "inbound or delivery; may be given twice", repeated)
    .addOption(
      new Option("--encoding <encoding>", "how the service makes keys of its secrets' texts")
        .choices(["utf8", "base64", "hex"])
        .default("utf8"),
    );
  return addOutputFlags(command);
}

type Work = (secrets: SecretStore, kinds: readonly WebhookKind[] | undefined, terminal: Terminal) => Promise<void>;

/** Opens the secrets that are meant, does `work` with them, and closes them. */
async function withSecrets(flags: Flags, { mayMake = false }: { readonly mayMake?: boolean }, work: Work) {
  const kinds = flags.kind?.map(kindOf);
  const secrets = await secretsAt(flags, mayMake);
  try {
    await work(secrets, kinds, new Terminal(flags));
  } catch (error) {
    const isSecret = error instanceof SetupError && error.code === "invalid_secret";
    if (!isSecret) throw inWords(error);
    throw new CommandError(error.message.replace('Option "secret"', "The secret"), USAGE_MISTAKE, { cause: error });
  } finally {
    await secrets.close();
  }
}

/** A mistyped path would make an inbox that nobody reads: only the first secret may make one. */
async function secretsAt(flags: Flags, mayMake: boolean): Promise<SecretStore> {
  const { keyFile, encoding } = flags;
  const address = addressOf(flags);
  if (keyFile === undefined || keyFile === "") {
    const make = "make one with openssl rand -hex 32";
    throw new CommandError(
      `Say which key: --key-file FILE, or ${KEY_FILE} in the environment; ${make}.`,
      USAGE_MISTAKE,
    );
  }
  const options = { keyFile, encoding, migrate: mayMake ? "auto" : "check" } as const;
  if (address.kind === "postgres") {
    const { postgresSecrets } = await import("../../stores/postgres.ts");
    const { url, schema } = address;
    return postgresSecrets(url, { ...options, ...(schema === undefined ? {} : { schema }) });
  }
  if (!mayMake && !existsSync(address.path))
    throw new CommandError(`There is no inbox at ${address.path}: correct --store.`, USAGE_MISTAKE);
  const { sqliteSecrets } = await import("../../stores/sqlite.ts");
  return sqliteSecrets(address.path, options);
}

function kindOf(text: string): WebhookKind {
  const kind = KINDS.find((known) => known === text);
  if (kind !== undefined) return kind;
  throw new CommandError("--kind takes inbound or delivery.", USAGE_MISTAKE);
}

/** What changes something changes only what was named. */
function required(kinds: readonly WebhookKind[] | undefined): readonly WebhookKind[] {
  if (kinds !== undefined) return kinds;
  throw new CommandError("Say which secret: --kind delivery, --kind inbound, or both.", USAGE_MISTAKE);
}
