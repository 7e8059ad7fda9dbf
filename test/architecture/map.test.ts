/** docs/architecture.md names files by their short names: each must be a file of its room. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { expect, it } from "vitest";

const ROW = /^\| (\w*) ?\| ([^|]+) \| ([^|]+) \|$/gm;

it("names only files and folders that its rooms have", () => {
  const page = readFileSync("docs/architecture.md", "utf8");
  const table = page.slice(page.indexOf("| room | files | for |"), page.indexOf("Beside them: "));
  let room = "";
  let count = 0;
  const gone: string[] = [];
  for (const [, named = "", files = "", purpose = ""] of table.matchAll(ROW)) {
    room = named || room;
    const root = room === "adapters" ? room : `src/${room}`;
    if (!existsSync(root)) continue;
    const all = readdirSync(root, { recursive: true, encoding: "utf8" });
    for (const [, file = ""] of `${files} ${purpose}`.matchAll(/`([a-z0-9-]+(?:\.tsx?|\/))`/g)) {
      count += 1;
      const name = file.replace(/\/$/, "");
      if (!all.some((path) => path === name || path.endsWith(`/${name}`))) gone.push(`${room}: ${file}`);
    }
  }
  expect(gone).toEqual([]);
  expect(count).toBeGreaterThan(80);
});
