// Loaded before an example: a server gets the port of PORT if it asks for that one, else a free one, on loopback; the parent is told.
import { Server } from "node:net";

const given = Number(process.env.PORT);
const listen = Server.prototype.listen;
Server.prototype.listen = function (...args) {
  const first = args[0];
  const callback = args.find((arg) => typeof arg === "function");
  const isObject = typeof first === "object" && first !== null;
  if (isObject && "fd" in first) return listen.apply(this, args);
  const port = (isObject ? first.port : first) === given ? given : 0;
  this.once("listening", () => process.send?.({ port: this.address().port }));
  return listen.call(this, { port, host: "127.0.0.1" }, callback);
};
