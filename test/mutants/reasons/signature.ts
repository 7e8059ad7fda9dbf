/** Why mutants of what verifies live. */
import type { Reason } from "../reason.ts";

export const SIGNATURE_REASONS: readonly Reason[] = [
  {
    file: "src/service/verify.ts",
    reason: "Any other length than 43 decodes to more than 32 bytes, which is refused one line on.",
    changes: [["ConditionalExpression", "length === 43", "true"]],
  },
  {
    file: "src/service/verify.ts",
    reason: "It is asked of texts of 64 characters only.",
    changes: [
      ["Regex", "/^[0-9A-Fa-f]{64}$/", "/[0-9A-Fa-f]{64}$/"],
      ["Regex", "/^[0-9A-Fa-f]{64}$/", "/^[0-9A-Fa-f]{64}/"],
    ],
  },
  {
    file: "src/service/verify.ts",
    reason: "The way around the list is for speed: the list reads the same from 64 hexadecimal digits.",
    changes: [
      ["ConditionalExpression", "text.length === 64 && HEX.test(text)", "false"],
      ["ConditionalExpression", "text.length === 64", "true"],
      [
        "BlockStatement",
        '{ return encoding === "auto" || encoding === "hex" ? [Buffer.from(text, "hex")] : null; }',
        "{}",
      ],
      ["EqualityOperator", "text.length === 64", "text.length !== 64"],
    ],
  },
  {
    file: "src/service/verify.ts",
    reason: "Without an encoding the bytes are never 32: a text of another length than 43, 44 and 64 has more.",
    changes: [["ConditionalExpression", "encoding === null", "false"]],
  },
  {
    file: "src/sources/headers.ts",
    reason: "The comparison of lengths is for speed.",
    changes: [["ConditionalExpression", "key.length !== name.length", "false"]],
  },
  {
    file: "src/sources/hmac-key.ts",
    reason: "The size of the shared space: see where it is used.",
    changes: [["ArithmeticOperator", "16 * 1024", "16 / 1024"]],
  },
  {
    file: "src/sources/hmac-key.ts",
    reason: "Where a message is put together makes no difference to its digest; sharing the space is for speed.",
    changes: [
      ["ConditionalExpression", "size > scratch.length", "true"],
      ["EqualityOperator", "size > scratch.length", "size >= scratch.length"],
    ],
  },
  {
    file: "src/service/verify-signature.ts",
    reason: "A text compiles to the same keyring again: keeping it is for speed.",
    changes: [
      ["BlockStatement", "{ if (byText.size >= MAX_TEXTS) byText.clear(); byText.set(secrets, keyring); }", "{}"],
    ],
  },
  {
    file: "src/service/verify-signature.ts",
    reason: "Null is no keyring, and compiling it says so on either way.",
    changes: [["ConditionalExpression", "secrets !== null", "true"]],
  },
  {
    file: "src/service/verify-signature.ts",
    reason: "When the texts are forgotten is a matter of speed and memory only.",
    changes: [
      ["ConditionalExpression", "byText.size >= MAX_TEXTS", "true"],
      ["ConditionalExpression", "byText.size >= MAX_TEXTS", "false"],
      ["EqualityOperator", "byText.size >= MAX_TEXTS", "byText.size > MAX_TEXTS"],
      ["EqualityOperator", "byText.size >= MAX_TEXTS", "byText.size < MAX_TEXTS"],
    ],
  },
  {
    file: "src/service/keyring.ts",
    reason: "Number.isFinite is false for what is no number; the other check is for the compiler.",
    changes: [["ConditionalExpression", 'typeof end !== "number"', "false"]],
  },
  {
    file: "src/service/keyring.ts",
    reason: "A keyring's kinds are walked in one order, so the set has it too.",
    changes: [["MethodExpression", "[...unsigned].sort()", "[...unsigned]"]],
  },
  {
    file: "src/service/keyring.ts",
    reason: "Entries with the same bytes are one at least: the check is for the compiler.",
    changes: [["OptionalChaining", "same[0]?.bytes", "same[0].bytes"]],
  },
  {
    file: "src/service/keyring.ts",
    reason: "Of grants that end together none has ended while their key counts: not looking is for speed.",
    changes: [["ConditionalExpression", "Math.min(...ends) !== Math.max(...ends)", "true"]],
  },
  {
    file: "src/service/verify.ts",
    reason: "Buffer.from copies bytes; not doing so is for speed.",
    changes: [["ConditionalExpression", 'typeof body === "string"', "true"]],
  },
  {
    file: "src/service/verify.ts",
    reason: 'Whatever is neither "s", "ms" nor a function is read as "auto".',
    changes: [["StringLiteral", '"auto"', '""']],
  },
  {
    file: "src/service/verify.ts",
    reason: "Whoever calls it has a grant; the check is for the compiler.",
    changes: [["ConditionalExpression", "first === undefined", "false"]],
  },
  {
    file: "src/service/verify.ts",
    reason: "Without an unsigned kind there is no grant, and without a grant no match: looked at first for speed.",
    changes: [["ConditionalExpression", "keyring.unsigned.size === 0", "false"]],
  },
  {
    file: "src/sources/keyring-provider.ts",
    reason: "A map that is larger than its bound has a first key: the check is for the compiler.",
    changes: [["ConditionalExpression", "oldest !== undefined", "true"]],
  },
  {
    file: "src/sources/keyring-provider.ts",
    reason: "Only keyrings that were read are among the known: the type allows null for the others.",
    changes: [
      ["StringLiteral", '"none"', '""'],
      ["OptionalChaining", "keyring?.version", "keyring.version"],
    ],
  },
  {
    file: "src/sources/keyring-provider.ts",
    reason: "There is either a keyring or a failure.",
    changes: [["ConditionalExpression", "failure === undefined", "false"]],
  },
  {
    file: "src/sources/keyring-provider.ts",
    reason: "Without a failure, what is served was read in the last minute: `read` waits for anything older.",
    changes: [["ConditionalExpression", "failure === undefined", "false"]],
  },
  {
    file: "src/service/verify.ts",
    reason: "Only the second element and the third are looked at, and neither is there.",
    changes: [["ArrayDeclaration", "[]", '["Stryker was here"]']],
  },
  {
    file: "src/service/secret-store.ts",
    reason: "A cause of undefined is no cause to an OncehookError.",
    changes: [["ConditionalExpression", "cause === undefined", "false"]],
  },
  {
    file: "src/service/secret-store.ts",
    reason: "Number.isFinite is false for what is no number; the other check is for the compiler.",
    changes: [["ConditionalExpression", 'typeof value === "number"', "true"]],
  },
  {
    file: "src/service/secret-store.ts",
    reason: "Number.isSafeInteger is false for what is no number; the other check is for the compiler.",
    changes: [["ConditionalExpression", 'typeof revision === "number"', "true"]],
  },
  {
    file: "src/service/secret.ts",
    reason:
      "Node.js writes padding at the end only, and reads nothing behind it: a text with more there differs anyway.",
    changes: [["Regex", "/=+$/", "/=+/"]],
  },
  {
    file: "src/service/sign.ts",
    reason: "Node.js takes an empty encoding for UTF-8.",
    changes: [["StringLiteral", '"utf8"', '""']],
  },
  {
    file: "src/service/sign.ts",
    reason: "The check that the switch has all cases is the compiler's.",
    changes: [["ConditionalExpression", "default: return encoding satisfies never;", "default:"]],
  },
  {
    file: "src/service/sign.ts",
    reason: 'Whatever is not seconds is milliseconds; the default is compared with "s" only.',
    changes: [["StringLiteral", '"ms"', '""']],
  },
  {
    file: "src/service/keyring-source.ts",
    reason: "A text has no `validUntil`, so it is filtered out as one that ended.",
    changes: [["ArrayDeclaration", "[]", '["Stryker was here"]']],
  },
  {
    file: "src/service/verify.ts",
    reason: "Number.isFinite is false for what is no number; the other check is for the compiler.",
    changes: [["ConditionalExpression", 'typeof timestamp === "number"', "true"]],
  },
  {
    file: "src/service/verify-signature.ts",
    reason: "A key for everything vouches for any fields: not reading them is for speed.",
    changes: [
      ["ConditionalExpression", 'match.scope === "any"', "false"],
      ["StringLiteral", '"any"', '""'],
    ],
  },
  {
    file: "src/service/verify-signature.ts",
    reason: "A keyring with keys has one that never ends: a previous secret is never alone.",
    changes: [
      ["ConditionalExpression", "key.validUntil > now", "true"],
      ["EqualityOperator", "key.validUntil > now", "key.validUntil >= now"],
    ],
  },
  {
    file: "src/service/verify-signature.ts",
    reason: "A number or a text has neither field, as an empty object.",
    changes: [["ConditionalExpression", 'typeof event === "object"', "true"]],
  },
  {
    file: "src/service/verify-signature.ts",
    reason: "The policy of all defaults is made once for speed; made anew it is the same.",
    changes: [
      [
        "ConditionalExpression",
        'options.toleranceMs === undefined && timestampFormat === "auto" && options.encoding === undefined',
        "false",
      ],
      ["StringLiteral", '"auto"', '""'],
      ["BlockStatement", "{ return DEFAULT_POLICY; }", "{}"],
    ],
  },
  {
    file: "src/service/verify-signature.ts",
    reason: 'Whatever is neither "s", "ms" nor a function is read as "auto".',
    changes: [["StringLiteral", '"auto"', '""']],
  },
  {
    file: "src/service/secret.ts",
    reason: "The check of a text throws no other error.",
    changes: [["ConditionalExpression", "!(error instanceof SetupError)", "false"]],
  },
  {
    file: "src/sources/headers.ts",
    reason: "The text of undefined is not a trace context either: the check is for the compiler.",
    changes: [["ConditionalExpression", "text !== undefined", "true"]],
  },
];
