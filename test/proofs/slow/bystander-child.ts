/** A server that does nothing and that nobody attacks: how late its answers are is the machine's own doing. */
import { createServer } from "node:http";
import { answering } from "../asked.ts";
import { listenOnLoopback } from "../../support/loopback.ts";

const server = createServer((request, response) => void request.resume().once("end", () => response.end()));

answering({ listen: () => listenOnLoopback(server) }, () => server.closeAllConnections());
