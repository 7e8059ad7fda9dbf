/** What the demo tells and what it finds: chapters, checks and tables, and the exit code that they add up to. */
import { type Check, checkLine, paint, tableLines } from "../shared/terminal.ts";

export class Report {
  readonly checks: Check[] = [];
  /** All that was told so far, as it was written. */
  readonly lines: string[] = [];
  readonly #write: (line: string) => void;

  constructor(write: (line: string) => void) {
    this.#write = write;
  }

  chapter(name: string): void {
    this.#tell(`\n${paint("bold", name)}`);
  }

  say(text: string): void {
    this.#tell(`  ${text}`);
  }

  /** Something that has to be so; the end counts them. */
  check(ok: boolean, text: string): void {
    const check = { ok, text };
    this.checks.push(check);
    this.say(checkLine(check));
  }

  table(head: readonly string[], rows: readonly (readonly string[])[]): void {
    for (const line of tableLines(head, rows)) this.say(line);
  }

  /** Tells the sum. Returns the exit code: 0 if every check held, and there were some. */
  end(seconds: number): 0 | 1 {
    const failed = this.checks.filter(({ ok }) => !ok);
    const held = this.checks.length > 0 && failed.length === 0;
    this.chapter(
      held
        ? `All ${this.checks.length} checks held, in ${seconds.toFixed(1)} s.`
        : `${failed.length} of ${this.checks.length} checks failed.`,
    );
    for (const check of failed) this.say(checkLine(check));
    return held ? 0 : 1;
  }

  #tell(line: string): void {
    this.lines.push(line);
    this.#write(line);
  }
}
