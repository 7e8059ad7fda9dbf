/** One write transaction under way: what every operation gets to work with. */
import type { SqliteDatabase } from "../../internal/sqlite-driver.ts";
import type { Interner, InternTable } from "./interner.ts";
import { Ledger } from "./ledger.ts";
import type { Lending } from "./lending.ts";
import { prepareStatements, type Statements } from "./statements.ts";

/** What stays the same while the inbox is open. */
export interface Facts {
  readonly firstSequence: number | "any";
  /** This open's number among the instances: the holder of its leases. */
  readonly holder: number;
  readonly clients: Interner;
  readonly kinds: Interner;
}

/** A connection with its prepared statements. */
export interface Session {
  readonly db: SqliteDatabase;
  /** For effects. */
  readonly lending: Lending;
  readonly sql: Statements;
  readonly clientTable: InternTable;
  readonly kindTable: InternTable;
}

export interface Work extends Session {
  readonly facts: Facts;
  readonly ledger: Ledger;
  /** Epoch milliseconds, the same for all of the transaction. */
  readonly now: number;
}

export function createSession(db: SqliteDatabase): Omit<Session, "lending"> {
  const sql = prepareStatements(db);
  return {
    db,
    sql,
    clientTable: { idOf: sql.clientId, nameOf: sql.clientName, insert: sql.insertClient },
    kindTable: { idOf: sql.kindId, nameOf: sql.kindName, insert: sql.insertKind },
  };
}

export function createWork(session: Session, facts: Facts, now: number): Work {
  return { ...session, facts, ledger: new Ledger(session.sql), now };
}
