/** The functions of docs/sidecar.md that verify, run by whichever of their languages is here. */
import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { opensslHmac } from "../../sources/messaging/openssl.ts";
import { newFolder } from "./place.ts";

const SECRET = "a-forwarding-secret-of-32-bytes-";
const BODY = '{"eventType":"message.read","text":"Grüße"}';
const PAGE = readFileSync(new URL("../../../docs/sidecar.md", import.meta.url), "utf8");

interface Language {
  readonly name: string;
  readonly command: readonly string[];
  readonly file: string;
  readonly before: string;
  /** Its arguments are the secret, then a timestamp, a body and a signature as often as may be; for each it prints `true` or `false`. */
  readonly after: string;
}

const LANGUAGES: readonly Language[] = [
  {
    name: "python",
    command: ["python3"],
    file: "verify.py",
    before: "import sys",
    after: `
a = sys.argv
for i in range(2, len(a), 3):
    print(str(is_authentic(a[1].encode(), a[i], a[i + 1].encode(), a[i + 2])).lower())`,
  },
  {
    name: "php",
    command: ["php"],
    file: "verify.php",
    before: "<?php",
    after: `
for ($i = 2; $i < $argc; $i += 3)
    echo is_authentic($argv[1], $argv[$i], $argv[$i + 1], $argv[$i + 2]) ? "true\\n" : "false\\n";`,
  },
  {
    name: "ruby",
    command: ["ruby"],
    file: "verify.rb",
    before: "",
    after: "ARGV.drop(1).each_slice(3) { |delivery| puts authentic?(ARGV[0], *delivery) }",
  },
  {
    name: "go",
    command: ["go", "run"],
    file: "verify.go",
    before: 'package main\nimport ("fmt"; "os")',
    after: `
func main() {
	a := os.Args
	for i := 2; i < len(a); i += 3 {
		fmt.Println(isAuthentic([]byte(a[1]), a[i], []byte(a[i+1]), a[i+2]))
	}
}`,
  },
];

function snippetOf(name: string): string {
  const [, code] = new RegExp(`^\`\`\`${name}\\n([\\s\\S]*?)^\`\`\`$`, "m").exec(PAGE) ?? [];
  if (code === undefined) throw new Error(`docs/sidecar.md has no block of ${name}.`);
  return code;
}

describe("docs/sidecar.md", () => {
  it.for(LANGUAGES)("verifies in $name what openssl signed", ({ name, command, file, before, after }, context) => {
    const [interpreter = "", ...args] = command;
    if (spawnSync("sh", ["-c", `command -v ${interpreter}`]).status !== 0)
      context.skip(`no ${interpreter} on the path`);
    const folder = newFolder();
    writeFileSync(join(folder, file), [before, snippetOf(name), after].join("\n"));

    const now = `${Date.now()}`;
    const old = `${Date.now() - 301_000}`;
    const signed = (timestamp: string) => opensslHmac(SECRET, timestamp, BODY).toString("hex");
    const cases = [
      [now, BODY, signed(now)],
      [now, `${BODY} `, signed(now)],
      [old, BODY, signed(old)],
      [`${now}\n`, BODY, signed(`${now}\n`)],
      [now, BODY, "é"],
    ];
    const given = [...args, join(folder, file), SECRET, ...cases.flat()];
    const { stdout, stderr } = spawnSync(interpreter, given, { encoding: "utf8" });
    expect(`${stdout}${stderr}`.trim().split("\n")).toEqual(["true", "false", "false", "false", "false"]);
  });

  it("gives a vector that openssl agrees with", () => {
    const [, timestamp = "", body = "", signature] =
      /timestamp `(\d+)`, body\n`(.*)` make the signature\n`(\w+)`/.exec(PAGE) ?? [];
    expect(opensslHmac(SECRET, timestamp, body).toString("hex")).toBe(signature);
  });
});
