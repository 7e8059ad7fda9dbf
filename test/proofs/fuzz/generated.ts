/** Requests made from nothing: nobody signed them, however much they look as if. */
import { SIGNATURE_HEADER, TIMESTAMP_HEADER } from "../../../src/sources/messaging/sign.ts";
import type { Case } from "./case.ts";
import type { Dice } from "./dice.ts";
import { NOW, TOLERANCE_MS } from "./signed.ts";

const HEX = [..."0123456789abcdef"];
const BASE64 = [..."ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"];
const SEPARATORS = [" ", ",", ", ", "=", ".", "sha256=", "v1=", "v1,", "\t", ";"];
const ODD = [..."\0\u00e9\u0430\uff11\u{1f600}", "\ud800", "%00", "\r\n"];
const ANY = [...HEX, ...BASE64, ...SEPARATORS, ...ODD];
const JSON_PIECES = [...'{}[]:,"\\0-.eE \n', "null", "true", '"eventType"', '"data"', '"message.sent"', "\\ud800", "é"];

export function generatedCase(dice: Dice): Case {
  const headers: Record<string, string | readonly string[]> = {};
  if (!dice.isOneIn(16)) headers[TIMESTAMP_HEADER] = timestamp(dice);
  if (!dice.isOneIn(16))
    headers[SIGNATURE_HEADER] = dice.isOneIn(8) ? [signature(dice), signature(dice)] : signature(dice);
  return { kind: "generated", headers, body: body(dice), now: NOW, due: "unless signed" };
}

function timestamp(dice: Dice): string {
  const near = NOW - TOLERANCE_MS + dice.below(2 * TOLERANCE_MS);
  if (!dice.isOneIn(3)) return dice.isOneIn(2) ? `${near}` : `${Math.floor(near / 1000)}`;
  return dice.text(dice.isOneIn(2) ? HEX.slice(0, 10) : ANY, dice.below(20));
}

function signature(dice: Dice): string {
  const shapes = [
    () => dice.text(HEX, 64),
    () => `sha256=${dice.text(HEX, 64)}`,
    () => `${dice.text(BASE64, 43)}=`,
    () => dice.bytes(32).toString("base64"),
    () => dice.bytes(32).toString("base64url"),
    () => Array.from({ length: 1 + dice.below(6) }, () => dice.text(HEX, 64)).join(dice.pick(SEPARATORS)),
    () => dice.text(ANY, dice.below(80)),
    () => dice.text(ANY, dice.isOneIn(50) ? 4_000 : 500),
  ];
  return dice.pick(shapes)();
}

function body(dice: Dice): Buffer {
  if (dice.isOneIn(3)) return dice.bytes(dice.below(64));
  return Buffer.from(dice.text(JSON_PIECES, dice.below(48)));
}
