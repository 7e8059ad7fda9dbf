// Loaded before an example: a server gets a free port on loopback, whatever port the example names, and the parent is told.
import { Server } from "node:net";

const listen = Server.prototype.listen;
Server.prototype.listen = function (...args) {
  const first = args[0];
  const callback = args.find((arg) => typeof arg === "function");
  if (typeof first === "object" && first !== null && "fd" in first) return listen.apply(this, args);
  this.once("listening", () => process.send?.({ port: this.address().port }));
  return listen.call(this, { port: 0, host: "127.0.0.1" }, callback);
};
