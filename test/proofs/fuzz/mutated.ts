/** A signed request with one thing done to it, or with nothing done: the control that must be accepted. */
import type { Case } from "./case.ts";
import type { Dice } from "./dice.ts";
import { BODY_MUTATIONS } from "./mutate-body.ts";
import { HEADER_MUTATIONS } from "./mutate-headers.ts";
import { headersOf, NOW, type Signed } from "./signed.ts";

const CONTROL = "as it was signed";

const IN_BODY = Object.entries(BODY_MUTATIONS);
const IN_HEADERS = Object.entries(HEADER_MUTATIONS);

export const MUTATED_KINDS: readonly string[] = [CONTROL, ...[...IN_BODY, ...IN_HEADERS].map(([kind]) => kind)];

export function mutatedCase(dice: Dice, pool: readonly Signed[]): Case {
  const signed = dice.pick(pool);
  const whole = { headers: headersOf(signed), body: signed.body, now: NOW };
  if (dice.isOneIn(16)) return { ...whole, kind: CONTROL, due: "accepted" };
  if (dice.isOneIn(3)) {
    const [kind, mutate] = dice.pick(IN_BODY);
    return { ...whole, kind, body: mutate(signed.body, dice, pool), due: "unless signed" };
  }
  const [kind, mutate] = dice.pick(IN_HEADERS);
  return { ...whole, due: "unless signed", ...mutate(signed, dice, pool), kind };
}
