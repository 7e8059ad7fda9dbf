/** What `oncehook verify` prints for people. */
import type { Cause } from "./causes.ts";
import type { Diagnosis } from "./diagnosis.ts";
import type { FoundOptions, Guess } from "./guess.ts";

/** Colours a text, where that is seen. */
export type Paint = (style: "green" | "red" | "dim" | "bold", text: string) => string;

export function diagnosisText({ verified, code, steps, causes }: Diagnosis, paint: Paint): string {
  const end = verified
    ? paint("green", "Verified: a receiver with this secret takes it.")
    : paint("red", `Not verified${code === null ? "" : `: ${code}`}.`);
  return `${steps.map((step) => stepLine(step, paint)).join("")}\n${end}\n${causes.map(causeText).join("")}`;
}

export function guessText(guess: Guess | null, paint: Paint): string {
  const head = `\n${paint("bold", "How it is signed")}\n`;
  if (guess === null) {
    return `${head}  Nothing that was tried makes this signature: the secret is another one, or the body is not what was signed.\n`;
  }
  const rows = Object.entries(guess.signer).map(([name, told]) => `  ${name.padEnd(10)} ${told}\n`);
  const what = guess.options === null ? neededText(guess, paint) : optionsText(guess.options, paint);
  return `${head}${rows.join("")}\n${what}`;
}

function stepLine({ name, ok, text }: Diagnosis["steps"][number], paint: Paint): string {
  const mark = ok === null ? paint("dim", "-") : ok ? paint("green", "✓") : paint("red", "✗");
  return `${mark} ${name.padEnd(15)} ${text}\n`;
}

function causeText({ code, proven, what, fix }: Cause): string {
  return `\n${proven ? "Cause" : "Likely cause"} (${code}): ${what}\nFix: ${fix}\n`;
}

function neededText({ needed }: Guess, paint: Paint): string {
  const list = needed.map((each) => `  - ${each}\n`).join("");
  return `${paint("bold", "No option of oncehook receives that. It needs")}\n${list}`;
}

/** Code that can be pasted; what is the default anyway is a remark. */
function optionsText(options: FoundOptions, paint: Paint): string {
  const { secretEncoding, secretPreparation, timestampFormat, signatureEncoding } = options;
  const secret = "process.env.WEBHOOK_SECRET";
  const secrets = secretEncoding === "utf8" ? secret : `{ secret: ${secret}, encoding: "${secretEncoding}" }`;
  const isDefault = timestampFormat === '"s"' || timestampFormat === '"ms"';
  const preparation = secretPreparation === undefined ? "" : `  // The secret's text: ${secretPreparation}.\n`;
  return `${paint("bold", "Options to set")}
${preparation}  secrets: ${secrets},
  timestampFormat: ${timestampFormat},${isDefault ? ' // "auto", the default, takes it too' : ""}
  signatureEncoding: "${signatureEncoding}", // "auto", the default, takes it too
`;
}
