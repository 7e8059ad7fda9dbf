/** Reads the text of a Prometheus scrape strictly: a line that the exposition format does not allow is an error. */

export interface Scrape {
  readonly types: ReadonlyMap<string, string>;
  readonly helps: ReadonlyMap<string, string>;
  /** By name and labels, as they are written. */
  readonly samples: ReadonlyMap<string, number>;
}

const COMMENT = /^# (HELP|TYPE) ([a-zA-Z_:][a-zA-Z0-9_:]*) (.+)$/;
const LABEL = String.raw`[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*"`;
const SAMPLE = new RegExp(String.raw`^([a-zA-Z_:][a-zA-Z0-9_:]*(?:\{${LABEL}(?:,${LABEL})*\})?) (\S+)$`);

export function parseScrape(text: string): Scrape {
  const [types, helps, samples] = [new Map<string, string>(), new Map<string, string>(), new Map<string, number>()];
  if (!text.endsWith("\n")) throw new Error("A scrape ends with a line feed.");
  for (const line of text.split("\n").filter((one) => one !== "")) {
    const [, kind, about = "", told = ""] = COMMENT.exec(line) ?? [];
    if (kind !== undefined) {
      (kind === "TYPE" ? types : helps).set(about, told);
      continue;
    }
    const [, name, value = ""] = SAMPLE.exec(line) ?? [];
    if (name === undefined) throw new Error(`This is no line of a scrape: ${line}`);
    if (samples.has(name)) throw new Error(`Twice in one scrape: ${name}`);
    samples.set(name, numberOf(value));
  }
  return { types, helps, samples };
}

function numberOf(value: string): number {
  if (/^nan$/i.test(value)) return Number.NaN;
  const number = Number(value.replace(/^([+-]?)Inf$/, "$1Infinity"));
  if (Number.isNaN(number)) throw new Error(`This is no value of a sample: ${value}`);
  return number;
}
