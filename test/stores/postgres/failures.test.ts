/** Postgres's errors apart from those of Node and the system, which have codes as well. */
import { once } from "node:events";
import { connect, createServer } from "node:net";
import { TLSSocket } from "node:tls";
import { getSystemErrorMap } from "node:util";
import { describe, expect, it, onTestFinished } from "vitest";
import { isRefusal, isUnanswered, leadsAstray, sqlState, storeErrorOf } from "../../../src/stores/postgres/failures.ts";
import { postgresStore } from "../../../src/stores/postgres.ts";
import { selfSigned } from "../../messaging/emulator/transport-certificate.ts";
import { listenOnLoopback } from "../../support/loopback.ts";
import { contextOf } from "../sqlite-turns.ts";
import { newPool, sql, urlOf } from "./place.ts";

const five = [...getSystemErrorMap().values()].map(([code]) => code).filter((code) => code.length === 5);
const coded = (code: string, message: string) => Object.assign(new Error(message), { code });

/** What Node throws to who writes to a socket that the other side has ended, and this one after it. */
async function endedByOther(): Promise<Error> {
  const server = createServer((socket) => void socket.end());
  onTestFinished(() => void server.close());
  const socket = connect(await listenOnLoopback(server), "127.0.0.1");
  // By then it has ended its own side too, and is not gone yet.
  const write = () => process.nextTick(() => process.nextTick(() => void socket.write("select 1")));
  socket.once("end", write).resume();
  const [error] = await once(socket, "error");
  return error as Error;
}

/** What the server answers where a trigger or a function of the user's names its own error. */
const raised = (state: string): Promise<unknown> =>
  sql(`do $$ begin raise exception sqlstate '${state}'; end $$`).then(
    () => null,
    (error: unknown) => error,
  );

describe("sqlState()", () => {
  it("is no name of the system's that has five characters, as EPIPE", () => {
    expect(five).toEqual(expect.arrayContaining(["EPIPE", "EPERM", "E2BIG"]));
    for (const code of five) expect(sqlState(coded(code, "write"))).toBe("");
  });

  it.each(["P0001", "E0001", "EPIPE"])("is what the server answers: %s", async (state) => {
    const error = await raised(state);
    expect(sqlState(error)).toBe(state);
    expect([isUnanswered(error), isRefusal(error)]).toEqual([false, true]);
    expect(storeErrorOf(error, "here")).toMatchObject({ code: "store_unavailable", fields: { sqlState: state } });
  });
});

describe("what a pooler answers", () => {
  it.each([
    ["42P05", 'prepared statement "lock" already exists', /prepare: false/],
    ["26000", 'prepared statement "lock" does not exist', /prepare: false/],
    ["08P01", 'bind message supplies 3 parameters, but prepared statement "lock" requires 0', /prepare: false/],
    ["08P01", "unsupported startup parameter: options", /ignore_startup_parameters/],
    ["08P01", "query_wait_timeout", /default_pool_size/],
    ["08P01", "transaction blocks not allowed in statement pooling mode", /pool_mode/],
    ["08P01", "server conn crashed?", /check its log/],
  ])("names the pooler's fix for %s, %s", (code, message, fix) => {
    const error = storeErrorOf(Object.assign(new Error(message), { code, severity: "ERROR" }), "here");
    expect(error).toMatchObject({
      code: "store_unavailable",
      message: expect.stringMatching(fix),
      fields: { sqlState: code },
    });
  });
});

describe("an answer of the server", () => {
  const kindOf = (code: string) => {
    const error = Object.assign(coded(code, "breche Verbindung ab"), { severity: "ERROR" });
    return { astray: leadsAstray(error), refusal: isRefusal(error) };
  };

  it.each(["57P01", "57P02", "57P03", "57P04", "57P05", "08006", "08P01", "25P03", "25P04"])(
    "ends the connection, in whatever language: %s leads astray, and may come after a commit",
    (code) => expect(kindOf(code)).toEqual({ astray: true, refusal: false }),
  );

  it.each(["40001", "40P01", "53100", "53300", "57014", "42P01", "26000"])(
    "refuses a statement, as every connection would: %s",
    (code) => expect(kindOf(code)).toEqual({ astray: false, refusal: true }),
  );

  it("of a server that accepts no writes is both", () => {
    expect(kindOf("25006")).toEqual({ astray: true, refusal: true });
  });

  it("does not lead astray when a pooler has lost a prepared statement", () => {
    const error = coded("08P01", 'bind message supplies 3 parameters, but prepared statement "lock" requires 0');
    expect(leadsAstray(Object.assign(error, { severity: "ERROR" }))).toBe(false);
  });
});

describe("a socket that the other side ended", () => {
  it("is no answer of the server's, though Node tells of no system call", async () => {
    const error = await endedByOther();
    expect(error).toMatchObject({ code: "EPIPE" });
    expect(error).not.toHaveProperty("syscall");
    expect([isUnanswered(error), isRefusal(error)]).toEqual([true, false]);
    expect(storeErrorOf(error, "here")).toMatchObject({
      ...{ code: "store_unavailable", fields: { sqlState: null } },
      message: "The inbox here cannot be used now: EPIPE.",
    });
  });
});

/** A server that takes TLS, with a certificate that nobody vouches for. */
async function strangeServer(): Promise<number> {
  const certificate = selfSigned();
  const server = createServer((socket) => {
    socket.on("error", () => {});
    socket.once("data", () => {
      socket.write("S");
      new TLSSocket(socket, { isServer: true, ...certificate }).on("error", () => {});
    });
  });
  onTestFinished(() => void server.close());
  return listenOnLoopback(server);
}

describe("a server whose certificate is not trusted", () => {
  it("cannot be used, and the error says by OpenSSL's name why", async () => {
    const ssl = { rejectUnauthorized: true };
    const pool = newPool({ connectionString: urlOf({ port: await strangeServer() }), ssl });
    await expect(postgresStore(pool).open(contextOf())).rejects.toMatchObject({
      ...{ code: "store_unavailable", fields: { sqlState: null } },
      message: expect.stringMatching(/cannot be used now: DEPTH_ZERO_SELF_SIGNED_CERT\.$/),
    });
  });

  it.each([
    [true, "an alert of TLS", { code: "ERR_SSL_SSLV3_ALERT_BAD_RECORD_MAC" }],
    [true, "another name in the certificate", { code: "ERR_TLS_CERT_ALTNAME_INVALID" }],
    [true, "a socket that closed", { code: "EPIPE", syscall: "write" }],
    [false, "an error of TLS without a code", {}],
  ])("is no answer of the server's either, which is seen (%s): %s", (isSeen, _what, fields) => {
    const error = Object.assign(new Error("told by Node"), fields);
    expect([isUnanswered(error), isRefusal(error)]).toEqual([isSeen, false]);
  });
});

describe("storeErrorOf()", () => {
  it("takes a refusal of each of a server's addresses for an outage, which Node tells with no word but a code", () => {
    const error = Object.assign(new AggregateError([]), { code: "ECONNREFUSED" });
    expect(storeErrorOf(error, "here")).toMatchObject({
      ...{ code: "store_unavailable", fields: { sqlState: null }, cause: error },
      message: expect.stringMatching(/cannot be used now: ECONNREFUSED\.$/),
    });
  });

  it.each(["ERR_INVALID_ARG_TYPE", "EFFECT-1", "Enoent"])("leaves an error alone whose code is %s", (code) => {
    const error = coded(code, "of the code's own");
    expect(storeErrorOf(error, "here")).toBe(error);
  });
});
