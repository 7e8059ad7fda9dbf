/** Seals secrets with the key in a file: AES-256-GCM, under a fresh nonce each time, bound to what they are. */
import { createCipheriv, createDecipheriv, createSecretKey, type KeyObject, randomBytes } from "node:crypto";
import { closeSync, fstatSync, openSync, readFileSync, type Stats } from "node:fs";
import { SetupError } from "../errors.ts";
import { octal, ownerProblem } from "../internal/file-owner.ts";
import type { Sealing } from "../signature/secret-store.ts";

/** The first byte of what is sealed: another way of sealing gets another one. */
const VERSION = 1;
const CIPHER = "aes-256-gcm";
const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const HEADER_BYTES = 1 + NONCE_BYTES + TAG_BYTES;
/** Far more than 64 hex digits: whatever is larger is some other file. */
const MAX_FILE_BYTES = 1024;

/** How to make a key file, for every message that asks for one. */
export const MAKE_KEY_FILE = 'make a key file with "openssl rand -hex 32 > webhook.key && chmod 600 webhook.key"';

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
