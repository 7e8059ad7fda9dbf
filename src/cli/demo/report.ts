/** What the demo tells and what it finds: chapters, checks and tables, and the exit code that they add up to. */
import { FAILURE } from "../exit.ts";
import { jsonText, tableText } from "../terminal.ts";

/** Something that had to be so. */
export interface Check {
  readonly ok: boolean;
  readonly text: string;
}

/** Where it is told, and how. */
export interface Audience {
  /** Checks as JSON, one object a line, and nothing else. */
  readonly json: boolean;
  /** Nothing, unless a check failed. */
  readonly quiet: boolean;
  readonly write: (line: string) => void;
  /** Once aborted, whatever would be told next throws its reason: so ends a story that nobody waits for. */
  readonly stop?: AbortSignal;
  readonly style: (style: "bold" | "green" | "red", text: string) => string;
}

export class Report {
  readonly checks: Check[] = [];
  /** All that was told so far, as a person reads it. */
  readonly lines: string[] = [];
  readonly #audience: Audience;
  #chapter = "";

  constructor(audience: Audience) {
    this.#audience = audience;
  }

  chapter(name: string): void {
    this.#chapter = name;
    this.#tell(`\n${this.#audience.style("bold", name)}`);
  }

  say(text: string): void {
    this.#tell(`  ${text}`);
  }

  /** Something that has to be so; the end counts them. */
  check(ok: boolean, text: string): void {
    this.#audience.stop?.throwIfAborted();
    const check = { ok, text };
    this.checks.push(check);
    if (this.#audience.json) this.#audience.write(jsonText({ chapter: this.#chapter, ...check }));
    this.say(this.#checkText(check));
  }

  table(head: readonly string[], rows: readonly (readonly string[])[]): void {
    for (const line of tableText(head, rows).trimEnd().split("\n")) this.say(line);
  }

  /** Tells the sum. Returns the exit code: 0 if every check held, and there were some. */
  end(seconds: number): number {
    const failed = this.checks.filter(({ ok }) => !ok);
    const held = this.checks.length > 0 && failed.length === 0;
    const { json, quiet, write, style } = this.#audience;
    if (json) {
      write(jsonText({ checks: this.checks.length, failed: failed.length, seconds }));
    } else if (held && !quiet) {
      write(`\n${style("bold", `All ${this.checks.length} checks held, in ${seconds.toFixed(1)} s.`)}`);
    } else if (!held) {
      write(`\n${style("bold", `${failed.length} of ${this.checks.length} checks failed.`)}`);
      for (const check of failed) write(`  ${this.#checkText(check)}`);
    }
    return held ? 0 : FAILURE;
  }

  #checkText({ ok, text }: Check): string {
    return `${ok ? this.#audience.style("green", "✓") : this.#audience.style("red", "✗")} ${text}`;
  }

  #tell(line: string): void {
    this.#audience.stop?.throwIfAborted();
    this.lines.push(line);
    if (!this.#audience.json && !this.#audience.quiet) this.#audience.write(line);
  }
}
