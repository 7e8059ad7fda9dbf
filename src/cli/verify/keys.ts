/** The keys that a signer may have made of a secret, or of what is nearly that secret. */
import { Buffer } from "node:buffer";
import { type SecretEncoding, secretBytes } from "../../signature/secret.ts";
import { type Change, distinct } from "./change.ts";

/** What the user gave. */
export interface GivenSecret {
  readonly secret: string;
  readonly encoding: SecretEncoding;
  /** One that was replaced. */
  readonly previous?: string | undefined;
}

/** A key, and what the secret's text and encoding would have to be for a receiver to have the same one. */
export interface KeyGuess {
  readonly bytes: Buffer;
  /** Undefined where no text here is that key. */
  readonly encoding?: SecretEncoding;
  /** What to do to the text before it is given; undefined for nothing. */
  readonly preparation?: string;
}

type KeyChange = Change<KeyGuess>;
type DecodedKey = KeyGuess & { readonly encoding: SecretEncoding };

/** First the key as the receiver would make it. @throws SetupError for a text that is not of its encoding */
export function keyChanges({ secret, encoding, previous }: GivenSecret): readonly KeyChange[] {
  const changes: KeyChange[] = [
    { value: { bytes: secretBytes("secret", secret, encoding), encoding }, cause: null, told: toldOf(encoding) },
    ...(previous === undefined ? [] : [previousKey(previous, encoding)]),
    ...otherEncodings(secret),
    ...edges(secret),
    ...prefixes(secret),
    ...spellings(secret),
    ...nothings(),
  ];
  return distinct(changes, ({ bytes }) => bytes.toString("latin1"));
}

function toldOf(encoding: SecretEncoding): string {
  return encoding === "utf8" ? "the secret's text" : `the secret's text, ${encoding}-decoded`;
}

function previousKey(previous: string, encoding: SecretEncoding): KeyChange {
  const bytes = secretBytes("previous secret", previous, encoding);
  return { value: { bytes, encoding }, cause: "previous_secret", told: "the previous secret" };
}

function otherEncodings(secret: string): KeyChange[] {
  const decoded = [...decodings(secret)].map(
    (value): KeyChange => ({ value, cause: "secret_encoding", told: toldOf(value.encoding) }),
  );
  const plain: KeyChange = {
    value: { bytes: Buffer.from(secret), encoding: "utf8" },
    cause: "secret_encoding",
    told: toldOf("utf8"),
  };
  const encoded = (["base64", "hex"] as const).map(
    (encoding): KeyChange => ({
      value: {
        bytes: Buffer.from(Buffer.from(secret).toString(encoding)),
        encoding: "utf8",
        preparation: `write it in ${encoding}`,
      },
      cause: "secret_encoding",
      told: `the secret's bytes, written in ${encoding}`,
    }),
  );
  return [...decoded, plain, ...encoded];
}

/** As a receiver would decode it, where the text is of that encoding. */
function* decodings(text: string): Generator<DecodedKey> {
  const base64 = text.replaceAll("-", "+").replaceAll("_", "/");
  // A receiver reads base64 strictly, so one in the alphabet of URLs has to be rewritten.
  const prepared = base64 === text ? {} : { preparation: "write + for - and / for _" };
  const texts = [
    ["base64", base64, prepared],
    ["hex", text, {}],
  ] as const;
  for (const [encoding, each, preparation] of texts) {
    try {
      yield { bytes: secretBytes("secret", each, encoding), encoding, ...preparation };
    } catch {
      // It is not of that encoding.
    }
  }
}

function edges(secret: string): KeyChange[] {
  const trimmed = secret.trim();
  const unquoted = trimmed.replace(/^(["'`])(.*)\1$/s, "$2");
  const text = (told: string, cause: KeyChange["cause"], value: string): KeyChange => ({
    value: { bytes: Buffer.from(value), encoding: "utf8", preparation: told },
    cause,
    told: `the secret's text: ${told}`,
  });
  return [
    text("drop the line break at its end", "secret_line_break", secret.replace(/[\r\n]+$/, "")),
    text("add a line break", "secret_line_break", `${secret}\n`),
    text("add a line break (CRLF)", "secret_line_break", `${secret}\r\n`),
    text("trim it", "secret_whitespace", trimmed.replace(/^\uFEFF/, "")),
    text("take its quotation marks away", "secret_quotes", unquoted),
    text("put it in quotation marks", "secret_quotes", `"${secret}"`),
    text("put it in single quotation marks", "secret_quotes", `'${secret}'`),
  ];
}

/** `whsec_…` and its like: what stands before the first underscore, or before all but the last. */
function prefixes(secret: string): KeyChange[] {
  const bare = [...new Set([secret.replace(/^[a-z]+_/i, ""), secret.replace(/^(?:[a-z]+_)+/i, "")])];
  return bare
    .filter((text) => text !== secret && text !== "")
    .flatMap((text) => {
      const plain: DecodedKey = { bytes: Buffer.from(text), encoding: "utf8" };
      return [...decodings(text), plain].map((value): KeyChange => {
        const preparation = ["drop its prefix", value.preparation ?? []].flat().join(", ");
        const told = `${toldOf(value.encoding)}, without its prefix`;
        return { value: { ...value, preparation }, cause: "secret_prefix", told };
      });
    });
}

function spellings(secret: string): KeyChange[] {
  const texts: readonly [string, KeyChange["cause"], string][] = [
    ["resolve its percent escapes", "secret_escaped", percentDecoded(secret)],
    ["escape it as in a URL", "secret_escaped", encodeURIComponent(secret.toWellFormed())],
    ["resolve its backslash escapes", "secret_escaped", secret.replaceAll("\\n", "\n").replaceAll("\\\\", "\\")],
    ["write it in lower case", "secret_case", secret.toLowerCase()],
    ["write it in upper case", "secret_case", secret.toUpperCase()],
  ];
  return texts.map(([preparation, cause, text]) => ({
    value: { bytes: Buffer.from(text), encoding: "utf8", preparation },
    cause,
    told: `the secret's text: ${preparation}`,
  }));
}

function percentDecoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** What a signer has whose variable is not set. */
function nothings(): KeyChange[] {
  return ["", "undefined", "null", "None"].map((text) => ({
    value: { bytes: Buffer.from(text) },
    cause: "secret_undefined",
    told: text === "" ? "an empty key" : `the word ${text}`,
  }));
}
