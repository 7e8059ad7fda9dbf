// CommonJS: require() of an ES module works from Node 20.19 on, as long as no entry awaits at its top level.
"use strict";
const assert = require("node:assert/strict");
const { exports: entries } = require("oncehook/package.json");

for (const entry of Object.keys(entries)) {
  if (entry === "./package.json") continue;
  const name = `oncehook${entry.slice(1)}`;
  if (Object.keys(require(name)).length === 0) throw new Error(`${name} exports nothing`);
  console.log(`ok require ${name}`);
}

const { signPayload, verifySignature, SetupError, createReceiver } = require("oncehook");
const secret = "a-consumer-secret-of-32-characters";
const headers = signPayload({ body: "{}", secret });
assert.equal(verifySignature({ headers, body: "{}", secrets: secret }).ok, true);
assert.throws(() => createReceiver({ secrets: "" }), SetupError);
console.log("ok verify");
