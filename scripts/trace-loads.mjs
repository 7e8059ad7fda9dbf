// Prints the URL of every module outside of Node that importing the named entry loads: `node scripts/trace-loads.mjs oncehook/sqlite`.
import * as module from "node:module";

const loaded = new Set();
const port = new MessageChannel();
port.port1.on("message", (url) => loaded.add(url));
port.port1.unref();

if (module.registerHooks !== undefined) {
  module.registerHooks({
    load(url, context, next) {
      loaded.add(url);
      return next(url, context);
    },
  });
} else {
  // Node 20: hooks live on a thread of their own.
  const hooks = `
    let port;
    export const initialize = (given) => { port = given; };
    export const load = (url, context, next) => { port.postMessage(url); return next(url, context); };
  `;
  module.register(`data:text/javascript,${encodeURIComponent(hooks)}`, {
    data: port.port2,
    transferList: [port.port2],
  });
}

await import(process.argv[2]);
// CommonJS modules loaded by require() pass no hook on Node 20.
for (const file of Object.keys(module.default._cache)) loaded.add(file);
setTimeout(() => {
  for (const url of loaded) if (!url.startsWith("node:")) process.stdout.write(`${url}\n`);
  process.exit(0);
}, 50);
