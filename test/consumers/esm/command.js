// The command works from the bare package, and says what is missing when it is asked for more.
import { spawn, spawnSync } from "node:child_process";
import { createInterface } from "node:readline";

const COMMAND = "node_modules/.bin/oncehook";
const emulator = spawn(COMMAND, ["emulator", "--json", "--port", "0"], { stdio: ["ignore", "pipe", "inherit"] });
const ended = new Promise((resolve) => emulator.once("exit", resolve));
const line = await new Promise((resolve) => createInterface({ input: emulator.stdout }).once("line", resolve));
const { url, clientId, clientSecret } = JSON.parse(line);
const body = new URLSearchParams({
  grant_type: "client_credentials",
  client_id: clientId,
  client_secret: clientSecret,
});
const { status } = await fetch(`${url}/api/auth/token`, { method: "POST", body });
if (status !== 200) throw new Error(`The token route answered ${status}.`);
console.log("ok the command answers");
emulator.kill("SIGTERM");
const code = await ended;
if (code !== 0) throw new Error(`It ended with ${code}.`);
console.log("ok the command ends");

const listed = spawnSync(COMMAND, ["inbox", "ls", "--store", "inbox.db"], { encoding: "utf8" });
if (listed.status === 0 || !listed.stderr.includes("npm install better-sqlite3@12")) throw new Error(listed.stderr);
console.log("ok the command names the package that --store needs");
