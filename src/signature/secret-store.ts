/** The contract between those who use the webhook secrets (receivers, a rotation) and the place that keeps them. */
import type { SecretEncoding, WebhookKind } from "./secret.ts";

/**
 * Keeps the secrets of the webhook kinds, and the state of a rotation between its steps. Shared by all receivers of a
 * service's webhooks and by whoever rotates. `secretStoreContract` of `oncehook/testing` proves an implementation.
 */
export interface SecretStore {
  /**
   * How long a receiver goes on with what it read before it reads again, milliseconds, 100 to 30,000. The same in all processes
   * that share the secrets: a rotation that does not know its receivers goes by its own.
   */
  readonly refreshMs: number;
  /** How the texts become keys, the same for all who share the secrets (DLV-14). */
  readonly encoding: SecretEncoding;
  /**
   * The secrets of a kind as they were written last; null before the first. Rejects when they can not be read now, or not be
   * opened.
   */
  read(kind: WebhookKind): Promise<StoredSecrets | null>;
  /**
   * Replaces the secrets of a kind if nobody has since `revision` was read (0: there were none). False if somebody has: then
   * nothing was written. What it wrote is durable.
   */
  write(kind: WebhookKind, slots: SecretSlots, revision: number): Promise<boolean>;
  /** The receivers that share these secrets, as far as they have said that they live; null when that is not known here. */
  receivers(): Promise<readonly ReceiverSighting[] | null>;
  /** Lets go of files and connections. Closing twice is harmless. */
  close(): Promise<void>;
}

/** The secrets of one webhook kind, as texts; the store's `encoding` makes keys of them (DLV-14). */
export interface SecretSlots {
  /** What the service signs with, as far as is known; null before the first rotation has ended. */
  readonly current: string | null;
  /** What it signed with before, newest first. Each counts while now < `validUntil`. */
  readonly previous: readonly { readonly secret: string /** Epoch ms. */; readonly validUntil: number }[];
  /** Installed ahead of its use: a rotation is under way. */
  readonly next: NextSecret | null;
  /** The service's `rotatedAt` when the last rotation through this store ended, epoch ms; null before one, or when it showed none. */
  readonly rotatedAt: number | null;
}

export interface NextSecret {
  readonly secret: string;
  /** When it was made, epoch ms. */
  readonly since: number;
  /** The service's `rotatedAt` before the rotation, epoch ms; null when it showed none. */
  readonly rotatedAtBefore: number | null;
  /** The service had a current secret when the rotation began: this is not its first. */
  readonly hadSecret: boolean;
}

export interface StoredSecrets extends SecretSlots {
  /** Grows with each write of the kind. 1 or more. */
  readonly revision: number;
}

/** A receiver process, as its heartbeat shows it. */
export interface ReceiverSighting {
  readonly id: string;
  readonly host: string;
  readonly pid: number;
  /** Epoch ms of its last heartbeat. */
  readonly seenAt: number;
  /** Names the secrets it uses without telling them: equal for equal secrets, another one for others. */
  readonly keyringVersion: string;
  /** Cumulative for its process; `slot:previous` counts deliveries that a previous secret vouched for. */
  readonly counters: Readonly<Record<string, number>>;
}
