/** Signatures made by openssl, so that the tests do not compare our code with itself. */
import { Buffer } from "node:buffer";
import { spawnSync } from "node:child_process";

/** HMAC-SHA256 over `<timestamp>.<body>` with these key bytes. */
export function opensslHmac(key: Uint8Array | string, timestamp: string, body: Uint8Array | string): Buffer {
  const hexKey = Buffer.from(key).toString("hex");
  const input = Buffer.concat([Buffer.from(`${timestamp}.`), Buffer.from(body)]);
  const args = ["dgst", "-sha256", "-mac", "HMAC", "-macopt", `hexkey:${hexKey}`, "-binary"];
  const { status, stdout, stderr } = spawnSync("openssl", args, { input });
  if (status !== 0 || stdout.length !== 32) throw new Error(`openssl failed: ${stderr}`);
  return stdout;
}

export const SECRET = "a-webhook-signing-secret-of-32-b";
export const OTHER_SECRET = "another-signing-secret-of-32-byt";
export const NOW = 1_760_000_000_000;

/** A signed delivery, for the many tests that need any. */
export const SIGNED = {
  timestamp: "1760000000000",
  body: Buffer.from('{"eventType":"message.sent","data":{"text":"1.2"}}'),
  // printf '%s' '1760000000000.{"eventType":"message.sent","data":{"text":"1.2"}}' | openssl dgst -sha256 -hmac 'a-webhook-signing-secret-of-32-b'
  signature: "38c401316ee2958d92d4b5aebf2f8b2b4fdc080e7a90863c16189ee73a90482f",
} as const;

/** Literal vectors; each with the command that made it, SECRET being the key unless it says otherwise. */
export const VECTORS = [
  {
    // printf '%s' '1760000000000.{"eventType":"message.sent","data":{"text":"Grüße 👋"}}' | openssl dgst -sha256 -hmac 'a-webhook-signing-secret-of-32-b'
    name: "UTF-8 body, milliseconds, hex",
    secret: SECRET,
    timestamp: "1760000000000",
    body: Buffer.from('{"eventType":"message.sent","data":{"text":"Grüße 👋"}}'),
    signature: "10966a40ed3fc4a0e5bbc95fa2fcb925b21d3cc9bde71055b28dbc1984902d01",
  },
  {
    // printf '1760000000.' | openssl dgst -sha256 -hmac 'a-webhook-signing-secret-of-32-b' -binary | base64
    name: "empty body, seconds, base64",
    secret: SECRET,
    timestamp: "1760000000",
    body: Buffer.alloc(0),
    signature: "8I2XcpprM+oXkFbIl+vAwcKnwK07b5bohoLFimNy5Xc=",
  },
  {
    // printf '1760000000000.\xef\xbb\xbf{"a":"\xff\xfe\x00"}' | openssl dgst -sha256 -mac HMAC -macopt hexkey:000102030405060708090a0b0c0d0e0fff
    name: "BOM, bytes that are no UTF-8, a NUL; key given in hex",
    secret: { secret: "000102030405060708090a0b0c0d0e0fff", encoding: "hex" as const },
    timestamp: "1760000000000",
    body: Buffer.from([0xef, 0xbb, 0xbf, ...Buffer.from('{"a":"'), 0xff, 0xfe, 0, ...Buffer.from('"}')]),
    signature: "d43fbd5ae92f757be1759c760b74b92264b8ba8df6288ecc0e49a478ad551403",
  },
] as const;
