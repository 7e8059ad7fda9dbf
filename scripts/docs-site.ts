/**
 * `npm run docs`: the documentation as a site, on this machine, with search; `-- build` writes it to `docs/.vitepress/dist`. The first run
 * installs VitePress into `docs/node_modules`.
 */
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";

const home = join(process.cwd(), "docs");
const cli = join(home, "node_modules/vitepress/bin/vitepress.js");
if (!existsSync(cli)) {
  console.log("Installing VitePress …");
  const { status } = spawnSync("npm", ["ci", "--no-audit", "--no-fund"], {
    cwd: home,
    stdio: ["ignore", "ignore", "inherit"],
  });
  if (status !== 0) throw new Error(`npm ci in docs/ ended with ${status}.`);
}
const [command = "dev", ...flags] = process.argv.slice(2);
const { status } = spawnSync(process.execPath, [cli, command, home, ...flags], { stdio: "inherit" });
process.exitCode = status ?? 1;
