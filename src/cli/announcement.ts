/** What `oncehook emulator` says once it listens: a text for a person, or a line of JSON for a program. */
import type { Emulator } from "../emulator/index.ts";
import { jsonLine } from "./terminal.ts";

/** One JSON object on one line. */
export function announcementLine(emulator: Emulator): string {
  const { url, apiClientId, clientId, clientSecret, webhookSecret, fixtures } = emulator;
  return jsonLine({ url, apiClientId, clientId, clientSecret, webhookSecret, fixtures });
}

/** The text: where it is, and who one is there. */
export function announcementText({ url, clientId, clientSecret, webhookSecret, fixtures }: Emulator): string {
  const numbers = Object.entries(fixtures.numbers).map(([name, id]) => `    ${name.padEnd(12)}${id}`);
  return `The service is emulated at ${url}

  client id       ${clientId}
  client secret   ${clientSecret}
  webhook secret  ${webhookSecret}
  control API     ${url}/_emulator
  numbers
${numbers.join("\n")}
`;
}

/** What to try first, and how it ends: for who reads it as a text. */
export function announcementHints({ url, clientId, clientSecret }: Emulator): string {
  return `
Try:
  curl -s ${shellWord(`${url}/api/auth/token`)} -d grant_type=client_credentials \\
    --data-urlencode ${shellWord(`client_id=${clientId}`)} --data-urlencode ${shellWord(`client_secret=${clientSecret}`)}

Ctrl-C ends it.
`;
}

/** A text as one word of a POSIX shell, quoted where needed. */
function shellWord(text: string): string {
  return /^[\w.~:/=[\]-]+$/.test(text) && !text.includes("[") ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
