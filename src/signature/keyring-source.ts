/** The contract between whoever needs a keyring and whoever provides it. */
import { KeyringError } from "../errors.ts";
import type { Clock } from "../internal/clock.ts";
import type { Logger } from "../internal/logger.ts";
import type { CompiledKeyring, Keyring } from "./keyring.ts";

/** What a provider is told about a request. Nothing of it is verified: `tenant` is what the adapter's option returned. */
export interface KeyringContext {
  readonly route?: string;
  readonly tenant?: string;
}

/** Only what was given: a provider may look at which keys there are. */
export function keyringContext({
  route,
  tenant,
}: {
  route?: string | undefined;
  tenant?: string | undefined;
}): KeyringContext {
  if (tenant === undefined) return route === undefined ? {} : { route };
  return route === undefined ? { tenant } : { route, tenant };
}

/**
 * Reads the keyring of a tenant; undefined for a tenant it does not know. It has 2 seconds. When it is asked for a `tenant`, each secret
 * must name its `apiClientId`, and no kind may be unsigned: one tenant could otherwise sign events of another.
 */
export type KeyringProvider = (context: KeyringContext) => Promise<Keyring | undefined> | Keyring | undefined;

/** As many requests wait for look-ups of secrets as may. Unlike any other `KeyringError` it says nothing about the provider. */
export class LookUpsCrowded extends KeyringError {
  constructor() {
    super("Too many requests wait for look-ups of secrets. If they are not forged, make the keyring provider faster.");
  }
}

/** What a source needs from outside. */
export interface KeyringSourceDeps {
  readonly clock: Clock;
  readonly logger: Logger;
}

/** A read that whoever uses the source repeats while it is at work. */
export interface BackgroundRefresh {
  readonly everyMs: number;
  /** Never rejects: the log tells of a failure. */
  refresh(): Promise<void>;
}

/** Where a receiver gets the keyring of a request from. */
export interface KeyringSource {
  /**
   * The keyring to try first; synchronous when it is at hand. A tenant the provider does not know gets an empty one.
   * Rejects with `KeyringError` when the provider fails and no keyring of the last 10 minutes is at hand, and with
   * `LookUpsCrowded` when too many requests wait already.
   */
  read(context: KeyringContext): CompiledKeyring | Promise<CompiledKeyring>;
  /**
   * After a mismatch: a keyring other than `seen`, or null when there is none or none may be read now (one such read in
   * flight in all, at most one per 10 s and tenant). Rejects with `KeyringError` while the provider fails: nobody can then
   * tell a forgery from a delivery signed with a newer secret; and with `LookUpsCrowded` when too many wait already.
   */
  reread(context: KeyringContext, seen: CompiledKeyring): Promise<CompiledKeyring | null>;
  /** Names the secrets in use, as `CompiledKeyring.version` does; for many tenants, all that are cached. */
  version(): string;
  /** The last read failed, whoever asked for it: what was read before serves for 10 minutes, and then nothing does. */
  readonly isFailing: boolean;
  /** What has to be read again and again although no request asks for it; null when that is nothing. */
  readonly background: BackgroundRefresh | null;
  /** Forgets the keyrings and stops the timers. */
  close(): void;
}
