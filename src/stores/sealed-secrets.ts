/** Secret stores over a table of sealed texts: the part that does not depend on the database. */
import { createCipheriv, createDecipheriv, createSecretKey, type KeyObject, randomBytes } from "node:crypto";
import { closeSync, existsSync, fstatSync, openSync, readFileSync, type Stats } from "node:fs";
import { SetupError, StoreError } from "../errors.ts";
import { octal, ownerProblem } from "../internal/file-owner.ts";
import { foreignPlace } from "../internal/foreign-error.ts";
import { invalidOption } from "../internal/options.ts";
import { atFirstUse } from "../internal/process.ts";
import {
  checkKind,
  checkRevision,
  checkSlots,
  type ReceiverSighting,
  type Sealing,
  type SecretSlots,
  type SecretStore,
  type StoredSecrets,
  slotsFromText,
  slotsToText,
  unreadable,
} from "../sources/messaging/secret-store.ts";
import type { WebhookKind } from "../sources/messaging/webhook-kind.ts";
import { type SecretEncoding, secretEncodingOption } from "../sources/secret.ts";

/** Either a key file or your own sealing: secrets are never stored in plain text. */
export type SealedWith =
  | {
      /**
       * A file with a key of 32 bytes, as 64 hex digits or base64. It is read at once; in `next build`, at the first use. It must belong to this user or
       * root, and only its owner may read it. A file of root may be read by its group too, as Kubernetes and Docker mount it.
       * Links are followed.
       */
      readonly keyFile: string;
      readonly sealing?: never;
    }
  | {
      /** Seals with your own key, such as one in a key management service. */
      readonly sealing: Sealing;
      readonly keyFile?: never;
    };

/** The stored form of a kind's secrets. */
export interface SealedRow {
  readonly revision: number;
  readonly sealed: Uint8Array;
}

/** The table, in a database that is open. */
export interface SecretTable {
  read(kind: WebhookKind): Promise<SealedRow | null>;
  /** True once it is durable. False when the row's revision is another one (0: no row), and nothing was written. */
  replace(kind: WebhookKind, sealed: Uint8Array, revision: number): Promise<boolean>;
  receivers(): Promise<readonly ReceiverSighting[]>;
  close(): Promise<void>;
}

/** The place of the table. */
interface SecretPlace {
  /** Names it without a password. */
  readonly location: string;
  /** The table's name, for the message to an operator who has lost the key. */
  readonly table: string;
  /** After a failure, the next use tries again. */
  open(): Promise<SecretTable>;
  /** Converts an error of the database to the one that the caller gets. */
  asStoreError(error: unknown): unknown;
}

const REFRESH_MS = 1_000;

/**
 * Makes a secret store over the table at `place`, which is opened at the first use.
 *
 * @param maker - what the user called, for messages
 * @throws SetupError for a wrong `encoding`, `keyFile` or `sealing`
 */
export function sealedSecrets(
  maker: string,
  place: SecretPlace,
  options: SealedWith & { readonly encoding?: SecretEncoding },
): SecretStore {
  return new SealedSecrets(place, {
    encoding: secretEncodingOption("encoding", options.encoding),
    sealing: sealingOption(maker, options),
    remedy:
      options.keyFile === undefined
        ? 'Likely the key of "sealing" is another one now, or its service does not answer.'
        : `Likely "keyFile" holds another key now: give the one they were sealed with. If it is lost, delete the rows of the table ${place.table} and store the secrets anew.`,
  });
}

interface Seal {
  readonly encoding: SecretEncoding;
  readonly sealing: Sealing;
  /** The fix to name when a sealed text cannot be opened. */
  readonly remedy: string;
}

class SealedSecrets implements SecretStore {
  readonly refreshMs = REFRESH_MS;
  readonly encoding: SecretEncoding;
  readonly #place: SecretPlace;
  readonly #sealing: Sealing;
  readonly #remedy: string;
  /** The text of each kind that was opened last. The same text, sealed again, has other bytes. */
  readonly #opened = new Map<WebhookKind, { readonly sealed: Uint8Array; readonly text: string }>();
  readonly #underWay = new Set<Promise<unknown>>();
  #opening: Promise<SecretTable> | null = null;
  #closing: Promise<void> | null = null;

  constructor(place: SecretPlace, { encoding, sealing, remedy }: Seal) {
    this.#place = place;
    this.encoding = encoding;
    this.#sealing = sealing;
    this.#remedy = remedy;
  }

  read(kind: WebhookKind): Promise<StoredSecrets | null> {
    return this.#during(async (table) => {
      checkKind(kind);
      const row = await table.read(kind);
      if (row === null) return null;
      const text = await this.#openOnce(row.sealed, kind);
      return {
        ...slotsFromText(text, { place: this.#place.location, encoding: this.encoding }),
        revision: row.revision,
      };
    });
  }

  write(kind: WebhookKind, slots: SecretSlots, revision: number): Promise<boolean> {
    return this.#during(async (table) => {
      checkKind(kind);
      checkRevision(revision);
      const sealed = await this.#seal(slotsToText(checkSlots(slots, this.encoding)), kind);
      return table.replace(kind, sealed, revision);
    });
  }

  receivers(): Promise<readonly ReceiverSighting[]> {
    return this.#during((table) => table.receivers());
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    await Promise.allSettled([...this.#underWay]);
    this.#opened.clear();
    const table = await this.#opening?.catch(() => null);
    await table?.close();
  }

  #during<T>(operation: (table: SecretTable) => Promise<T>): Promise<T> {
    if (this.#closing !== null) {
      return Promise.reject(new StoreError("closed", "This secret store was closed; make a new one to go on."));
    }
    const running = this.#table()
      .then(operation)
      .catch((error: unknown) => {
        throw this.#place.asStoreError(error);
      });
    this.#underWay.add(running);
    const done = () => this.#underWay.delete(running);
    running.then(done, done);
    return running;
  }

  /** Opens once; a failure is forgotten, so that the next call tries again. */
  #table(): Promise<SecretTable> {
    this.#opening ??= this.#place.open().catch((error: unknown) => {
      this.#opening = null;
      throw error;
    });
    return this.#opening;
  }

  async #seal(text: string, kind: WebhookKind): Promise<Uint8Array> {
    const sealed = await (async () => this.#sealing.seal(Buffer.from(text), contextOf(kind)))().catch((error) => {
      const message = `The secrets could not be sealed${foreignPlace(error)}, and nothing was written.`;
      throw new StoreError("store_unavailable", message);
    });
    if (sealed instanceof Uint8Array && sealed.length > 0) return sealed;
    throw new SetupError(
      "invalid_option",
      'Option "sealing": seal() must give bytes, a Uint8Array; nothing was written.',
    );
  }

  /** Receivers read every second, secrets hardly ever change, and each opening may call a service. */
  async #openOnce(sealed: Uint8Array, kind: WebhookKind): Promise<string> {
    const known = this.#opened.get(kind);
    if (known !== undefined && Buffer.compare(known.sealed, sealed) === 0) return known.text;
    const text = await this.#open(sealed, kind);
    this.#opened.set(kind, { sealed, text });
    return text;
  }

  async #open(sealed: Uint8Array, kind: WebhookKind): Promise<string> {
    try {
      const plain = await this.#sealing.open(sealed, contextOf(kind));
      return new TextDecoder("utf-8", { fatal: true }).decode(plain);
    } catch (error) {
      const { location } = this.#place;
      const message = `The ${kind} secrets in ${location} can not be opened${foreignPlace(error)}. ${this.#remedy}`;
      throw unreadable(message);
    }
  }
}

function contextOf(kind: WebhookKind): string {
  return `oncehook secret ${kind}`;
}

function keySealing(keyFile: string): Sealing {
  if (typeof keyFile === "string" && keyFile !== "") return keyFileSealing(keyFile);
  throw invalidOption("keyFile", `must be the path of a file; ${MAKE_KEY_FILE}`, keyFile);
}

function sealingOption(maker: string, { keyFile, sealing }: SealedWith): Sealing {
  if ((keyFile === undefined) === (sealing === undefined)) {
    throw new SetupError(
      "invalid_option",
      `${maker} takes either "keyFile" or "sealing", because secrets are never stored plain: ${MAKE_KEY_FILE} and pass { keyFile: "webhook.key" }.`,
    );
  }
  if (keyFile !== undefined) {
    const isThere = typeof keyFile === "string" && existsSync(keyFile);
    const sealing = atFirstUse([isThere ? keyFile : ""], () => keySealing(keyFile));
    return {
      seal: async (plain, context) => sealing().seal(plain, context),
      open: async (sealed, context) => sealing().open(sealed, context),
    };
  }
  if (typeof sealing?.seal === "function" && typeof sealing.open === "function") return sealing;
  throw invalidOption("sealing", "must have the functions seal and open", sealing);
}

// Sealing with the key in a file: AES-256-GCM, with a new nonce each time, bound to the kind of the secrets.

/** The first byte of a sealed text: it names the way of sealing. */
const VERSION = 1;
const CIPHER = "aes-256-gcm";
const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const HEADER_BYTES = 1 + NONCE_BYTES + TAG_BYTES;
/** Far more than 64 hex digits: a larger file is not a key file. */
const MAX_FILE_BYTES = 1024;

/** The command that makes a key file, for every message that asks for one. */
const MAKE_KEY_FILE = 'make a key file with "openssl rand -hex 32 > webhook.key && chmod 600 webhook.key"';

/**
 * Reads the key now, so that a wrong file is found at start-up.
 *
 * @throws SetupError when the file cannot be read, belongs to another user, can be read or changed by others, or holds no key of 32 bytes
 */
export function keyFileSealing(path: string): Sealing {
  const key = readKey(path);
  return {
    seal: (plain, context) => seal(key, plain, context),
    open: (sealed, context) => open(key, sealed, context),
  };
}

function seal(key: KeyObject, plain: Uint8Array, context: string): Uint8Array {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv(CIPHER, key, nonce, { authTagLength: TAG_BYTES }).setAAD(boundTo(context));
  const body = Buffer.concat([cipher.update(plain), cipher.final()]);
  return Buffer.concat([Buffer.of(VERSION), nonce, cipher.getAuthTag(), body]);
}

function open(key: KeyObject, sealed: Uint8Array, context: string): Uint8Array {
  if (sealed.length < HEADER_BYTES || sealed[0] !== VERSION) {
    throw new RangeError("These bytes were not sealed with a key file, or by a newer version.");
  }
  const nonce = sealed.subarray(1, 1 + NONCE_BYTES);
  const tag = sealed.subarray(1 + NONCE_BYTES, HEADER_BYTES);
  const decipher = createDecipheriv(CIPHER, key, nonce, { authTagLength: TAG_BYTES });
  decipher.setAAD(boundTo(context)).setAuthTag(tag);
  return Buffer.concat([decipher.update(sealed.subarray(HEADER_BYTES)), decipher.final()]);
}

function boundTo(context: string): Buffer {
  return Buffer.from(`${VERSION}:${context}`);
}

function readKey(path: string): KeyObject {
  const text = readPrivately(path);
  const bytes = decodeKey(text.trim());
  if (bytes !== null) return createSecretKey(bytes);
  const message = `The key file ${path} holds no key of ${KEY_BYTES} bytes, as 64 hex digits or base64: ${MAKE_KEY_FILE}.`;
  throw new SetupError("invalid_secret", message, { fields: { option: "keyFile" } });
}

/** Checks the file that was opened, not the path: a link may lead elsewhere a moment later. */
function readPrivately(path: string): string {
  try {
    const file = openSync(path, "r");
    try {
      const stat = fstatSync(file);
      const problem = ownerProblem("The key file", path, stat) ?? readersProblem(path, stat);
      if (problem !== null) {
        throw new SetupError("unsafe_location", problem, { fields: { option: "keyFile", mode: octal(stat.mode) } });
      }
      return stat.size > MAX_FILE_BYTES ? "" : readFileSync(file, "latin1");
    } finally {
      closeSync(file);
    }
  } catch (cause) {
    if (cause instanceof SetupError) throw cause;
    throw new SetupError("invalid_option", `The key file ${path} cannot be read${remedyFor(cause)}.`, {
      cause,
      fields: { option: "keyFile" },
    });
  }
}

/** Group read of a file that belongs to root is how Kubernetes, Docker and systemd hand a secret to a process of another user. */
function readersProblem(path: string, { uid, mode }: Stats): string | null {
  if (process.platform === "win32" || (mode & (uid === 0 ? 0o007 : 0o077)) === 0) return null;
  return `The key file ${path} can be read by others than its owner (mode ${octal(mode)}): run "chmod 600 ${path}", or mount it with mode 0440 (Kubernetes: "defaultMode: 0440", Docker: "mode: 0440").`;
}

function remedyFor(cause: unknown): string {
  const isDenied = cause instanceof Error && "code" in cause && (cause.code === "EACCES" || cause.code === "EPERM");
  if (!isDenied) return `: ${MAKE_KEY_FILE}`;
  return ' by the user of this process: make that user its owner, or mount it for a group of that user (Kubernetes: "fsGroup")';
}

/** Strictly: re-encoding must give the same text, or a typing error would silently change the key. */
function decodeKey(text: string): Buffer | null {
  if (/^[0-9a-f]{64}$/i.test(text)) return Buffer.from(text, "hex");
  const bytes = Buffer.from(text, "base64");
  const isExact = bytes.toString("base64") === text || bytes.toString("base64url") === text;
  return isExact && bytes.length === KEY_BYTES ? bytes : null;
}
