/** The flags of commands that call the service's API, and the client that they make. */
import type { Command } from "commander";
import type { Client, ClientOptions } from "../client/index.ts";
import { SetupError } from "../errors.ts";
import { silentLogger } from "../internal/logger.ts";
import { CommandError, USAGE_MISTAKE } from "./failure.ts";
import { addSecretFlag, CLIENT_SECRET, neededSecret } from "./secret-input.ts";
import type { Terminal } from "./terminal.ts";

export interface ServiceFlags {
  readonly baseUrl: string;
  readonly clientId: string;
  readonly clientSecretFile?: string;
  readonly allowPrivateHttp?: true;
}

/** Options of the client, by the flags that give them. */
const FLAGS: Readonly<Record<string, string>> = {
  baseUrl: "--base-url",
  clientId: "--client-id",
  clientSecret: "--client-secret-file",
};

const ALLOW_HTTP = "--allow-private-http";

/** Gives a command the flag for a service on a private network without TLS. */
export function addHttpFlag(command: Command): Command {
  return command.option(ALLOW_HTTP, "take http:// in --base-url for a host of a private network too");
}

/** Gives a command the flags that name the service, the API client and its secret. */
export function addServiceFlags(command: Command, clientWhat: string): Command {
  command
    .requiredOption("--base-url <url>", "the service's address")
    .requiredOption("--client-id <id>", `the API client that ${clientWhat}`);
  return addHttpFlag(addSecretFlag(command, CLIENT_SECRET));
}

/** Asks for the secret where it was given nowhere. @throws CommandError for what the client refuses, in the words of the command line */
export async function clientOf(
  flags: ServiceFlags,
  terminal: Terminal,
  options: Partial<ClientOptions> = {},
): Promise<Client> {
  const { baseUrl, clientId, allowPrivateHttp: allowHttpToPrivateHosts } = flags;
  const clientSecret = await neededSecret(CLIENT_SECRET, flags.clientSecretFile, terminal);
  // Loaded here: "--help" needs none of it.
  const { createClient } = await import("../client/index.ts");
  const note = (_fields: object, message: string) => terminal.note(message);
  const logger = { ...silentLogger, warn: note, error: note };
  try {
    return createClient({ baseUrl, clientId, clientSecret, allowHttpToPrivateHosts, logger, ...options });
  } catch (error) {
    if (!(error instanceof SetupError)) throw error;
    throw new CommandError(inFlags(error.message), USAGE_MISTAKE, { cause: error });
  }
}

/** `Option "baseUrl" must be …` and `sendFrom: must be …` in the words of the command line; `more` are flags of the command's own. */
export function inFlags(text: string, more: Readonly<Record<string, string>> = {}): string {
  return text
    .replace(/^(?:Option ")?([\w.]+)[":]/, (said, name) => more[name] ?? FLAGS[name] ?? said)
    .replace("allowHttpToPrivateHosts: true", ALLOW_HTTP);
}
