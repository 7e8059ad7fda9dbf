// Jest in CommonJS, with the configuration of the guide; on a Node before 24.9 it must fail without that line, or the guide is out of date.
"use strict";
const { spawnSync } = require("node:child_process");
const { writeFileSync } = require("node:fs");

/** @param {string[]} more */
function jest(...more) {
  const { status, stderr } = spawnSync("node_modules/.bin/jest", more, { encoding: "utf8" });
  return { status, said: stderr };
}

const guide = jest("app.test.js");
if (guide.status !== 0 || !/Tests: +1 passed, 1 total/.test(guide.said)) throw new Error(guide.said);
console.log("ok the test of the guide passes");

const every = `const names = Object.keys(require("oncehook/package.json").exports).filter((name) => name !== "./package.json");
test.each(names)("%s", (name) => {
  expect(Object.keys(require("oncehook" + name.slice(1))).length).toBeGreaterThan(0);
});
`;
writeFileSync("entries.test.js", every);
const entries = jest("entries.test.js");
if (entries.status !== 0 || !/Tests: +\d\d passed/.test(entries.said)) throw new Error(entries.said);
console.log("ok every entry loads");

const [major, minor] = process.versions.node.split(".").map(Number);
if (major > 24 || (major === 24 && minor >= 9)) process.exit();
const without = jest("app.test.js", "--config", "{}");
if (without.status === 0 || !/ES Module/.test(without.said)) throw new Error(`The line is not needed: ${without.said}`);
console.log("ok it does not without that line");
