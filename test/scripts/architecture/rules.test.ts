/** Holds the sources to docs/architecture.md, and shows for each rule that it sees a breach. */
import { describe, expect, it } from "vitest";
import { type Project, projectFrom, readProject } from "../../../scripts/architecture/project.ts";
import { RULES } from "../../../scripts/architecture/rules.ts";

const manifest: Project["manifest"] = {
  exports: {
    ".": { types: "./dist/index.d.ts", default: "./dist/index.js" },
    "./package.json": "./package.json",
  },
  devDependencies: { zod: "4.0.0" },
  peerDependencies: { express: "^5.0.0" },
  peerDependenciesMeta: { express: { optional: true } },
};

const rest: Omit<Project, "files"> = {
  manifest,
  entries: { oncehook: "src/index.ts" },
  reference: "`oncehook`",
  promises: "",
  pages: [],
};

const sound = {
  "src/index.ts": '/** Entry. */\nexport { a } from "./receiver/a.ts";\n',
  "src/receiver/a.ts":
    '/** A. */\nimport { setImmediate } from "node:timers/promises";\nimport { z } from "zod";\nimport type { S } from "../sources/source.ts";\nexport const a: S = z;\n',
  "adapters/express.ts": '/** E. */\nimport type { Request } from "express";\nexport type R = Request;\n',
  "src/internal/other.ts":
    "/** O. */\nclass Fake {\n  setTimeout(callback: () => void, ms: number): Timer {}\n}\nclock.setTimeout(wake, 5);\n",
  "src/tools/inspector/page/main.tsx":
    '/** P. */\nimport { render } from "preact";\nimport type { A } from "../api.ts";\nimport { c } from "./c.ts";\nrender(c);\n',
  "examples/express/server.ts": '/** S. */\nimport "oncehook";\n',
  "test/adapters/express.here.test.ts": "",
  "test/examples/express.test.ts": "",
};

/** For each rule, what is added to a sound project to break it. */
const breaches: Record<
  string,
  { texts?: Record<string, string>; rest?: Partial<Omit<Project, "files">>; says: RegExp }[]
> = {
  "imports lead to a lower level or stay in their room": [
    { texts: { "src/inbox/b.ts": '/** B. */\nimport "../receiver/a.ts";' }, says: /higher level/ },
    { texts: { "src/messaging/client/b.ts": '/** B. */\nexport * from "../emulator/c.ts";' }, says: /beside its own/ },
    {
      texts: { "src/messaging/client/b.ts": '/** B. */\nexport * from "../../receiver/c.ts";' },
      says: /beside its own/,
    },
    { texts: { "src/other/b.ts": "/** B. */" }, says: /no room/ },
  ],
  "only the service's own rooms know the messaging service, and they no inbox": [
    {
      texts: { "src/receiver/b.ts": '/** B. */\nimport type { c } from "../sources/messaging/c.ts";' },
      says: /messaging service/,
    },
    { texts: { "src/messaging/emulator/b.ts": '/** B. */\nexport * from "../../inbox/c.ts";' }, says: /other side/ },
  ],
  "inbox, receiver and stores know no provider": [
    {
      texts: { "src/stores/b.ts": '/** B. */\nimport { stripe } from "../sources/stripe.ts";' },
      says: /stripe.ts, which is about a provider/,
    },
  ],
  "a test file is named after what it tests, or in docs/reliability.md": [
    { texts: { "test/tools/cli/nothing.test.ts": "" }, says: /nothing.test.ts is named after no file/ },
    { texts: { "test/adapters/expressive.here.test.ts": "" }, says: /expressive.here.test.ts is named after no file/ },
  ],
  "no file imports itself in a circle": [
    {
      texts: { "src/inbox/b.ts": 'await import("./c.ts");', "src/inbox/c.ts": 'import {\n  b,\n} from "./b.ts";' },
      says: /src\/inbox\/b.ts -> src\/inbox\/c.ts -> src\/inbox\/b.ts/,
    },
  ],
  "a framework or driver appears in one file, a dependency in its rooms": [
    { texts: { "adapters/node.ts": 'const peer = await import("express");' }, says: /express is in 2 places/ },
    {
      texts: { "src/inbox/b.ts": 'import "zod/mini";', "src/sources/messaging/b.ts": 'import "zod";' },
      says: /zod is in 3 places/,
    },
  ],
  "every imported package is bundled from an exact version or an optional peer": [
    { rest: { manifest: { ...manifest, dependencies: { zod: "4.0.0" } } }, says: /zod is a dependency of its users/ },
    {
      rest: { manifest: { ...manifest, devDependencies: { zod: "^4.0.0" } } },
      says: /zod, whose version \^4.0.0 is not/,
    },
    { texts: { "adapters/node.ts": 'import "koa";' }, says: /koa, which is not declared/ },
    { texts: { "adapters/node.ts": 'createRequire(import.meta.url)("koa");' }, says: /koa, which is not declared/ },
    { rest: { manifest: { ...manifest, peerDependenciesMeta: {} } }, says: /express is not marked optional/ },
  ],
  "time and randomness come from the clock": [
    { texts: { "src/inbox/b.ts": "const at = Date.now();" }, says: /b.ts:1 Date.now/ },
    { texts: { "src/inbox/b.ts": "\nsetTimeout(() => {}, 5);" }, says: /b.ts:2 setTimeout/ },
    { texts: { "src/inbox/b.ts": "const at = new Date();" }, says: /new Date/ },
    { texts: { "src/inbox/b.ts": "const text = `${Math.random()}`;" }, says: /Math.random/ },
    { texts: { "src/inbox/b.ts": 'import { setTimeout as wait } from "node:timers/promises";' }, says: /timers/ },
    { texts: { "src/inbox/b.ts": 'import { setImmediate, setTimeout } from "timers/promises";' }, says: /timers/ },
  ],
  "nothing prints or ends the process": [
    { texts: { "src/inbox/b.ts": "console.log(1);" }, says: /console/ },
    { texts: { "adapters/node.ts": "process.exit(1);" }, says: /process.exit/ },
  ],
  "no import.meta outside of the command": [
    { texts: { "adapters/node.ts": "dirname(import.meta.url);" }, says: /node.ts:1 import.meta/ },
  ],
  "the inspector's page runs no server code, and the server no code of the page": [
    {
      texts: { "src/tools/inspector/page/b.tsx": 'import { z } from "../api.ts";' },
      says: /b.tsx imports src\/tools\/inspector\/api.ts/,
    },
    { texts: { "src/tools/inspector/page/b.tsx": 'import { z } from "zod";' }, says: /b.tsx imports zod/ },
    {
      texts: { "src/tools/inspector/page/b.tsx": 'import { join } from "node:path";' },
      says: /b.tsx imports node:path/,
    },
    {
      texts: { "src/tools/inspector/b.ts": 'import { c } from "./page/c.ts";' },
      says: /b.ts imports src\/tools\/inspector\/page\/c.ts/,
    },
  ],
  "no any, no silenced checks": [
    { texts: { "src/inbox/b.ts": "const b = (x: any) => x;" }, says: /any/ },
    { texts: { "src/inbox/b.ts": "// @ts-ignore\nb();" }, says: /@ts-ignore/ },
  ],
  "every entry has a source": [
    {
      rest: {
        manifest: { ...manifest, exports: { "./x": { types: "./dist/x.d.ts", default: "./dist/x.js" } } },
        entries: { "oncehook/x": "src/x.ts" },
      },
      says: /src\/x.ts/,
    },
    {
      rest: { manifest: { ...manifest, exports: { "./x": { types: "./dist/x.d.ts", default: "./dist/x.js" } } } },
      says: /oncehook\/x leads to nothing/,
    },
    {
      rest: { entries: { ...rest.entries, "oncehook/x": "src/index.ts" } },
      says: /oncehook\/x has a source, but package.json does not export it/,
    },
  ],
  "every entry is in the reference": [
    { rest: { reference: "oncehook without code marks" }, says: /oncehook is not in/ },
  ],
  "examples import the package by its name": [
    { texts: { "examples/demo/run.ts": 'import "../../src/index.ts";' }, says: /imports src\/index.ts/ },
  ],
  "no file is longer than 800 lines": [{ texts: { "test/long.ts": "\n".repeat(801) }, says: /801 lines/ }],
  "every file opens with what it is for": [{ texts: { "src/inbox/b.ts": "export {};" }, says: /no opening comment/ }],
};

/** The rule without a breach has its own test. */
const ONLY_WARNS = "files under 40 lines have several importers";

const project = readProject(process.cwd());

describe.each(RULES)("rule: $name", (rule) => {
  it("holds here", () => {
    const { count, problems } = rule.check(project);
    expect(problems).toEqual([]);
    expect(count).toBeGreaterThan(0);
  });

  it("passes a sound project and sees each breach", () => {
    expect(rule.check(projectFrom(sound, rest)).problems).toEqual([]);
    const cases = breaches[rule.name] ?? [];
    if (rule.name !== ONLY_WARNS) expect(cases.length).toBeGreaterThan(0);
    for (const { texts = {}, rest: other = {}, says } of cases) {
      const broken = projectFrom({ ...sound, ...texts }, { ...rest, ...other });
      expect(rule.check(broken).problems.join("\n")).toMatch(says);
    }
  });
});

it("warns of a file of more than 500 lines, and does not fail for it", () => {
  const rule = RULES.find(({ name }) => name === "no file is longer than 800 lines");
  const texts = { "test/short.ts": "\n".repeat(500), "test/long.ts": "\n".repeat(800) };
  const verdict = rule?.check(projectFrom({ ...sound, ...texts }, rest));
  expect(verdict).toMatchObject({ problems: [], warnings: ["test/long.ts has 800 lines"] });
});

it("lets tables be as long as they are", () => {
  const rule = RULES.find(({ name }) => name === "no file is longer than 800 lines");
  const texts = { "test/proofs/planted/bugs.ts": "\n".repeat(900) };
  const verdict = rule?.check(projectFrom({ ...sound, ...texts }, rest));
  expect(verdict).toMatchObject({ problems: [], warnings: [] });
});

it("lists the files under 40 lines that one file imports, with their number", () => {
  const imports = 'import "./piece.ts";\nimport "./long.ts";\nimport "./shared.ts";\nimport "./index.ts";\n';
  const texts = {
    "test/a.ts": imports,
    "test/b.ts": 'import "./shared.ts";\n',
    "test/piece.ts": "\n".repeat(39),
    "test/long.ts": "\n".repeat(40),
    "test/shared.ts": "\n",
    "test/index.ts": "\n",
  };
  const rule = RULES.find(({ name }) => name === ONLY_WARNS);
  const verdict = rule?.check(projectFrom(texts, { ...rest, reference: "" }));
  expect(verdict).toMatchObject({ count: 6, problems: [] });
  expect(verdict?.warnings).toEqual([
    "1 files are short and have one importer",
    "test/piece.ts has 39 lines, and only test/a.ts imports it",
  ]);
});

it("covers every rule with a breach", () => {
  expect([...Object.keys(breaches), ONLY_WARNS].sort()).toEqual(RULES.map(({ name }) => name).sort());
});
