/** What `oncehook listen` verifies with, and what it signs with as a sidecar. */
import { type Command, Option } from "commander";
import { isSameSecret } from "../../signature/secret.ts";
import { CommandError, USAGE_MISTAKE } from "../failure.ts";
import { instant } from "../flags.ts";
import {
  addSecretFlag,
  givenSecret,
  neededSecret,
  PREVIOUS_SECRET,
  type SecretSource,
  WEBHOOK_SECRET,
} from "../secret-input.ts";
import type { Terminal } from "../terminal.ts";

const FORWARD_SECRET: SecretSource = {
  flag: "forward-secret-file",
  environment: "ONCEHOOK_FORWARD_SECRET",
  what: "the secret that forwarded events are signed with",
};
const PREVIOUS_UNTIL = "ONCEHOOK_WEBHOOK_PREVIOUS_VALID_UNTIL";

export interface SecretFlags {
  readonly secretFile?: string;
  readonly previousSecretFile?: string;
  /** Epoch ms. */
  readonly previousValidUntil?: number;
  readonly forwardSecretFile?: string;
}

/** A keyring, as `createReceiver` takes it. */
export interface WebhookSecrets {
  readonly current: string;
  readonly previous?: { readonly secret: string; readonly validUntil: number };
}

export function addListenSecretFlags(command: Command): Command {
  addSecretFlag(command, WEBHOOK_SECRET);
  addSecretFlag(command, PREVIOUS_SECRET);
  const until = new Option("--previous-valid-until <time>", "when that ends: epoch ms, or 2026-01-01T00:00:00Z");
  return command.addOption(until.env(PREVIOUS_UNTIL).argParser(instant));
}

export function addForwardSecretFlag(command: Command): Command {
  return addSecretFlag(command, FORWARD_SECRET);
}

/** The secrets of the service, asked for where none was given. @throws CommandError for half of a previous one */
export async function webhookSecrets(flags: SecretFlags, terminal: Terminal): Promise<WebhookSecrets> {
  const current = await neededSecret(WEBHOOK_SECRET, flags.secretFile, terminal);
  const secret = givenSecret(PREVIOUS_SECRET, flags.previousSecretFile, terminal);
  const { previousValidUntil: validUntil } = flags;
  if (secret === undefined && validUntil === undefined) return { current };
  if (secret === undefined || validUntil === undefined) {
    const advice = `--${PREVIOUS_SECRET.flag} and --previous-valid-until go together: a secret that is replaced has an end.`;
    throw new CommandError(advice, USAGE_MISTAKE);
  }
  return { current, previous: { secret, validUntil } };
}

/** The sidecar's own secret. @throws CommandError for one of the service's: whoever has it could make up events */
export async function forwardSecret(
  flags: SecretFlags,
  { current, previous }: WebhookSecrets,
  terminal: Terminal,
): Promise<string> {
  const secret = await neededSecret(FORWARD_SECRET, flags.forwardSecretFile, terminal);
  if (![current, previous?.secret].some((taken) => taken !== undefined && isSameSecret(secret, taken))) return secret;
  throw new CommandError(
    `The secret of --${FORWARD_SECRET.flag} is the webhook's: give the application one of its own.`,
    USAGE_MISTAKE,
  );
}
